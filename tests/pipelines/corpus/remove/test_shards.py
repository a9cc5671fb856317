"""Where the shards of a new version are in its manifest."""

import pytest

from refinery.pipelines.corpus.remove.shards import with_new


def shards(*places: str, tokens: int = 0) -> list[dict[str, object]]:
    found = []
    for place in places:
        split, domain, index = place.split("/")
        found.append({"split": split, "domain": domain, "index": int(index), "tokens": tokens})
    return found


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([], "train/a/1 train/a/3 train/b/0 validation/a/0"),
        (["train/a/3"], "train/a/1 train/a/3! train/b/0 validation/a/0"),
        (["train/a/0"], "train/a/0! train/a/1 train/a/3 train/b/0 validation/a/0"),
        (["train/a/4", "train/a/2"], "train/a/1 train/a/2! train/a/3 train/a/4! train/b/0 validation/a/0"),
        (["train/a/0", "train/a/2"], "train/a/0! train/a/1 train/a/2! train/a/3 train/b/0 validation/a/0"),
        (["validation/b/0", "train/0/1"], "train/a/1 train/a/3 train/b/0 validation/a/0 train/0/1! validation/b/0!"),
        (["train/c/1", "train/c/0"], "train/a/1 train/a/3 train/b/0 validation/a/0 train/c/0! train/c/1!"),
    ],
)
def test_those_that_were_there_keep_their_order(written: list[str], expected: str) -> None:
    """Training runs count domains, and the tokens of a domain, in this order: the new ones had none."""
    before = shards("train/a/1", "train/a/3", "train/b/0", "validation/a/0")
    found = with_new(before, shards(*written, tokens=1))
    named = [f"{s['split']}/{s['domain']}/{s['index']}{'!' * int(s['tokens'])}" for s in found]
    assert " ".join(named) == expected
