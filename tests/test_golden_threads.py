"""Workers of many engines are threads: what they share must not change what they find."""

import json
import subprocess
import sys

from tests import golden


def test_threads_find_what_one_finds() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.golden_threads"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    stored = {name: part["sha256"] for name, part in json.loads(golden.FILE.read_text()).items() if name in found}
    assert found == stored
    assert len(found) >= 20
