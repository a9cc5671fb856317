"""shuffle=False: the order of the corpus, shard by shard, resumed anywhere, divided among ranks as any other order."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from refinery.loader import OrderParams, RemoteParams, TokenStream
from refinery.loader.stream.state import StateError
from tests.loader.numbered import build_numbered
from tests.loader.range_server import range_server

S = 7
LENGTHS = {"a": [[5, 9, 40], [], [33, 0, 0, 1]], "b": [[100, 1, 1, 1]]}
TOTAL = sum(length for shards in LENGTHS.values() for shard in shards for length in shard)
ROWS = [list(range(first, min(first + S, TOTAL))) for first in range(0, TOTAL, S)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), LENGTHS)


def stream(corpus: Any, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": S, "batch_size": 3, "epochs": 2, "prefetch": 0, "doc_ids": True}
    return TokenStream(corpus, **(shape | {"shuffle": False} | options))


def rows(batch: Any) -> list[list[int]]:
    """The tokens of a batch's rows that are not empty."""
    found = [inputs[ids >= 0].tolist() for inputs, ids in zip(batch["input_ids"], batch["doc_ids"], strict=True)]
    return [row for row in found if row]


def test_rows_come_as_they_are_in_the_corpus_in_every_epoch(corpus: Path) -> None:
    with stream(corpus) as batches:
        assert list(chain.from_iterable(map(rows, batches))) == ROWS * 2
    with stream(corpus, seed=9, epochs=1) as other:
        assert list(chain.from_iterable(map(rows, other))) == ROWS


@pytest.mark.parametrize("world", [2, 3, 5])
def test_a_step_has_the_next_rows_of_the_corpus_dealt_to_ranks_in_turn(corpus: Path, world: int) -> None:
    ranks = [stream(corpus, rank=rank, world_size=world, batch_size=2, epochs=1) for rank in range(world)]
    found = [[rows(batch) for batch in rank] for rank in ranks]
    for step in range(ranks[0].steps or 0):
        expected = ROWS[step * 2 * world : (step + 1) * 2 * world]
        assert [of_rank[step] for of_rank in found] == [expected[rank::world] for rank in range(world)]


def test_resume_at_every_step_with_other_ranks(corpus: Path) -> None:
    with stream(corpus, batch_size=4) as one:
        states = [one.state_dict(), *(one.state_dict() for _ in one)]
    delivered = [min(4 * step, len(ROWS)) for step in range(-(-len(ROWS) // 4) + 1)]
    everything = ROWS * 2
    for state in states[:-1]:
        at = state["epoch"] * len(ROWS) + state["position"]
        assert state["position"] in delivered
        found = []
        for rank in range(3):
            with stream(corpus, batch_size=1, rank=rank, world_size=3) as part:
                part.load_state_dict(state)
                found += rows(next(part))
        stop = min(at + 3, (state["epoch"] + 1) * len(ROWS))  # a step ends with its epoch
        assert sorted(found) == everything[at:stop]


def test_weights_take_each_domain_in_its_order(corpus: Path) -> None:
    with stream(corpus, weights={"a": 1, "b": 2}, epochs=1) as batches:
        found = list(chain.from_iterable(map(rows, batches)))
    border = sum(length for shard in LENGTHS["a"] for length in shard)
    for of_domain in ([row for row in found if row[0] < border], [row for row in found if row[0] >= border]):
        assert of_domain == sorted(of_domain) and len(of_domain) > 3


def test_a_remote_corpus_is_read_in_the_same_order(corpus: Path, tmp_path: Path) -> None:
    with range_server() as server:
        server.files = {
            str(path.relative_to(corpus)): path.read_bytes() for path in corpus.rglob("*") if path.is_file()
        }
        with stream(server.url, remote=RemoteParams(cache=tmp_path, stagger=0), prefetch=1) as batches:
            assert list(chain.from_iterable(map(rows, batches))) == ROWS * 2


def test_whole_documents_come_in_the_order_of_their_blocks(corpus: Path) -> None:
    with stream(corpus, packing="best_fit", epochs=1) as batches:
        found = list(chain.from_iterable(map(rows, batches)))
    assert sorted(chain.from_iterable(found)) == list(range(TOTAL))


def test_a_state_of_another_order_is_refused_but_may_be_continued(corpus: Path) -> None:
    with stream(corpus) as batches, stream(corpus, shuffle=True) as shuffled:
        first = rows(next(batches))
        with pytest.raises(StateError, match="order"):
            shuffled.load_state_dict(batches.state_dict())
        with pytest.raises(StateError, match="order"):
            batches.load_state_dict(shuffled.state_dict())
        state = shuffled.continue_from(batches)
        with stream(corpus, shuffle=True, epochs=1) as again:
            again.load_state_dict(state)
            rest = list(chain.from_iterable(map(rows, again)))
    assert sorted(chain.from_iterable(first + rest)) == list(range(TOTAL))


def test_the_shape_of_a_shuffle_that_is_off_is_refused(corpus: Path) -> None:
    with pytest.raises(ValueError, match="order: given with shuffle=False, None is allowed"):
        stream(corpus, order=OrderParams(1))
    with pytest.raises(ValueError, match="shuffle: 'no' given, True or False is allowed"):
        stream(corpus, shuffle="no")


def test_the_first_rows_of_a_subset(corpus: Path) -> None:
    with stream(corpus, subset=5, epochs=1) as batches:
        found = list(chain.from_iterable(map(rows, batches)))
        assert batches.state_dict()["order"] == {"version": 1, "shuffle": False}
    border = sum(length for shard in LENGTHS["a"] for length in shard)
    assert found == [list(range(first, first + S)) for first in (0, S, border, border + S, border + 2 * S)]
