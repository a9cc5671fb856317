"""The charting library that pages carry: Chart.js (https://www.chartjs.org), as published, in vendor/.

It draws on a canvas, evaluates no text as code and sets no style from text, so a strict content security policy holds.
This module is the one place that says which version it is; `python -m refinery.pipelines.reports.pages.chart_library`
fetches that version again with npm, in a checkout, and prints its digest.
"""

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from refinery.pipelines.reports.pages.page import own_file

NAME, VERSION = "chart.js", "4.6.1"
SHA256 = "87364cc2b2a76a6684929e7d6b80b18a897794db38400caff1fcf1791c6925d2"
SCRIPT, LICENCE = "chart.umd.min.js", "chart.licence.txt"
FILES = {"package/dist/chart.umd.min.js": SCRIPT, "package/LICENSE.md": LICENCE}
SOURCE_MAP = f"//# sourceMappingURL={SCRIPT}.map"  # a page has no such file; a browser's tools would ask for it


def chart_library() -> str:
    """The library as a page carries it, with its notice of copyright.

    Raises RuntimeError if the file is not the published one.
    """
    text = own_file(f"vendor/{SCRIPT}", __package__)
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != SHA256:
        raise RuntimeError(
            f"vendor/{SCRIPT} has sha256 {found}, {SHA256} expected: this installation is damaged, install it again"
        )
    return text.replace(SOURCE_MAP, "").rstrip()


def licence() -> str:
    """The library's licence, which a copy of it must carry."""
    return own_file(f"vendor/{LICENCE}", __package__)


def main() -> None:
    """Fetch VERSION into vendor/."""
    folder = Path(__file__).parent / "vendor"
    with TemporaryDirectory() as scratch:
        packed = ["npm", "pack", "--json", f"{NAME}@{VERSION}"]
        said = subprocess.run(packed, cwd=scratch, check=True, capture_output=True)  # noqa: S603
        with tarfile.open(Path(scratch) / json.loads(said.stdout)[0]["filename"]) as archive:
            for path, name in FILES.items():
                stream = archive.extractfile(path)
                if stream is None:
                    raise FileNotFoundError(path)
                (folder / name).write_bytes(stream.read())
    print(f"{SCRIPT}: sha256 {hashlib.sha256((folder / SCRIPT).read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
