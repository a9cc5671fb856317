"""Loops of PyTorch's loaders over a stream: the stream's meanings, with 0 to 3 workers, and what is refused."""

from typing import Any

import pytest

from tests.corpus_factory import build_corpus

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")

from torch.utils.data import DataLoader  # noqa: E402

from refinery.loader.stream.stream import TokenStream  # noqa: E402
from refinery.loader.torch.adapter import TokenDataset, as_tensors, build_dataloader, device_prefetch  # noqa: E402
from tests.loader.torch.test_adapter import OPTIONS, key, plain  # noqa: E402

EPOCHS = OPTIONS["epochs"]

pytestmark = [pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = {("train", "web"): [[f"document {i} " * (i % 4 + 1) for i in range(k, k + 12)] for k in (0, 12)]}
    return str(build_corpus(tmp_path_factory.mktemp("corpus"), texts))


def loop(batches: Any, most: int | None = None) -> list[Any]:
    found = []
    for i, batch in enumerate(batches, 1):
        found.append(key(batch))
        if i == most:
            break
    return found


def opened(corpus: str, workers: int, device: bool, **changes: Any) -> Any:
    loader = build_dataloader(corpus, num_workers=workers, **(OPTIONS | changes))
    return device_prefetch(loader, "cpu") if device else loader


EACH = pytest.mark.parametrize("workers, device", [(0, False), (1, False), (3, False), (0, True), (2, True)])


@EACH
def test_continue(corpus: str, workers: int, device: bool) -> None:
    want = plain(corpus)
    batches = opened(corpus, workers, device)
    assert len(batches) == len(want)
    assert loop(batches, 3) + loop(batches, 1) + loop(batches) == want
    assert loop(batches) == []
    batches.restart()
    assert loop(batches, 5) == want[:5] and len(batches) == len(want)


@EACH
def test_an_epoch(corpus: str, workers: int, device: bool) -> None:
    """Also left after its very last batch, where a loop over the next epoch follows."""
    want = plain(corpus)
    n = len(want) // EPOCHS
    batches = opened(corpus, workers, device, loop="epoch")
    assert len(batches) == n
    assert loop(batches, 2) + loop(batches, n - 2) == want[:n]
    assert loop(batches) == want[n:]
    assert loop(batches) == [] and batches.state_dict()["epoch"] == EPOCHS


@EACH
def test_evaluation(corpus: str, workers: int, device: bool) -> None:
    want = plain(corpus, epochs=1)
    batches = opened(corpus, workers, device, loop="restart", epochs=None)
    assert len(batches) == len(want)
    for most in (None, 2, None):
        assert loop(batches, most) == want[:most]
    batches.skip(3)
    assert loop(batches) == want[3:] and loop(batches) == want


@EACH
def test_moving_inside_a_loop(corpus: str, workers: int, device: bool) -> None:
    want = plain(corpus)
    batches = opened(corpus, workers, device)
    found, moves = [], {2: lambda: batches.skip(4), 5: lambda: batches.load_state_dict(state), 8: batches.restart}
    for batch in batches:
        found.append(key(batch))
        if len(found) == 1:
            state = batches.state_dict()
        if len(found) in moves:
            moves[len(found)]()
    assert found == want[:2] + want[6:9] + want[1:4] + want


@pytest.mark.parametrize("workers", [0, 2])
def test_steps_left_in_a_loop(corpus: str, workers: int) -> None:
    loader = build_dataloader(corpus, num_workers=workers, **OPTIONS)
    ends = []
    for i, _ in enumerate(loader, 1):
        assert loader.steps_left == len(loader) - i
        ends.append(loader.end_of_dataloader)
    assert ends == [False] * (len(loader) - 1) + [True] and loader.steps_per_epoch == len(loader) // EPOCHS


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_plain_loader_with_workers_does_not_repeat_batches(corpus: str, method: str) -> None:
    options: dict[str, Any] = {"batch_size": None, "num_workers": 1, "multiprocessing_context": method}
    dataset = TokenDataset(corpus, **OPTIONS)
    loader = DataLoader(dataset, **options)
    assert len(loader) == len(loop(loader))
    with pytest.raises(RuntimeError, match=r"a second loop with worker processes would repeat.*build_dataloader"):
        loop(loader)
    with pytest.raises(RuntimeError, match=r"state: unknown to the data set.*build_dataloader"):
        dataset.state_dict()
    dataset.load_state_dict(TokenStream(corpus, **OPTIONS).state_dict())
    if method == "fork":
        assert loop(loader) == plain(corpus)
        again = DataLoader(TokenDataset(corpus, loop="restart", **OPTIONS), **options)
        assert loop(again, 2) == loop(again)[:2] == plain(corpus)[:2]


def test_batches_of_batches_are_refused(corpus: str) -> None:
    for workers in (0, 1):
        with pytest.raises(RuntimeError, match=r"batch_size=None, as in .*build_dataloader.*CorpusLoaders"):
            next(iter(DataLoader(TokenDataset(corpus, **OPTIONS), batch_size=2, num_workers=workers)))


def test_a_stream_without_end_has_no_length(corpus: str) -> None:
    endless = build_dataloader(corpus, **(OPTIONS | {"epochs": None}))
    for sized in (endless, endless.dataset, device_prefetch(endless, "cpu")):
        assert sized
        with pytest.raises(TypeError, match="no end"):
            len(sized)


def test_tensors_have_memory_of_their_own(corpus: str) -> None:
    for batch_size in (1, 2):
        for batch in TokenDataset(corpus, **(OPTIONS | {"batch_size": batch_size})):
            before = batch["input_ids"].clone()
            assert batch["labels"].is_contiguous() and batch["input_ids"].is_contiguous()
            batch["labels"][:] = -100
            assert torch.equal(batch["input_ids"], before)
            sizes = {name: value.untyped_storage().nbytes() for name, value in batch.items()}
            assert sizes == {name: value.nbytes for name, value in batch.items()}
    assert as_tensors({"max_seqlen": 3}) == {"max_seqlen": 3}


# --- ranks -----------------------------------------------------------------------------------------------------------


def test_a_data_set_made_before_its_rank_was_known(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = build_dataloader(corpus, **OPTIONS)
    explicit = build_dataloader(corpus, rank=0, world_size=1, **OPTIONS)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for batches in (loader, loader.dataset):
        with pytest.raises(RuntimeError, match="made as rank 0 of 1, now this process is rank 1 of 2"):
            loop(batches)
    assert loop(explicit) == plain(corpus)


def test_wrong_groups(corpus: str) -> None:
    with pytest.raises(ValueError, match="group, rank: both given"):
        TokenDataset(corpus, group=object(), rank=0, world_size=1, **OPTIONS)


@EACH
def test_a_state_of_the_end_of_an_evaluation_is_a_beginning(corpus: str, workers: int, device: bool) -> None:
    batches = opened(corpus, workers, device, loop="restart", epochs=1)
    want = loop(batches)
    state = batches.state_dict()
    again = opened(corpus, workers, device, loop="restart", epochs=1)
    again.load_state_dict(state)
    assert loop(again) == want == loop(again)
    data = TokenDataset(corpus, **(OPTIONS | {"loop": "restart", "epochs": 1}))
    data.load_state_dict(state)
    assert sorted(loop(DataLoader(data, batch_size=None, num_workers=workers))) == sorted(want)
