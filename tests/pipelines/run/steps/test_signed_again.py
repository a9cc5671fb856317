"""Copies of a published corpus whose work files are gone: its texts are read again, and the answer is the same."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import refinery
from tests.pipelines.run.steps.test_steps import text

QUICKLY: Mapping[str, Any] = {"workers": 0, "quiet": True}


def write(path: Path, *texts: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps({'id': n, 'body': each})}\n" for n, each in enumerate(texts)))
    return str(path)


@pytest.mark.parametrize("layout", ["as-input", "shards"])
def test_the_same_rows_go(layout: str, tmp_path: Path) -> None:
    old = write(tmp_path / "old" / "a.jsonl", text(1), text(2), f"{text(3)} jane.doe@company-mail.org")
    new = write(tmp_path / "new" / "b.jsonl", text(1), text(2).replace("end 2.", "end of two."), text(4))
    refinery.redact(old, tmp_path / "out", text_field="body", layout=layout, **QUICKLY)  # discards its work files
    accounts = tmp_path / ("out.refinery" if layout == "as-input" else "out")
    assert not (accounts / "work" / "clean.json").exists()
    said: list[str] = []
    options: dict[str, Any] = {"near": 0.8, "text_field": "body", "against": [str(accounts)], **QUICKLY}
    refinery.dedup(new, tmp_path / "again", say=said.append, **options)
    left = [json.loads(line)["id"] for line in (tmp_path / "again" / "b.jsonl").read_text().splitlines()]
    assert left == [2]
    told = f"{accounts}: 3 texts of 3 documents read again; 1 whose texts were changed are not compared"
    assert told in said
    removals = refinery.corpus.open(f"{tmp_path}/again.refinery").removals(["scope"])
    assert {scope for batch in removals for scope in batch["scope"].to_pylist()} == {f"reference:{accounts}"}
    assert not (tmp_path / "again.refinery" / "work" / "against").exists()
    before = (tmp_path / "again" / "b.jsonl").stat().st_mtime_ns
    refinery.dedup(new, tmp_path / "again", **options)
    assert (tmp_path / "again" / "b.jsonl").stat().st_mtime_ns == before


def test_as_with_the_signatures(tmp_path: Path) -> None:
    old = write(tmp_path / "old" / "a.jsonl", *(text(n) for n in range(5)))
    new = write(tmp_path / "new" / "b.jsonl", *(text(n).replace("end", "END of") for n in range(3, 8)))
    refinery.dedup(old, tmp_path / "out", exact=True, text_field="body", **QUICKLY)
    against = [f"{tmp_path}/out.refinery"]
    refinery.dedup(new, tmp_path / "with", near=0.8, text_field="body", against=against, **QUICKLY)
    shutil.rmtree(tmp_path / "out.refinery" / "work")
    refinery.dedup(new, tmp_path / "without", near=0.8, text_field="body", against=against, **QUICKLY)
    a, b = ((tmp_path / name / "b.jsonl").read_bytes() for name in ("with", "without"))
    assert a == b and 0 < len(a.splitlines()) < 5
    refinery.redact(old, tmp_path / "labels", annotate=True, labels_as="attributes", text_field="body", **QUICKLY)
    with pytest.raises(ValueError, match="wrote labels and no texts"):
        refinery.dedup(new, tmp_path / "no", text_field="body", against=[f"{tmp_path}/labels.refinery"], **QUICKLY)
