"""Tables of opt-outs with flipped bits: no page that was refused ever passes."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.rights.build_table import build_table
from refinery.transforms.rights.opt_out import OPT_OUT, OptOutParams, OptOuts, judge_opt_out
from refinery.transforms.rights.rule_rows import ROBOTS, RuleRow
from refinery.transforms.rights.rule_table import BLOCK, MAGIC, DamagedTable, RuleTable, check_table
from tests.transforms.rights.rights_files import CASES, as_version_1, write_table

HOSTS = 600
SAYS = [f"agents: gptbot\ndisallow: /{number}\n" + "allow: /open\n" * 40 for number in range(20)]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A table of some twenty blocks."""
    path = tmp_path_factory.mktemp("good") / "t"
    rows = (RuleRow(f"host{number}.example", ROBOTS, 20_000, number, SAYS[number % 20]) for number in range(HOSTS))
    build_table(rows, path)
    return path.read_bytes()


def refused(path: Path, number: int) -> bool:
    """Whether the page that a host forbids is dropped."""
    params = OptOutParams(tables=(str(path),), agents=("GPTBot",))
    doc = Document(b"x" * 16, "text", f"https://host{number}.example/{number % 20}", "s", "o", 0)
    answer = judge_opt_out(doc, OptOuts(params), params)
    return isinstance(answer, Answer) and isinstance(answer.result, Drop)


def header_of(data: bytes) -> tuple[int, dict[str, int]]:
    length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    return length, json.loads(data[len(MAGIC) + 8 : len(MAGIC) + 8 + length])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 1 << 40), bit=st.integers(0, 7), number=st.integers(0, HOSTS - 1))
def test_a_flipped_bit_anywhere_ends_the_run_or_changes_no_answer(
    good: bytes, tmp_path: Path, at: int, bit: int, number: int
) -> None:
    at %= len(good)
    damaged = bytearray(good)
    damaged[at] ^= 1 << bit
    path = tmp_path / "t"
    path.write_bytes(damaged)
    with contextlib.suppress(ValueError, DamagedTable):
        assert refused(path, number)
    end = header_of(good)[1]["blocks"][1]  # type: ignore[index]
    if BLOCK <= at < end:  # of data; what fills up the header's block is no part of the table
        with pytest.raises(ValueError, match="is damaged, its bytes do not have their checksum"):
            check_table(path)
        with pytest.raises(ValueError, match=r"^tables: "):
            OPT_OUT.check(OptOutParams(tables=(str(path),)))  # type: ignore[misc]


def test_every_bit_of_a_rows_blocks_is_looked_at(good: bytes, tmp_path: Path) -> None:
    """One bit in each block: those that the answer needs raise, whichever they are."""
    path = tmp_path / "t"
    raised = 0
    for block in range(1, len(good) // BLOCK):
        damaged = bytearray(good)
        damaged[block * BLOCK + 7] ^= 16
        path.write_bytes(damaged)
        try:
            assert refused(path, 5)
        except (ValueError, DamagedTable):
            raised += 1
    assert 6 <= raised < len(good) // BLOCK - 1


def test_a_table_that_rots_while_it_is_open_is_noticed(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(good)
    table = RuleTable(path)
    found = table.find(ROBOTS, "host5.example", 21_000)
    assert found is not None
    assert table.text(found[1]) == SAYS[5]
    at = good.index(SAYS[5].encode())
    with path.open("r+b") as file:
        file.seek(at + 3)
        file.write(b"X")
    with pytest.raises(DamagedTable, match=r"t: is damaged, its bytes do not have their checksum"):
        table.text(found[1])


def test_a_damaged_header_is_refused(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t"
    length = header_of(good)[0]
    for at in range(0, len(MAGIC) + 8 + length + 8, 5):
        damaged = bytearray(good)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is not a complete table of opt-outs|a table of version"):
            RuleTable(path)


def test_the_first_version_is_read_and_checked_as_a_whole(tmp_path: Path) -> None:
    path = as_version_1(Path(write_table(tmp_path)))
    check_table(path)
    for url, reason, _ in CASES:
        params = OptOutParams(tables=(str(path),), as_of="2026-03-31")
        answer = judge_opt_out(Document(b"x" * 16, "text", url, "s", "o", 0), OptOuts(params), params)
        inner = answer_of(answer).result
        assert (inner.reason if isinstance(inner, Drop) else "") == reason
    damaged = bytearray(path.read_bytes())
    damaged[header_of(bytes(damaged))[1]["sections"]["keys"][0] + 3] ^= 1  # type: ignore[index]
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="is damaged"):
        check_table(path)
