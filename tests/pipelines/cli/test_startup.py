"""Commands that look at a corpus import neither Beam nor what belongs to it; `--help` imports no library at all."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.startup import Start, looking, some_document, start
from refinery.pipelines.cli.command_line import OWN
from tests.sampling import sampled

NAMES = list(looking("", {"url": "", "id": ""}, ""))
# What the others import, beside the jobs that they run, is their own affair.
OTHERS = {
    "browse",  # it looks, but does not end; its own tests say what it imports
    *(
        "acquire commoncrawl",
        "acquire git",
        "adopt",
        "cluster cancel",
        "cluster kubernetes",
        "cluster resume",
        "cluster slurm",
        "cluster status",  # tests/pipelines/run/cluster: it needs a run that was cut
        "completion",
        "dedup",
        "detect-language",
        "doctor",
        "export",
        "extract",
        "filter",
        "init",
        "mix",
        "opt-outs",
        "refine",
    ),
    *(
        "redact",
        "remove",
        "retokenize",
        "status",
        "train-extractor",
        "train-perplexity",
        "train-quality",
        "train-tokenizer",
    ),
    *("tokenize", "train-toxicity", "try"),
}
BEAM = {"apache_beam", "grpc", "google", "httplib2"}  # and what only its input and output need
READERS = {"blend", "inspect", "sample", "shards", "show", "trace"}  # of what is published: they judge nothing
LIGHT = {"google_crc32c"}  # our own checksums


def libraries(found: Start) -> set[str]:
    return {name.partition(".")[0] for name in found.modules}


@pytest.fixture(scope="module")
def document(corpus: Path) -> Mapping[str, str]:
    return some_document(str(corpus))


def test_every_command_looks_or_does_something() -> None:
    leaves = {command.name for command in OWN.all() if command.run is not None}
    assert {*NAMES} - {"--help"} | OTHERS == leaves, "say in benchmarks/startup.py or here what a new command does"
    assert not {*NAMES} & OTHERS


# Those that read neither recipes nor stages every time: what they must not import is easily imported.
SOME = [name for name in NAMES if name in READERS] + sampled(
    "commands that only look", [name for name in NAMES if name not in READERS], 5
)


@pytest.mark.parametrize("name", SOME)
def test_what_only_looks_needs_no_beam(name: str, corpus: Path, document: Mapping[str, str], tmp_path: Path) -> None:
    """In a new interpreter, since this one has imported everything. As it ends, so that what runs late counts, too."""
    found = start(*looking(str(corpus), document, str(tmp_path))[name])
    assert found.code == 0, found.said
    assert not libraries(found) & BEAM, {library: found.modules[library] for library in libraries(found) & BEAM}
    assert not libraries(found) & {"requests", "torch", "pandas"}
    assert "refinery.pipelines.cli.command_line" in found.modules
    if name in READERS:  # neither recipes nor stages
        assert not libraries(found) & {"pydantic", "yaml"} and "refinery.transforms.core.stage" not in found.modules


@pytest.mark.parametrize("words", [["--help"], ["verify", "--help"], ["acquire", "--help"], ["refin"], []])
def test_help_imports_no_library(words: list[str]) -> None:
    found = start(*words)
    ours = {name for name in found.modules if name.startswith("refinery.")}
    assert not libraries(found) & {"numpy", "pyarrow", "pydantic", "yaml", *BEAM}, found.modules
    ours -= {"refinery.loader.errors"}  # whose exceptions the command line names; it imports nothing
    assert not {name for name in ours if name.startswith(("refinery.loader.", "refinery.pipelines.run"))}


def test_a_command_reads_no_other_and_no_entry_point(corpus: Path) -> None:
    found = start("inspect", str(corpus))
    read = {name for name in found.modules if name.startswith("refinery.pipelines.cli.")}
    assert read == {"refinery.pipelines.cli.command_line", "refinery.pipelines.cli.inspect"}
    assert "refinery.pipelines.shell.installed" not in found.modules
