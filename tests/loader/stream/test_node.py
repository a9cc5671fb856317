"""A node that trains alone: its shards by name, each token once a round, rotation, and an exact resume."""

import contextlib
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader import NodeStream, RemoteParams, TokenStream
from refinery.loader.stream.assignment import PlateauParams, RotateOnPlateau
from refinery.loader.stream.node import PLATEAU, node_shards
from refinery.loader.stream.state import StateError
from tests.corpus_factory import build_corpus
from tests.loader.range_server import range_server

S = 8
TEXTS = {("train", "web"): [[f"shard {k} page {i} " for i in range(4)] for k in range(6)] + [[]]}
NAMES = [f"train/web/shard-{k:05d}.bin" for k in range(200)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("node") / "corpus", TEXTS)


def node(corpus: object, name: str = "anna", **options: Any) -> NodeStream:
    return NodeStream(
        str(corpus), name, **{"sequence_length": S, "batch_size": 2, "prefetch": 0, "count": 3, **options}
    )


def plain(batch: Any) -> Any:
    return batch["input_ids"].tolist(), batch["labels"].tolist()


def score(node_: str, shard: str) -> bytes:
    """Computed without the module's code: later versions must give nodes the same shards."""
    return hashlib.sha256(len(node_.encode()).to_bytes(4, "little") + node_.encode() + shard.encode()).digest()


def test_ten_shards_by_hash() -> None:
    for name in ("anna", "ben", "ünal"):
        assert node_shards(reversed(NAMES), name) == sorted(NAMES, key=lambda shard: score(name, shard))[:10]
    assert node_shards(NAMES[:4], "anna") == sorted(NAMES[:4], key=lambda shard: score("anna", shard))
    primaries = [node_shards(NAMES, f"node-{k}")[0] for k in range(400)]
    assert len(set(primaries)) > 150  # of 200: 173 expected where each is drawn alike
    for arguments, message in ((("", 10), "node: '' given"), (("anna", 0), "count: 0 given")):
        with pytest.raises(ValueError, match=message):
            node_shards(NAMES, *arguments)


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 99))
def test_a_shard_more_takes_at_most_one_place(shards: int, count: int, number: int) -> None:
    before, after = (node_shards(NAMES[:n], f"node-{number}", count) for n in (shards, shards + 1))
    assert [shard for shard in after if shard in before] == [shard for shard in before if shard in after]
    assert len(set(before) - set(after)) <= 1


def test_every_token_of_its_shards_once_a_round(corpus: Path) -> None:
    with node(corpus, rounds=2, plateau=None) as stream:
        paths = [entry.bin.path for entry in stream.shards]
        assert len(paths) == 3
        visits: list[tuple[str, list[int]]] = []
        for batch in stream:
            if not visits or visits[-1][0] != stream.shard:
                visits.append((stream.shard, []))
            visits[-1][1].extend(batch["input_ids"][batch["labels"] != -100].tolist())
        assert stream.rotations == 6
    assert [path for path, _ in visits] == [*paths, *paths]
    for path, tokens in visits:  # all but the last, which has no label
        assert sorted(tokens) == sorted(np.fromfile(corpus / path, "<u2")[:-1].tolist())
    assert visits[0][1] != visits[3][1]  # another order in the next round


def test_memorised_data_moves_on_and_a_falling_loss_does_not(corpus: Path) -> None:
    with node(corpus, plateau=PlateauParams(window=4), sequence_length=2) as stream:
        first = stream.shard
        for loss in (3.0, 2.5, 2.0, 2.0, 2.0, 2.0, 0.01, 0.01, 0.01):
            next(stream)
            assert not stream.observe(loss)
        next(stream)
        assert stream.observe(0.01) and stream.rotations == 1 and stream.shard != first
        next(stream)
        with pytest.raises(ValueError, match="loss: nan given"):
            stream.observe(float("nan"))


@pytest.mark.parametrize(
    ("losses", "moves"),
    [
        ([0.049] * 20, True),  # flat and below 0.05
        ([0.05] * 20, False),
        ([2.5] * 20, False),  # flat, but not memorised
        ([2.5] + [0.01] * 19, False),  # variance 0.29
        ([0.0] * 18 + [0.45, 0.45], True),  # variance 0.0182, a mean of 0.045
        ([0.0] * 18 + [0.48, 0.48], False),  # variance 0.0207, a mean of 0.048
        ([0.09] * 10 + [0.0] * 10, True),  # the mean falls by 0.09
        ([0.01] * 19, False),  # a step too few
    ],
)
def test_the_published_plateau(losses: list[float], moves: bool) -> None:
    """Twenty losses, a variance below 0.02, and a mean below 0.05."""
    rotation = RotateOnPlateau(NAMES[:3], PLATEAU)
    assert [rotation.observe(loss) for loss in losses][-1] is moves


def test_an_exhausted_shard_is_left_with_its_losses() -> None:
    rotation = RotateOnPlateau(NAMES[:2], PlateauParams(window=2))
    rotation.observe(1.0)
    rotation.advance()
    assert (rotation.shard, rotation.rotations) == (NAMES[1], 1)
    assert not rotation.observe(1.0)  # the window begins anew


