"""What a run with a fault may come to: the bytes of an unbroken one, or a clear failure that leaves no way in."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.stream.stream import TokenStream
from tests.fork_server import Outcome
from tests.pipelines.small_runs import check_corpus, check_work, digests, folder_files, is_accepted

Faults = list[tuple[str, dict[str, Any]]]
Record = Callable[[str, object], None]


def placed(faults: Faults, root: Path) -> Faults:
    """The faults with "ROOT" replaced by a folder, at any depth."""
    return json.loads(json.dumps(faults).replace("ROOT", str(root)))  # type: ignore[no-any-return]


def check_same(prefix: Path, reference: dict[str, bytes]) -> None:
    files = folder_files(prefix)
    check_corpus(files)
    check_work(files)
    assert digests(files) == digests(reference)


def check_refused(prefix: Path) -> None:
    """No way in for a training job."""
    assert not is_accepted(prefix)
    with pytest.raises(FormatError):
        TokenStream(prefix, sequence_length=8, batch_size=1)


def check_clear(done: Outcome, reason: str) -> None:
    """What is said last gives the reason: one line, unless it is a list of stages with too many dead letters."""
    assert done.code in (1, 2), f"{done.code}\n{done.err}"
    _, found, message = done.err.rpartition("refinery: ")
    assert found, done.err
    assert len(message.splitlines()) == 1 or message.startswith("too many dead letters:"), message
    assert re.search(reason, message), f"{reason}\n{message}"
