"""What holds for all tests."""

import ctypes
import gc
import ipaddress
import os
import resource
import signal
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import sampling

RESERVED = (".invalid", ".test", ".example", "localhost")  # names that RFC 2606 leaves to tests
PEAK_LIMIT = sampling.scaled(4_000_000_000, 2_500_000_000)  # bytes that a process of the tests may hold
MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc

# On a machine of continuous integration Hypothesis would begin with a profile of its own, whose examples are others.
settings.register_profile(
    "session",
    settings.get_profile("default"),
    deadline=None,
    max_examples=sampling.examples(100),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

found: dict[str, dict[str, Any]] = {}  # test process -> what it says at its end
writes_no_bytecode = sys.dont_write_bytecode


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and all that they start; some test it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(stay_here)
    # PYTHONDONTWRITEBYTECODE has every interpreter compile the sources anew, and pytest rewrite hundreds of test files.
    # What is collected is kept; sources that tests make are theirs, and may change within a second.
    sys.dont_write_bytecode = False
    gc.disable()  # until everything is collected: see pytest_collection_finish
    os.environ[sampling.SEED] = sampling.seed()  # the same one in all test processes
    if sampling.ONE_TENTH:
        os.environ[sampling.TENTH] = str(sampling.tenth())
    keep_less_of_what_is_freed(config)
    settings.load_profile("session")
    sampling.skip_syncs()
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = int.from_bytes(sampling.seed().encode())


def keep_less_of_what_is_freed(config: pytest.Config) -> None:
    """In test processes, which hold the garbage of thousands of tests: one arena for Beam's many threads, and no pool
    of Arrow's. Not in what they start, which is as users start it.
    """
    variables = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    if not hasattr(config, "workerinput"):
        os.environ |= variables | os.environ
        return
    import pyarrow  # noqa: F401 - it looks at its variable now

    for name, value in variables.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail whatever reaches for another machine from a test's own process."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if host and not host.endswith(RESERVED) and not is_own(host):
        raise RuntimeError(f"a test reached for {host}: tests use this machine alone")


def is_own(host: str) -> bool:
    """Whether a numeric address is this machine's. A name that is not numeric is not."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def pytest_sessionstart(session: pytest.Session) -> None:
    """Said first, too: a session that is cut off has no summary."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if sampling.ONE_TENTH and reporter and not hasattr(session.config, "workerinput"):
        reporter.write_line(sampling.the_same_tenth())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Other tenths are left out. The tests of the repository itself come first: they are few and long, and the end
    would wait for one of them.
    """
    items[:], others = sampling.of_the_tenth(items)
    sampling.skip_three_in_four(items)
    config.hook.pytest_deselected(items=others)
    items.sort(key=lambda item: item.path.parent != sampling.ROOT / "tests")


# --- memory ---------------------------------------------------------------------------------------------------------


def pytest_collection_finish() -> None:
    """Imports stay for good. Left among what the garbage collector looks through, their million objects make its full
    passes rare, and exceptions that refer to themselves hold the data of all frames that they went through until then.
    """
    sys.dont_write_bytecode = writes_no_bytecode
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nothing of one file's tests is left for the next one's, not even what the C library keeps of freed memory.

    What is in use between two files stays to the end: it is frozen, too, so that the next pass need not look at it.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
        if MALLOC_TRIM is not None:
            MALLOC_TRIM(0)


def peaks() -> dict[str, int]:
    """The most that this process held, and the largest of those that it started, in bytes."""
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    forks = sys.modules.get("tests.fork_server")
    return {
        "itself": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "started": max(started, forks.peak if forks else 0),
    }


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of pytest-xdist has ended."""
    found[node.gateway.id] = getattr(node, "workeroutput", {}).get("refinery", {})


def pytest_sessionfinish(session: pytest.Session) -> None:
    close_connections()
    mine = {"peaks": peaks(), "chosen": sampling.chosen}
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["refinery"] = mine
        return
    if not found:
        found["tests"] = mine
    if too_large() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def close_connections() -> None:
    """Those that a process keeps for its next request, to servers of tests: warnings of the interpreter's end are none
    of a test's."""
    for name in ("gcs_client.close", "s3_client.forget_clients"):
        module, _, function = name.partition(".")
        loaded = sys.modules.get(f"refinery.loader.storage.{module}")
        if loaded is not None:
            getattr(loaded, function)()


def too_large() -> list[str]:
    """Processes beyond the limit, in words."""
    held = [(name, size) for name, end in found.items() for size in end.get("peaks", {}).values() if size > PEAK_LIMIT]
    return [f"a process of {name} held {size:,} bytes, allowed are {PEAK_LIMIT:,}" for name, size in held]


# --- summary --------------------------------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many faults and crashes were lived through (tests record a "fault cell" each, or their "crash points"), what
    the seed chose, and what memory it took.
    """
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            counts[name] += value if isinstance(value, int) else 1
    lines = [f"{counts[name]} {name}s passed" for name in ("fault cell", "crash point") if counts[name]]
    if lines:
        terminalreporter.write_line(", ".join(lines))
    chosen = {name: counts for end in found.values() for name, counts in end.get("chosen", {}).items()}
    if sampling.ONE_TENTH:
        kept, count = chosen.get(sampling.NODES, (0, 0))
        terminalreporter.write_line(f"{kept} of {count} tests, all cells: {sampling.the_same_tenth()}")
    elif sampling.ALL:
        terminalreporter.write_line(f"all cells, {sampling.SEED}={sampling.seed()}")
    else:
        some = [f"{name} {kept} of {count}" for name, (kept, count) in sorted(chosen.items()) if kept < count]
        terminalreporter.write_line(f"{sampling.SEED}={sampling.seed()} chose: {', '.join(some) or 'nothing'}")
    sizes = [
        f"{name} {end['peaks']['itself'] / 1e6:,.0f} MB, what it started {end['peaks']['started'] / 1e6:,.0f} MB"
        for name, end in sorted(found.items())
        if "peaks" in end
    ]
    terminalreporter.write_line(f"peak memory: {'; '.join(sizes)}")
    for line in too_large():
        terminalreporter.write_line(line, red=True)
