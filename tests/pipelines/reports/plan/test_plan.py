"""`refinery plan` on the command line."""

import json
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import build_parser, execute
from refinery.pipelines.reports.plan.inputs import INPUTS
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.pipelines.inputs import run


def test_without_arguments_it_prints_the_reference_case() -> None:
    text = run("plan").stdout
    for figure in (
        "0.95 %",
        "6.23 PB",
        "6 PB",
        "4,960",
        "78",
        "3.17 M tokens/s",
        "1,550",
        "12.7 MB/s",
        "14.3 T tokens",
    ):
        assert f" {figure}  " in text, figure
    assert "232 TB more raw text is needed" in text
    assert "not verified" in text


def test_json_has_every_quantity() -> None:
    said = json.loads(run("plan", "--tokens", "1T", "--hosts", 10, "--retention", "quality=20%", "--json").stdout)
    assert said["quantities"]["tokens"] == 1e12
    assert said["quantities"]["hosts"] == 10
    assert said["retentions"]["quality"] == 0.2


def test_a_run_and_its_page(corpus: Path, tmp_path: Path) -> None:
    said = json.loads(run("plan", "--from", corpus, "--share", "10%", "--json").stdout)
    assert said["from"]["times"] == 10
    assert said["from"]["forecast"] is None
    assert "not independent" in said["from"]["why"]
    page = tmp_path / "folder" / "plan.html"
    run("plan", "--from", corpus, "--share", "10%", "--html", page)
    assert page.read_text().startswith("<!doctype html>")
    again = run("plan", "--html", page, check=False)
    assert (again.returncode, "exists" in again.stderr) == (2, True)
    run("plan", "--html", page, "--overwrite")
    assert 'data-preset="measured"' not in page.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--tokens", "-3"],
            "refinery: --tokens: '-3' given, a number such as 64, 10k, 100B (billion) or",
        ),
        (["--pass-days", "0"], "refinery: --pass-days: 0 given, a number above 0 and up to 1e+30 is allowed\n"),
        (["--retention", "extract=0"], "refinery: --retention extract: '0' given, a share above 0 and up to 1 is "),
        (["--retention", "extract"], "refinery: --retention: 'extract' given, STAGE=SHARE is expected"),
        (["--retention", "x=0.5"], "refinery: retention: no stage 'x'; the stages are read, extract, "),
        (["--preset", "x"], "refinery: preset: 'x' given, reference, lazy, strict is allowed\n"),
        (["--share", "1%"], "refinery: --share and --work belong to --from PREFIX; "),
        (["--hosts", "3", "--pass-days", "2"], "refinery: --hosts and --pass-days: give one"),
        (["--from", "x", "--retention", "pii=1"], "refinery: --retention changes a preset"),
        (["--frm", "x"], "refinery: unknown argument: --frm; "),
    ],
)
def test_wrong_commands(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["plan", *words]) is ExitCode.USAGE
    assert capsys.readouterr().err.startswith(message)


def test_every_input_is_a_flag() -> None:
    args, _ = build_parser().parse_known_args(["plan"])
    assert all(getattr(args, each.name) == "" for each in INPUTS)
