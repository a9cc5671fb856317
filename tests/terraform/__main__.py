"""terraform/ by Terraform: `python -m tests.terraform [--standin]`. Format, validate, all of its tests, and plans.

Nothing needs an account, and nothing is made. Where the real provider cannot be installed, a stand-in checks instead.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.terraform.engine import UNMOCKED, ready

STEPS = (
    ("fmt", ("fmt", "-check", "-diff", "-recursive")),
    ("validate", ("validate", "-no-color")),
    ("test, with a mocked provider", ("test", "-no-color")),
    ("test, plans without a mock", ("test", "-no-color", f"-test-directory={UNMOCKED}")),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.terraform", description=__doc__)
    parser.add_argument(
        "--standin", action="store_true", help="the stand-in, even where the real provider is installed"
    )
    standin = parser.parse_args().standin
    failed = []
    with tempfile.TemporaryDirectory() as folder, ready(Path(folder), standin) as copy:
        print(f"terraform-test: provider: {copy.provider}", flush=True)
        for title, arguments in STEPS:
            begun = time.monotonic()
            done = copy.run(*arguments)
            lines = (done.stdout + done.stderr).splitlines()
            result = next((line for line in reversed(lines) if line.startswith(("Success!", "Failure!"))), "")
            if done.returncode != 0:
                failed.append(title)
                print("\n".join(lines))
            print(
                f"terraform-test: {title}: {result or done.returncode} ({time.monotonic() - begun:.0f} s)", flush=True
            )
        print(f"terraform-test: provider: {copy.provider}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
