"""Views after takedowns: made again by one command, and a training run on the earlier view goes on."""

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.loader import TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.mix.verify_view import verify_view
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.fake_gcs import fake_gcs
from tests.pipelines.corpus.remove.corpora import rows
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

OPTIONS: Any = {"sequence_length": 16, "batch_size": 2, "seed": 3, "epochs": 1}
EVERYTHING = [{"name": "all", "parts": ["c"], "times": 2}]
CHOSEN = [
    {"name": "long", "parts": ["c"], "where": "text_bytes > 300", "times": 1.5},
    {"name": "web", "parts": ["c/web", "c/news"], "per_host": {"documents": 1}},
]
MIXED = {"weights": {"long": 0.6, "web": 0.4}, "repeats": 2}
SHAPES = [(EVERYTHING, None), (CHOSEN, None), (CHOSEN, MIXED)]


def make_view(folder: Path, corpus: Path, domains: Any, mixing: Any) -> Path:
    recipe = {"name": "v", "corpora": {"c": str(corpus)}, "domains": domains, **({"mixing": mixing} if mixing else {})}
    (folder / "view.yaml").write_text(yaml.safe_dump(recipe))
    run("mix", folder / "view.yaml", "--output", folder / "view", "--workers", 0)
    return folder / "view"


def again(view: Path, corpus: Path, output: Path) -> Path:
    run("mix", view, "--corpus", f"c={corpus}", "--output", output, "--workers", 0)
    return output


def batches(stream: TokenStream) -> list[Any]:
    return [(batch["input_ids"], batch["labels"]) for batch in stream]


@pytest.mark.parametrize("shape", sampled("views that go on", range(len(SHAPES)), 1))
def test_a_state_of_the_earlier_view_goes_on(shape: int, versions: list[Path], tmp_path: Path) -> None:
    """Over one takedown, and over two with a view made again in between: what is there comes at its step, in its
    place; where a document went there is EOS, and no label."""
    domains, mixing = SHAPES[shape]
    view = make_view(tmp_path, versions[0], domains, mixing)
    second = again(view, versions[1], tmp_path / "second")
    third = again(second, versions[2], tmp_path / "third")
    for each in (view, second, third):
        assert verify_view(str(each)).failures == []
    with TokenStream(str(view), **OPTIONS) as old:
        eos = old.manifest.tokenizer.eos_id
        start = old.state_dict()
        for _ in range(3):
            next(old)
        state, expected = old.state_dict(), batches(old)
        old.load_state_dict(start)
        padding = sum(int((labels == -100).sum()) for _, labels in batches(old))
    went = [{row["id"] for row in rows(versions[0])} - {row["id"] for row in rows(each)} for each in versions]
    for number, later in ((1, second), (2, third)):
        with TokenStream(str(later), **OPTIONS) as new:
            fresh = new.state_dict()
            new.load_state_dict(state)
            told = new.not_delivered
            assert told is not None and told.documents == len(went[number])
            assert {row["id"] for row in told.rows() if row["kind"] == "removed"} >= {id_.hex() for id_ in went[number]}
            found = batches(new)
            assert new.state_dict()["corpus"] == state["corpus"]
            new.load_state_dict(fresh)
            assert new.not_delivered is None and not [b for b in batches(new) if (b[1] == -100).all()]
            new.load_state_dict(start)
            hidden = sum(int((labels == -100).sum()) for _, labels in batches(new))
        assert len(found) == len(expected)
        for (inputs, labels), (was, were) in zip(found, expected, strict=True):
            other = inputs != was
            assert (inputs[other] == eos).all()
            kept = labels != -100
            assert (labels[kept] == were[kept]).all()
            assert not (other[:, 1:] & kept[:, :-1]).any(), "a token that went is no label"
        if shape == 0:
            tokens = {row["id"]: row["token_count"] for row in rows(versions[0], ("id", "token_count"))}
            train = {row["id"] for row in rows(versions[0], ("id",))} & train_ids(versions[0])
            assert (
                abs(hidden - padding - 2 * sum(tokens[id_] for id_ in went[number] & train)) <= 2
            )  # the first has no label
    with TokenStream(str(third), **OPTIONS) as new:
        with TokenStream(str(second), **OPTIONS) as middle:
            next(middle)
            new.load_state_dict(middle.state_dict())
        assert new.not_delivered is not None


def test_in_a_bucket(versions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpora and views in Cloud Storage: the same batches as from folders."""
    near = make_view(tmp_path, versions[0], CHOSEN, MIXED)
    later = again(near, versions[1], tmp_path / "second")
    with fake_gcs("bucket") as gcs:
        for name, version in zip(("one", "two"), versions, strict=False):
            gcs.put_folder("bucket", f"{name}/", version)
        gcs.use(monkeypatch)
        recipe = {"name": "v", "corpora": {"c": "gs://bucket/one"}, "domains": CHOSEN, "mixing": MIXED}
        (tmp_path / "far.yaml").write_text(yaml.safe_dump(recipe))
        first = ["mix", str(tmp_path / "far.yaml"), "--output", "gs://bucket/view", "--workers", "0"]
        second = ["mix", "gs://bucket/view", "--corpus", "c=gs://bucket/two", "--output", "gs://bucket/view-2"]
        assert execute(first) == execute([*second, "--workers", "0"]) == ExitCode.DONE
        assert verify_view("gs://bucket/view-2").failures == []
        with TokenStream(str(near), **OPTIONS) as old, TokenStream("gs://bucket/view", **OPTIONS) as far:
            next(old), next(far)
            states = old.state_dict(), far.state_dict()
        with TokenStream(str(later), **OPTIONS) as new, TokenStream("gs://bucket/view-2", **OPTIONS) as far:
            new.load_state_dict(states[0])
            far.load_state_dict(states[1])
            for one, two in zip(batches(new), batches(far), strict=True):
                assert all((a == b).all() for a, b in zip(one, two, strict=True))


def train_ids(prefix: Path) -> set[bytes]:
    import pyarrow.parquet as pq

    paths = (prefix / "train").rglob("*.provenance.parquet")
    return {id_ for path in paths for id_ in pq.read_table(path)["id"].to_pylist()}


def test_what_cannot_go_on_says_so(versions: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    view = make_view(tmp_path, versions[0], EVERYTHING, None)
    done = run("mix", view, "--corpus", f"d={versions[1]}", "--output", tmp_path / "x", check=False)
    assert done.returncode == 2 and "'d' given, the corpora of the view are c" in done.stderr
    other = make_view(tmp_path_of(tmp_path, "other"), versions[1], EVERYTHING, None)
    done = run("mix", other, "--corpus", f"c={versions[0]}", "--output", tmp_path / "x", check=False)
    assert done.returncode == 2 and "not a version that `refinery remove` made" in done.stderr
    second = again(view, versions[1], tmp_path / "second")
    (kept,) = (second / "earlier").iterdir()
    with TokenStream(str(view), **OPTIONS) as old, TokenStream(str(second), **OPTIONS) as new:
        next(old)
        with caplog.at_level(logging.WARNING):
            new.load_state_dict(old.state_dict())
        assert "continuing in an earlier view" in caplog.text
        before = new.state_dict()
        (kept / MANIFEST).unlink()
        with TokenStream(str(second), **OPTIONS) as another, pytest.raises(FormatError, match="is not a view"):
            another.load_state_dict(old.state_dict())
        assert new.state_dict() == before
    assert any("earlier/" in failure for failure in verify_view(str(second)).failures)
    with pytest.raises(ValueError, match="view"):
        PackedStream(str(second), **{**OPTIONS, "prefetch": 0})


def tmp_path_of(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name
