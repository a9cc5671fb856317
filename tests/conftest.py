"""What holds for all tests."""

import ipaddress
import signal
import sys
from collections import Counter
from typing import Any

import pytest

RESERVED = (".invalid", ".test", ".example", "localhost")  # names that RFC 2606 leaves to tests


def pytest_configure() -> None:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and all that they start; some test it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(stay_here)


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many faults and crashes were lived through: tests record a "fault cell" each, or their "crash points"."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            counts[name] += value if isinstance(value, int) else 1
    lines = [f"{counts[name]} {name}s passed" for name in ("fault cell", "crash point") if counts[name]]
    if lines:
        terminalreporter.write_line(", ".join(lines))
