"""What a terminal shows, as text, at several sizes."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.screen import flow, render
from refinery.pipelines.progress.words import amounts, for_terminal, human_bytes, line, percent, short_number
from refinery.pipelines.progress.work import StageCounts, Work
from tests.pipelines.progress.snapshots import PHASES, clean_snapshot


def drawn(snapshot: Snapshot, width: int, height: int = 24, colours: bool = False, **ended: float) -> list[str]:
    """The lines of the block."""
    out = io.StringIO()
    system = "standard" if colours else None
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=system, _environ={})  # type: ignore[arg-type]
    console.print(render(snapshot, ended, width, height))
    return out.getvalue().splitlines()


WIDE = """\
1/3 clean wave 2 of 3 ━━━━━━━━━━━━━━━━━━╸                    50 %      0:30 left
2/3 dedup
3/3 shards
150.0 MB of 300.0 MB   5.0 MB/s   700 documents   70 documents/s
0:20 so far   memory 1.5 GB

stage           in       kept    dropped       dead
read         1,952      1,700        250          2
extract        690        690          0          0"""

NARROW = """\
1/3 clean 2/3 ━━━━━       50 %      0:30
2/3 dedup
3/3 shards
150.0 MB of 300.0 MB   5.0 MB/s
700 documents   70 documents/s
0:20 so far   memory 1.5 GB

stage      in  kept dropped  dead
read     1.9k  1.7k     250     2
extract   690   690       0     0"""


@pytest.mark.parametrize(("width", "expected"), [(80, WIDE), (40, NARROW)])
def test_a_block(width: int, expected: str) -> None:
    assert [text.rstrip() for text in drawn(clean_snapshot(), width)] == expected.splitlines()


def test_a_wide_terminal_has_bars_of_a_bounded_length() -> None:
    assert drawn(clean_snapshot(), 300) == drawn(clean_snapshot(), 100)


@pytest.mark.parametrize("width", [1, 5, 12, 20, 33, 59, 60, 61, 120])
@pytest.mark.parametrize("height", [1, 4, 9, 12])
def test_no_line_is_wider_than_the_terminal_and_the_table_gives_way(width: int, height: int) -> None:
    lines = drawn(clean_snapshot(), width, height)
    assert all(cell_len(text) <= width for text in lines)
    assert any("stage" in text for text in lines) is (height == 12 and width >= 33)


def test_lines_stay_where_they_are_while_numbers_grow() -> None:
    early, late = clean_snapshot(), clean_snapshot(state="")
    grown = Snapshot(early.label, early.work, 99_999, 0.999, 299_999_999, 9_999, 4, 1e9, 1e5, 7e5, 9**12, late.stages)
    first, second = drawn(early, 80), drawn(grown, 80)
    assert len(first) == len(second)
    assert [text.index("%") for text in (first[0], second[0])] == [64, 64]


def test_finished_phases_keep_their_time() -> None:
    snapshot = Snapshot("3/3 shards", Work("shards", PHASES), 5.0)
    lines = drawn(snapshot, 60, clean=3600.0, dedup=61.0)
    assert "100 %" in lines[0] and lines[0].rstrip().endswith("1:00:00") and lines[1].rstrip().endswith("1:01")
    assert lines[2].startswith("3/3 shards") and "…" in lines[2] and "%" not in lines[2]
    assert drawn(snapshot, 60)[0].rstrip().endswith("100 %")  # an earlier command finished it


def test_many_stages_are_cut_with_their_number() -> None:
    stages = tuple(StageCounts(f"stage-{i}", 1, 0, 0) for i in range(20))
    lines = drawn(Snapshot("x", Work("x"), stages=stages), 80, 14)
    assert len(lines) <= 13 and lines[-1].strip() == "… 12 more"


def test_nothing_that_comes_from_outside_is_obeyed() -> None:
    evil = "\x1b[2J[bold]x[/]\r\u202e"
    stage = StageCounts(evil, 1, 0, 0)
    shown = "\n".join(drawn(Snapshot(evil, Work(evil), stages=(stage,), state=evil), 100, 24, colours=False))
    assert "\x1b[2J" not in shown and "\r" not in shown and "\u202e" not in shown and "[bold]" in shown
    assert for_terminal("a\tb\n\x1b[31m\x07\x9b2J") == "a\tb\n\\x1b[31m\\x07\\x9b2J"


def test_plain_lines() -> None:
    assert line(clean_snapshot()) == (
        "1/3 clean, wave 2 of 3  50 %  150.0 MB of 300.0 MB  5.0 MB/s  700 documents  70 documents/s  0:20  0:30 left"
        "  memory 1.5 GB  252 lost in read"
    )
    assert line(Snapshot("2/3 dedup", Work("dedup"), 3.2)) == "2/3 dedup  0:03"
    assert line(Snapshot("x", Work("x"), state="RUNNING", fraction=1.0, final=True)) == "x  RUNNING  100 %  0:00"


@pytest.mark.parametrize(
    ("fraction", "shown"), [(None, ""), (0.0, "0 %"), (0.999999, "99 %"), (1.0, "100 %"), (0.289, "28 %")]
)
def test_a_hundred_percent_is_the_end(fraction: float | None, shown: str) -> None:
    assert percent(fraction) == shown


def test_amounts_of_a_file() -> None:
    work = Work("clean", bytes=2_000, files=3)
    found = Snapshot("", work, bytes_done=1_000, files_done=1, documents=1, documents_per_second=None)
    assert list(amounts(found)) == ["1.0 kB of 2.0 kB", "1/3 files", "1 document"]
    assert human_bytes(999) == "999 B" and short_number(1_000_000) == "1.0M"


def test_items_flow_into_lines() -> None:
    assert list(flow(iter(["aaa", "bb", "ccccccccc"]), 8)) == ["aaa   bb", "cccccccc"]
    assert list(flow(iter([]), 8)) == []