@pytest.mark.parametrize("steps", [0, 1, 3, 7, 8, 9, 20, 33])
def test_resumes_exactly(corpus: Path, steps: int) -> None:
    """At the end of a shard, right after a rotation, with shards that were left early; the state goes through JSON."""
    flat = PlateauParams(window=5, max_improvement=0.05, max_variance=None, max_loss=None)

    def train(stream: NodeStream, number: int) -> list[Any]:
        found = []
        for _ in range(number):
            batch = next(stream)
            shard = stream.shard
            found.append((shard, plain(batch), stream.observe(1.0 if stream.rotations % 2 else float(len(found)))))
        return found

    with node(corpus, plateau=flat) as whole:
        train(whole, steps)
        state = json.loads(json.dumps(whole.state_dict()))
        expected = [(plain(next(whole)), whole.observe(1.0), whole.shard) for _ in range(25)]
    with node(corpus, plateau=flat) as again:
        again.load_state_dict(state)
        assert again.state_dict() == state
        assert [(plain(next(again)), again.observe(1.0), again.shard) for _ in range(25)] == expected


def test_states_of_others_are_refused(corpus: Path, tmp_path: Path) -> None:
    other = build_corpus(tmp_path / "other", TEXTS, fingerprint="2a" * 32)
    with node(corpus) as stream:
        next(stream)
        state = stream.state_dict()
        for elsewhere, message in (
            (node(corpus, "ben"), "state: node 'anna' given"),
            (node(other), "state: corpus "),
            (node(corpus, plateau=None), "state: plateau "),
            (node(corpus, count=2), "shards: the state is of another list"),
            (node(corpus, sequence_length=4), "sequence_length 8 given, this stream has 4"),
        ):
            with elsewhere, pytest.raises(StateError, match=message):
                elsewhere.load_state_dict(state)
        for wrong in (None, {**state, "rotation": None}, {k: v for k, v in state.items() if k != "stream"}):
            with pytest.raises(StateError, match="state: "):
                stream.load_state_dict(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("rotation", {"index": -1}, "index: -1 given, 0 to 0 is allowed"),
        ("rotation", {"rotations": 1}, "index: 0 given, 1 to 1 is allowed"),
        ("rotation", {"rotations": float("inf")}, "rotations: inf given, a whole number"),
        ("rotation", {"losses": ["1.0"]}, "losses: '1.0' given, finite numbers"),
        ("rotation", {"losses": [float("nan")]}, "losses: nan given"),
        ("rotation", {"losses": 7}, "losses: 7 given, a list"),
        ("rotation", {"steps": None}, "steps: None given"),
        ("rotation", {"shards": np.array(["a", "b"])}, "state: "),
        ("stream", {"position": 10**9}, "position 1000000000 given"),
    ],
)
def test_a_state_that_was_edited_is_refused_and_changes_nothing(
    part: str, change: dict[str, Any], message: str, corpus: Path
) -> None:
    with node(corpus, rounds=1, plateau=None) as whole, node(corpus, rounds=1, plateau=None) as stream:
        next(whole), next(stream)
        state = whole.state_dict()
        with pytest.raises(StateError, match=message):
            stream.load_state_dict(state | {part: state[part] | change})
        assert stream.state_dict() == state
        assert [plain(batch) for batch in stream] == [plain(batch) for batch in whole]


def test_an_interrupt_where_a_shard_ends_repeats_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the exhausted stream is closed, which waits for its threads, or while the next one is opened."""
    with node(corpus, rounds=2, plateau=None) as whole:
        expected = [plain(batch) for batch in whole]
    opens, closes = TokenStream.__init__, TokenStream.close
    calls = itertools.count()

    def interrupted(self: TokenStream, *given: Any, **options: Any) -> None:
        (opens if given else closes)(self, *given, **options)
        if next(calls) % 2:
            raise KeyboardInterrupt

    found: list[Any] = []
    with node(corpus, rounds=2, plateau=None) as stream:
        for name in ("__init__", "close"):
            monkeypatch.setattr(TokenStream, name, interrupted)
        while len(found) < len(expected):
            with contextlib.suppress(KeyboardInterrupt):
                found.append(plain(next(stream)))
        monkeypatch.undo()
        assert found == expected and next(calls) > 9


def test_arguments(corpus: Path) -> None:
    for options, message in (
        ({"rounds": 0}, "rounds: 0 given, 1 or more is allowed"),
        ({"split": "validation"}, "split: 'validation' given, which has no tokens"),
        ({"epochs": 2}, "epochs: given, a node has its own shards"),
        ({"rank": 1}, "rank: given"),
    ):
        with pytest.raises(ValueError, match=message):
            node(corpus, **options)
    with node(corpus) as stream, pytest.raises(TypeError, match="cannot be pickled"):
        stream.__reduce__()


def test_over_http_through_a_cache(corpus: Path, tmp_path: Path) -> None:
    """The same batches as from the disk; what a shard needs is fetched once, and faults of the server are borne."""
    with node(corpus, rounds=2, plateau=None) as local:
        expected = [plain(batch) for batch in local]
    with range_server() as server:
        for path in corpus.rglob("*"):
            if path.is_file():
                server.files[path.relative_to(corpus).as_posix()] = path.read_bytes()
        server.script.extend(["", "503", "", "reset"])
        remote = RemoteParams(cache=tmp_path / "cache")
        with node(server.url, rounds=2, plateau=None, remote=remote) as stream:
            mine = {entry.bin.path for entry in stream.shards}
            assert [plain(batch) for batch in stream] == expected
        fetched = [name for name, _, _ in server.requests if name.endswith(".bin")]
    assert set(fetched) == mine  # no other shard is touched
    assert len(fetched) <= len(mine) + 2  # once each, though each was read twice; a fault or two in between
