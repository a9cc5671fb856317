"""Makes docs/pictures: `make pictures`, which makes the demo first.

The drawings are made from the code and from the counts of the demo (funnel.json); a test holds them equal to what this
script makes. The pictures of pages (PAGES) are taken by a headless Chromium, so their bytes depend on its fonts.
"""

import dataclasses
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from drawings import Row, funnel, funnel_rows, phases

from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.lanes.web import LANE
from refinery.pipelines.shell.help_text import all_commands

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
CORPUS = ROOT / "out" / "demo" / "corpus"
COUNTS = PICTURES / "funnel.json"
PAGES = {  # command -> its arguments that write a page of HTML
    "plan": ["--html"],
    "report": [CORPUS.relative_to(ROOT).as_posix(), "--output"],
}
WIDTH, COLOURS = 1000, 128
HEIGHTS = {"plan": 640, "report": 1360}  # of the report, all of its first tab


def drawings() -> dict[str, str]:
    """Name of a file -> SVG."""
    rows = [Row(**row) for row in json.loads(COUNTS.read_text())]
    return {"phases.svg": phases(LANE), "funnel.svg": funnel(rows, "the demo")}


def count() -> None:
    """Writes the demo's counts."""
    rows = funnel_rows(json.loads((CORPUS / "manifest.json").read_text())["funnel"])
    lines = ",\n".join(f" {json.dumps(dataclasses.asdict(row))}" for row in rows)
    COUNTS.write_text(f"[\n{lines}\n]\n")


def photograph() -> None:
    """A picture of the top of every page that a command writes."""
    from playwright.sync_api import sync_playwright

    commands = dict(all_commands(build_parser()))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        raise SystemExit("pictures: needs Chromium on the path; on Debian: apt-get install chromium")
    with sync_playwright() as library, tempfile.TemporaryDirectory() as folder:
        browser = library.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, arguments in PAGES.items():
            if name not in commands:
                continue
            html = Path(folder) / f"{name}.html"
            command = [sys.executable, "-m", "refinery", name, *arguments, str(html)]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHTS[name]}, color_scheme="light")
            page.goto(html.as_uri())
            save(page.screenshot(), PICTURES / f"{name}.png")
        browser.close()


def save(png: bytes, path: Path) -> None:
    """A screenshot with a palette: a third of the bytes, and nobody sees the difference."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    count()
    for name, text in drawings().items():
        (PICTURES / name).write_text(text)
    photograph()
    for path in sorted(PICTURES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
