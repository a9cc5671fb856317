"""What stays on this machine is packed by zlib, what leaves it by bzip2, as Beam's workers elsewhere expect it."""

import base64
import threading

import pytest
from apache_beam.internal import pickler

from refinery.pipelines.runners.quick_pickles import quick_pickles, read_quick_pickles

VALUE = {"a function": len, "bytes": bytes(range(256)) * 9, "nothing": None}


def packed() -> bytes:
    return base64.b64decode(pickler.dumps(VALUE))


def test_graphs_of_this_machine_are_packed_quickly_and_no_others() -> None:
    read_quick_pickles()
    before = packed()
    with quick_pickles():
        inside, here = packed(), pickler.dumps(VALUE)
    assert inside[:1] == b"\x78"
    assert pickler.loads(base64.b64encode(before)) == pickler.loads(here) == VALUE
    assert packed() == before and before[:3] == b"BZh"


def test_a_job_that_fails_leaves_nothing_behind() -> None:
    with pytest.raises(ValueError, match="a job"), quick_pickles():
        raise ValueError("a job")
    assert packed()[:3] == b"BZh"


def test_other_threads_pack_as_before() -> None:
    """Such as one that launches a job elsewhere meanwhile."""
    found: list[bytes] = []
    with quick_pickles():
        thread = threading.Thread(target=lambda: found.append(packed()))
        thread.start()
        thread.join()
    assert found[0][:3] == b"BZh"
