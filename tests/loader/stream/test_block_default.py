"""The default block is of one sample on a local disk: which states go on, which are refused, and warnings."""

import logging
from pathlib import Path
from typing import Any

import pytest

from refinery.loader import OrderParams, TokenStream
from refinery.loader.read.samples import Domain
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.schedule import Schedule
from refinery.loader.stream.state import StateError, with_block
from tests.loader.numbered import build_numbered
from tests.loader.range_server import range_server

SMALL, LARGE = Domain("", [(0, 1000)], 10), Domain("", [(0, 3_000_000)], 10)  # block_for: 1 and 4


@pytest.mark.parametrize(
    "given, block, domain, same",
    [
        (None, None, LARGE, True),
        (4, None, LARGE, True),
        (None, 4, LARGE, True),
        (None, 1, LARGE, False),
        (1, None, LARGE, False),
        (2, 4, LARGE, False),
        (None, 1, SMALL, True),
        (1, None, SMALL, True),
        (3, 1, SMALL, False),
    ],
)
def test_states_of_the_same_order_go_on(given: Any, block: Any, domain: Domain, same: bool) -> None:
    state = {"order": {"version": 1, "block": given, "lanes": 4, "window": 2}, "seed": 1}
    if same:
        found = with_block(state, block, [domain])
        assert found == {**state, "order": {**state["order"], "block": block}}  # type: ignore[dict-item]
    else:
        with pytest.raises(StateError, match=rf"open it with OrderParams\(block={given or 0}\) to go on"):
            with_block(state, block, [domain])


@pytest.mark.parametrize("state", [None, 3, {}, {"order": 1}, {"order": {"block": "x"}}, {"order": {"block": True}}])
def test_what_is_no_state_is_left_to_others(state: Any) -> None:
    assert with_block(state, 1, [SMALL]) is state


def test_local_and_remote(tmp_path: Path) -> None:
    corpus = build_numbered(tmp_path / "c", {"a": [[300_000]]}, vocab_size=300_002)
    store = open_store(corpus)
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        with TokenStream(corpus, 2, 4) as local, TokenStream(server.url, 2, 4) as remote:
            assert local.order_params == OrderParams(block=1) and remote.order_params == OrderParams(block=0)
            assert local.state_dict()["order"]["block"] == 1 and remote.state_dict()["order"]["block"] is None
            with pytest.raises(StateError, match=r"blocks of 1 samples, this stream has many; .*block=1"):
                remote.load_state_dict(local.state_dict())
            next(remote)
            with TokenStream(corpus, 2, 4, order=OrderParams(block=0)) as again:  # as the message says
                again.load_state_dict(remote.state_dict())
                assert (next(again)["input_ids"] == next(remote)["input_ids"]).all()
            with pytest.raises(StateError, match=r"OrderParams\(block=0\)"):
                local.load_state_dict(remote.state_dict())


@pytest.mark.parametrize(
    "order, warned", [(OrderParams(0), True), (OrderParams(1), False), (OrderParams(0, 256, 64), False)]
)
def test_poor_windows_are_a_warning(caplog: pytest.LogCaptureFixture, order: OrderParams, warned: bool) -> None:
    with caplog.at_level(logging.WARNING, "refinery.loader"):
        Schedule(
            [Domain("web", [(0, 140_000 * 4096)], 4096)], None, order=order, seed=1, rank=0, world_size=1, batch_size=1
        )
    assert ("shuffle of web: 12.5 % of its samples have the next one within 1,024" in caplog.text) == warned
