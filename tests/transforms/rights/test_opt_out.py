"""The stage of opt-outs: which documents are dropped, by which rule, as of which date."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.rights.opt_out import OPT_OUT, OptOutParams, OptOuts, judge_opt_out
from tests.transforms.rights.rights_files import CASES, row, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("table"))


def judged(url: str, meta: Mapping[str, Any] | None = None, **params: Any) -> tuple[str, str, Any]:
    """(reason, what rejects/ say, answer)"""
    chosen = OptOutParams(**params)
    doc = Document(b"x" * 16, "text", url, "s", "o", 0, meta or {})
    answer = judge_opt_out(doc, OptOuts(chosen), chosen)
    inner = answer_of(answer).result
    detail = answer_of(answer).summary
    return (inner.reason, detail, answer) if isinstance(inner, Drop) else ("", detail, answer)


@pytest.mark.parametrize(("url", "reason", "others"), CASES)
def test_hosts_as_of_a_date(table: str, url: str, reason: str, others: Mapping[str, str]) -> None:
    for as_of, expected in {"2026-03-31": reason, **others}.items():
        assert judged(url, tables=(table,), as_of=as_of)[0] == expected, as_of


def test_the_rule_is_said_and_counted(table: str) -> None:
    reason, detail, answer = judged("https://changed.example/a", tables=(table,))
    assert (reason, detail) == ("opt-out-robots", "robots.txt since 2026-03-05: gptbot disallow: /")
    assert answer.found == ("robots.txt/gptbot", "known/robots.txt")
    kept = judged("https://free.example/a", tables=(table,))[2]
    assert kept.result.meta == {"opt_out_as_of": "2026-01-01"} and kept.found == ("known/robots.txt",)


@pytest.mark.parametrize(
    ("url", "params", "reason"),
    [
        ("https://changed.example/a", {"agents": ("CCBot",)}, ""),
        ("https://every.example/", {"agents": ("CCBot",)}, "opt-out-robots"),
        ("https://every.example/", {"every_agent": False}, ""),
        ("https://signal.example:8080/", {"every_agent": False, "agents": ()}, "opt-out-robots"),
        ("https://down.example/", {"unreachable": "keep"}, ""),
        ("https://every.example/", {"ignore": ("robots.txt",)}, ""),
        ("https://tdm.example/x", {"ignore": ("tdmrep.json",)}, ""),
        ("https://other.example/", {"hosts": ("*.other.example",)}, "opt-out-host"),
        ("https://a.b.other.example:99/", {"hosts": ("other.example",)}, "opt-out-host"),
        ("https://other.example/", {"hosts": ("other.example",), "ignore": ("host-list",)}, ""),
        ("https://notother.example/", {"hosts": ("other.example",)}, ""),
    ],
)
def test_parameters(table: str, url: str, params: dict[str, Any], reason: str) -> None:
    assert judged(url, tables=(table,), **params)[0] == reason


@pytest.mark.parametrize(
    ("url", "meta", "params", "reason"),
    [
        ("https://tdm.example/x", {"tdm_reservation": 0}, {}, ""),  # the page supersedes its host's file
        ("https://free.example/x", {"tdm_reservation": 1}, {}, "opt-out-tdm"),
        ("", {"tdm_reservation": 1}, {}, "opt-out-tdm"),
        ("", {"no_ai": "noai"}, {}, "opt-out-page"),
        ("", {"no_ai": "noai", "tdm_reservation": 1}, {"ignore": ("page",)}, ""),
        ("https://tdm.example/x", {"tdm_reservation": 0}, {"ignore": ("page",)}, "opt-out-tdm"),
    ],
)
def test_what_the_page_says(table: str, url: str, meta: Any, params: Any, reason: str) -> None:
    assert judged(url, meta, tables=(table,), **params)[0] == reason


def test_of_several_tables_the_newest_file_counts(table: str, tmp_path: Path) -> None:
    newer = write_table(tmp_path, [row("every.example", "robots.txt", "2026-06-01", "user-agent: *\nallow: /\n")])
    for tables in ((table, newer), (newer, table)):
        assert judged("https://every.example/", tables=tables)[0] == ""
        assert judged("https://every.example/", tables=tables, as_of="2026-05-31")[0] == "opt-out-robots"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"as_of": "yesterday"}, "as_of: 'yesterday' given, a date like 2026-11-23 is allowed"),
        ({"agents": ("GPTBot/1.0",)}, "agents: 'GPTBot/1.0' given, a product token such as GPTBot is allowed"),
        ({"ignore": ("cookies",)}, "ignore"),
    ],
)
def test_parameters_that_make_no_sense(params: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        OptOutParams(**params)


def test_files_that_are_missing_or_foreign(tmp_path: Path) -> None:
    assert OPT_OUT.prepare is not None
    with pytest.raises(ValueError, match=r"tables: '/nowhere/t' given, an existing file is allowed"):
        OPT_OUT.prepare(OptOutParams(tables=("/nowhere/t",)))
    (tmp_path / "words").write_text("words")
    with pytest.raises(ValueError, match=r"tables: .*words: is not a complete table of opt-outs"):
        OPT_OUT.prepare(OptOutParams(tables=(str(tmp_path / "words"),)))


def test_one_hostile_host_fills_no_memory(tmp_path: Path) -> None:
    """Many hosts with large files of their own: what is held ready is bounded."""
    files = ("".join(f"disallow: /{number}/{path}\n" for path in range(1_000)) for number in range(20))
    rows = [row(f"h{n}.example", "robots.txt", "2026-01-01", f"user-agent: *\n{file}") for n, file in enumerate(files)]
    params = OptOutParams(tables=(write_table(tmp_path, rows),))
    known = OptOuts(params)
    known.rules.most = 100_000
    for number in range(20):
        doc = Document(b"x" * 16, "text", f"https://h{number}.example/{number}/999", "s", "o", 0)
        assert isinstance(judge_opt_out(doc, known, params), Answer)
    assert known.rules.held <= known.rules.most and 0 < len(known.rules.found) < 20


@pytest.mark.parametrize(("url", "reason", "others"), CASES)
def test_a_copy_of_a_page_is_refused_as_the_page_is(
    table: str, url: str, reason: str, others: Mapping[str, str]
) -> None:
    for name in (f"urn:text:{url}", f"urn:view:{url}", f"urn:X-wpull:snapshot?url={quote(url, safe='')}"):
        assert judged(name, tables=(table,), as_of="2026-03-31")[0] == reason
    assert judged("urn:text:https://a.other.example/", hosts=("other.example",))[0] == "opt-out-host"
