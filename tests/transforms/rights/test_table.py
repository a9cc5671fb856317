"""Tables of opt-outs: what is looked up is what the rows say, in whatever order they came."""

import gzip
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.rights.build_table import build_table
from refinery.transforms.rights.rule_rows import (
    KINDS,
    NOTHING,
    ROBOTS,
    UNREACHABLE,
    BadRow,
    RuleRow,
    day_of,
    make_row,
    read_rows,
)
from refinery.transforms.rights.rule_table import RuleTable
from tests.transforms.rights.rights_files import ROWS, make_table, row, write_rows

DAY = "2026-01-01"

# (host, kind, fetched_at, status, body) -> what is wrong
BAD: list[tuple[tuple[Any, ...], str]] = [
    (("", "robots.txt", DAY, 200, b""), "bad-host"),
    (("nohost", "robots.txt", DAY, 200, b""), "bad-host"),
    (("a.example", "", DAY, 200, b""), "bad-kind"),
    (("a.example", "favicon.ico", DAY, 200, b""), "bad-kind"),
    (("a.example", "robots.txt", "soon", 200, b""), "bad-date"),
    (("a.example", "robots.txt", None, 200, b""), "bad-date"),
    (("a.example", "robots.txt", "9999-01-01", 200, b""), "bad-date"),
    (("a.example", "robots.txt", "1969-12-31", 200, b""), "bad-date"),
    (("a.example", "robots.txt", "0001-01-01T00:00:00+23:59", 200, b""), "bad-date"),
    (("a.example", "robots.txt", True, 200, b""), "bad-date"),
    (("a.example", "robots.txt", DAY, 20_000, b""), "bad-status"),
    (("a.example", "robots.txt", DAY, "ok", b""), "bad-status"),
    (("a.example", "robots.txt", DAY, -1, b""), "bad-status"),
    (("a.example", "robots.txt", DAY, float("inf"), b""), "bad-status"),
    (("a.example", "robots.txt", DAY, 301, b""), "redirect"),
    (("a.example", "tdmrep.json", DAY, 200, b"<html>"), "bad-json"),
    (("a.example", "ai.txt", DAY, 503, None), "unreachable"),
]


@pytest.mark.parametrize(("fields", "problem"), BAD)
def test_what_is_no_row_is_named(fields: tuple[Any, ...], problem: str) -> None:
    assert make_row(*fields) == BadRow(problem)


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("a.example", "a.example"),
        ("A.Example.:80", "a.example"),
        ("https://user:pw@a.example:443/robots.txt?x", "a.example"),
        ("http://a.example:8080/", "a.example:8080"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("http://[::1]:8080/", "::1:8080"),
        ("//a.example/b", "a.example"),
    ],
)
def test_hosts_in_one_spelling(host: str, site: str) -> None:
    found = make_row(host, "robots.txt", DAY, 404, None)
    assert isinstance(found, RuleRow) and found.site == site and found.says == NOTHING


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T23:30:00-01:00", "2026-01-03"),
        ("20260102233000", "2026-01-02"),
        (20260102, "2026-01-02"),
        ("2026-01-02 10:11:12.5Z", "2026-01-02"),
    ],
)
def test_times(given: Any, day: str) -> None:
    found = make_row("a.example", "robots.txt", given, 200, b"")
    assert isinstance(found, RuleRow) and found.day == day_of(day)


def test_the_table_is_the_same_for_rows_in_any_order(tmp_path: Path) -> None:
    tables = []
    for seed in range(3):
        rows = [*ROWS, *ROWS[:3]]
        random.Random(seed).shuffle(rows)
        make_table(tmp_path / str(seed), rows)
        tables.append((tmp_path / str(seed) / "opt-outs.table").read_bytes())
    assert tables[0] == tables[1] == tables[2]


def test_lookups_are_those_of_the_rows(tmp_path: Path) -> None:
    """Against a dictionary of all rows, for many hosts and days."""
    rng = random.Random(7)
    says = [f"agents: a{n}\ndisallow: /\n" for n in range(5)]
    known: dict[str, dict[int, Any]] = {}
    rows = []
    for number in range(6_000):
        site, day = f"host{rng.randrange(1_000)}.example", rng.randrange(20_000, 20_020)
        if day in known.get(site, {}):
            continue
        what = rng.choice([NOTHING, UNREACHABLE, *says])
        known.setdefault(site, {})[day] = what
        rows.append(RuleRow(site, ROBOTS, day, number, what))
    built = build_table(rows, tmp_path / "t")
    table = RuleTable(tmp_path / "t")
    assert built.rows.total() == len(rows) and built.texts == len(says)
    for site in [*known, "other.example"]:
        for last in range(19_998, 20_022, 3):
            days = [day for day in known.get(site, {}) if day <= last]
            answers = [day for day in days if known[site][day] != UNREACHABLE]
            newest = max(answers or days, default=None)
            found = table.find(ROBOTS, site, last)
            if newest is None:
                assert found is None
                continue
            assert found is not None
            wanted = known[site][newest]
            assert (table.text(found[1]) or found[1]) == wanted
            assert min(days) <= found[0] <= newest


