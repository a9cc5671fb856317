"""`refinery browse` as a user starts it, for tests that need the whole of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.pipelines.inputs import ROOT


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The address that it prints. At the end Ctrl-C, after which it must have ended well."""
    command = [sys.executable, "-W", "error", "-m", "refinery", "browse", *map(str, arguments)]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        yield address
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, ""), errors
        assert "token=" not in errors and "Traceback" not in errors, errors
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
