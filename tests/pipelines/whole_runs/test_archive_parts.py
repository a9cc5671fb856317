"""A run that reads an archive in parts publishes what a run with one reader publishes."""

import gzip
import random
from pathlib import Path

import pytest
import yaml

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run import refine
from refinery.transforms.read.plan import ReadTask, plan_sources
from refinery.transforms.read.sources import read_task
from tests.pipelines.small_runs import WORDS, command
from tests.transforms.read_fixtures import http, warc_record

SPLIT = 1 << 16


def archive(rng: random.Random) -> bytes:
    """Pages of noise and words, copies of pages, a damaged one, and garbage at the end."""
    members = [gzip.compress(warc_record(b"software: x", "warcinfo"))]
    for number in range(160):
        words = [*rng.choices(WORDS, k=20), *(rng.randbytes(20).hex() for _ in range(100))]
        page = http(f"<html><body><p>{' '.join(words)}</p></body></html>".encode())
        members += [gzip.compress(warc_record(page, url=f"https://a.example/{number}"))] * (1 + (number % 20 == 0))
    members[90] = members[90][:300] + b"?" + members[90][301:]
    return b"".join([*members, b"garbage"])


def test_the_corpus_is_the_same_in_parts(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = tmp_path / "crawl.warc.gz"
    crawl.write_bytes(archive(random.Random(1)))
    recipe = yaml.safe_load((small / "recipe.yaml").read_text())
    recipe["sources"].append({"name": "crawl", "paths": [str(crawl)]})
    recipe["failures"] = {"grace": 10}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    planned: list[list[ReadTask]] = []

    def plan(*args: object, **more: object) -> object:
        planned.append(plan_sources(*args, split_bytes=SPLIT, **more))  # type: ignore[arg-type]
        return planned[-1]

    outputs = tmp_path / "whole", tmp_path / "parts"
    assert execute([str(word) for word in command(tmp_path, outputs[0])]) == 0
    monkeypatch.setattr(refine, "plan_sources", plan)
    assert execute([str(word) for word in command(tmp_path, outputs[1])]) == 0
    parts = [task for task in planned[0] if task.source == "crawl"]
    assert len(parts) == -(-crawl.stat().st_size // SPLIT) > 5
    assert sum(any(read_task(task)) for task in parts) > 3  # others are near the damage, or the end
    found = [
        {
            str(path.relative_to(output)): path.read_bytes()
            for path in output.rglob("*")
            if path.is_file() and "work" not in path.relative_to(output).parts and path.suffix != ".html"
        }
        for output in outputs
    ]
    assert len(found[0]) > 5 and any(name.startswith("dead_letters") for name in found[0])
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