def test_of_one_day_the_answer_counts_then_the_file_then_the_latest(tmp_path: Path) -> None:
    def file(name: str) -> str:
        return f"user-agent: {name}\ndisallow: /\n"

    rows = [
        row("one.example", "robots.txt", f"{DAY}T08:00:00", file("first")),
        row("one.example", "robots.txt", f"{DAY}T09:00:00", file("second")),
        row("one.example", "robots.txt", f"{DAY}T10:00:00", None, 404),
        row("one.example", "robots.txt", f"{DAY}T11:00:00", None, 503),
        row("http://two.example/", "robots.txt", DAY, file("plain")),
        row("https://two.example/", "robots.txt", DAY, file("secure")),
    ]
    for order in (rows, rows[::-1]):
        built = make_table(tmp_path / "t", order)
        table = RuleTable(tmp_path / "t" / "opt-outs.table")
        for site, agent in (("one.example", "second"), ("two.example", "secure")):
            found = table.find(ROBOTS, site, day_of(DAY))
            assert found is not None and table.text(found[1]).startswith(f"agents: {agent}\n")
        assert built.overruled == 4


def test_rows_of_every_format_are_the_same(tmp_path: Path) -> None:
    rows = [{**each, "status": each["status"] or 0} for each in ROWS]
    write_rows(tmp_path / "a.jsonl", rows)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    columns = {name: [each[name] for each in rows] for name in rows[0]}
    columns["body"] = [None if body is None else body.encode() for body in columns["body"]]
    columns["fetched_at"] = [str(at)[:10] for at in columns["fetched_at"]]
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    first, *others = (list(read_rows([str(tmp_path / name)])) for name in ("a.jsonl", "b.jsonl.gz", "c.parquet"))
    assert first == others[0] and len(first) == len(ROWS)

    def known(found: list[RuleRow | BadRow]) -> list[Any]:
        return [(each.site, each.kind, each.says) for each in found if isinstance(each, RuleRow)]

    assert known(others[1]) == known(first)


def response(url: str, status: str, body: bytes, kind: str = "response") -> bytes:
    block = f"HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n\r\n".encode() + gzip.compress(body)
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
    return head.encode() + f"Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


def test_archives_of_robots_txt(tmp_path: Path) -> None:
    parts = [
        response("https://a.example/robots.txt", "200 OK", b"user-agent: a\ndisallow: /\n"),
        response("http://a.example/robots.txt", "301 Moved", b""),
        response("https://b.example/robots.txt", "404 Not Found", b"<html>"),
        response("https://c.example/page.html", "200 OK", b"a page"),
        response("https://d.example/.well-known/tdmrep.json", "200 OK", b'[{"location":"/","tdm-reservation":1}]'),
        response("https://e.example/robots.txt", "no status", b""),
        response("https://f.example/robots.txt", "200 OK", b"", "request"),
    ]
    (tmp_path / "robotstxt.warc.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    found = list(read_rows([str(tmp_path / "robotstxt.warc.gz")]))
    rows = [each for each in found if isinstance(each, RuleRow)]
    assert [(each.site, KINDS[each.kind], each.says) for each in rows] == [
        ("a.example", "robots.txt", "agents: a\ndisallow: /\n"),
        ("b.example", "robots.txt", NOTHING),
        ("d.example", "tdmrep.json", "reserved: /\n"),
    ]
    assert [each for each in found if isinstance(each, BadRow)] == [BadRow("redirect"), BadRow("bad-http")]


def test_lists_of_hosts(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text(
        "\ufeffone.example\n# words\n*.two.example # why\n\nhttps://three.example/x\nfour\n..\n"
    )
    found = list(read_rows([], [str(tmp_path / "hosts.txt")]))
    sites = [each.site for each in found if isinstance(each, RuleRow)]
    assert sites == ["one.example", "two.example", "three.example", "four"] and found[-1] == BadRow("bad-host")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    make_table(tmp_path, ROWS)
    good = (tmp_path / "opt-outs.table").read_bytes()
    bad = tmp_path / "bad"
    for data in (b"", b"words", good[:100], good[:-5000], good.replace(b'"bits": 1', b'"bits": 9')):
        bad.write_bytes(data)
        with pytest.raises(ValueError, match="is not a complete table of opt-outs"):
            RuleTable(bad)
    bad.write_bytes(good.replace(b'"version": 2', b'"version": 7'))
    with pytest.raises(ValueError, match="a table of version 7, 1 and 2 are read"):
        RuleTable(bad)


def test_rows_that_are_all_bad_make_no_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows: none that counts \(2 bad-kind\)"):
        build_table([BadRow("bad-kind"), BadRow("bad-kind")], tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_days() -> None:
    assert date(1970, 1, 1) + timedelta(days=day_of("2026-11-23")) == date(2026, 11, 23)
    for wrong in ("2026-13-01", "today", "20261123", "1960-01-01"):
        with pytest.raises(ValueError, match="a date like 2026-11-23 is allowed"):
            day_of(wrong)
