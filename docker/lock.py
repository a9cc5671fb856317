"""Write requirements-worker.txt: requirements.txt with the SHA-256 of every file that pip takes on this machine.

    python docker/lock.py > requirements-worker.txt

Run it on Linux x86_64 with Python 3.11, as the image has it. It downloads metadata, and builds what has no wheel.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
HEADER = """\
# requirements.txt with the hash of each file, for Linux x86_64 and Python 3.11: what the worker image holds.
# Made by docker/lock.py; pip refuses anything else.
"""


def resolve(requirements: Path) -> list[dict[str, Any]]:
    """What pip would install for a file of pinned requirements: entries of its report."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--no-deps", "--prefer-binary", "--quiet"]
        command = [sys.executable, "-m", "pip", "install", *options, "--report", str(report), "-r", str(requirements)]
        subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - nothing of it comes from outside
        installed: list[dict[str, Any]] = json.loads(report.read_text())["install"]
        return installed


def locked(entries: list[dict[str, Any]]) -> str:
    """One requirement per entry, with its hash, by name."""
    lines = {}
    for entry in entries:
        name, version = entry["metadata"]["name"], entry["metadata"]["version"]
        digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
        lines[name.lower()] = f"{name}=={version} --hash=sha256:{digest}\n"
    return "".join(lines[name] for name in sorted(lines))


if __name__ == "__main__":
    sys.stdout.write(HEADER + locked(resolve(ROOT / "requirements.txt")))
