"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and all that they start; some test it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
