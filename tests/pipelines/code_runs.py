"""A small run of the lane of source code: files of invented repositories, a tokenizer of bytes, and recipe.yaml."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.corpus_factory import tokenizer_json
from tests.transforms.code.source_files import code_files

COMMIT = "0123abcd" * 5
LEAKED = "ghp_" + "q7ZbXw91LmPaKs83HdYtq7ZbXw91LmPaKs83"
LENGTH = 512


def records() -> list[dict[str, Any]]:
    """Records of files: those that rules drop, copies and near copies in two repositories, a secret, an address."""
    found = [
        {"repo": f"some/{number % 3}", "path": f"{number}/{path}", "content": text, **notes}
        for number, (path, text, notes) in enumerate(code_files())
    ]
    body = "".join(f"static int g{i}(int b)\n{{\n    return b * {i * i};\n}}\n\n" for i in range(30))
    near = body.replace("static int g7", "static  /* once */ int g7")
    sums = "".join(f"long sum{i}(long a, long c)\n{{\n    return a + c * {i} - {i * 7};\n}}\n\n" for i in range(30))
    helper = (
        "static int most(int *v, int n)\n{\n    int m = 0;\n"
        + "    m = m > v[n] ? m : v[n];\n" * 5
        + "    return m;\n}\n\n"
    )
    login = f'/* anna.berg@old-mill-gauges.net */\nstatic const char *token = "{LEAKED}";\n' + body.replace(
        "b", "login"
    )
    for repo, path, text in (
        ("some/0", "lib/body.c", body),
        ("some/1", "lib/copy.c", body),
        ("some/1", "lib/near.c", near + "int last;\n"),
        ("some/2", "lib/login.c", helper + login),
        ("some/2", "lib/helper.c", helper + body.replace("b", "helper")),
        ("some/2", "lib/windows.c", body.replace("g", "w").replace("\n", "\r\n")),
        ("some/2", "lib/spaces.c", body.replace("b", "spaces") + "\f\n\n\n\nint  last;  \n\t// e\u0301\n"),
        ("some/2", "lib/binary.c", "int a;\0" + body),
        ("some/0", "lib/sums.c", sums + "int last_of_sums;\n"),  # the better one by priority and by size
        ("some/1", "lib/nearly_sums.c", sums),
    ):
        found.append({"repo": repo, "path": path, "content": text, "repo_license": "MIT"})
    return [{**record, "commit": COMMIT} for record in found]


def write_records(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The records in the format that the ending of `path` names."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names])), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_code_inputs(folder: Path) -> Path:
    """Two files of records, so that there are two waves; tokenizer.json, and recipe.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = records()
    for name in range(2):
        write_records(folder / f"{name}.jsonl", rows[name::2])
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    recipe = {
        "name": "small-code",
        "lane": "code",
        "sources": [
            {"name": f"s{name}", "domain": "code", "paths": [str(folder / f"{name}.jsonl")], "priority": name}
            for name in range(2)
        ],
        "rejects": {"rate": 1.0},
        "chunk": {"budget": 256},
        "chunk_dup": {},
        "tokenizer": {"path": str(folder / "tokenizer.json"), "bos": "<s>", "eos": "</s>"},
        "packed": {"length": LENGTH},
        "shards": {"target_bytes": 20_000, "validation": 0.1},
        "run": {"wave_files": 1},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder
