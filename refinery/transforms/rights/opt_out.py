"""Documents whose hosts or pages refuse to have models trained on them, as of a date.

In phase 3, though it needs only an address: opt-outs change every week, and with `--reuse` a new list then costs
phase 3, no extraction and no deduplication. A document that stood for copies on other hosts takes them with it: a text
that somebody refused does not come back from where it was copied to. docs/rights.md has what that costs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import model_validator

from refinery.transforms.core.address.host import host_of, site_of
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params
from refinery.transforms.core.resources import machine_copy
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.extract.page_rights.page_notes import NO_AI, TDM_RESERVATION
from refinery.transforms.rights.agents import AI_AGENTS
from refinery.transforms.rights.host_list import HostList, levels, read_list
from refinery.transforms.rights.path_patterns import path_of
from refinery.transforms.rights.robots import parse_rules
from refinery.transforms.rights.rule_rows import (
    AI_TXT,
    EPOCH,
    HOST_LIST,
    KINDS,
    LAST_DAY,
    LISTED,
    NOTHING,
    ROBOTS,
    TDM_FILE,
    UNREACHABLE,
    day_of,
)
from refinery.transforms.rights.rule_table import MAX_HEADER, BoundedCache, RuleTable, check_table
from refinery.transforms.rights.tdm_file import parse_reservations, reservation

CACHED_HOSTS = 1 << 14
CACHED_TEXT = 8 << 20  # characters of short forms that are held ready; as rules they take some ten times that
MAX_DETAIL = 300  # characters of a rule that are shown
PAGE = "page"


class OptOutParams(Params):
    """Whose refusals are followed, and as of when."""

    tables: tuple[str, ...] = ()
    """files of `refinery opt-outs`, which record what robots.txt, ai.txt, tdmrep.json and host lists said on which
    day; local, `gs://`, `s3://` or `https://`; if several have a host's file, the newest counts; every list of hosts
    counts"""
    host_lists: tuple[str, ...] = ()
    """files, one host or domain a line, `#` starts a comment, gzip by suffix, local, `gs://` or `s3://`; an entry
    covers the host itself and all below it; costs 8 bytes a host in every worker process, so put long lists into a
    table"""
    hosts: tuple[str, ...] = ()
    """the same as in `host_lists`, inline"""
    as_of: str | None = None
    """a date such as 2026-11-23; the newest statement of a host up to that day counts; null: the newest of all"""
    agents: tuple[str, ...] = AI_AGENTS
    """user agents of robots.txt and ai.txt; a page is dropped if one of them may not fetch it"""
    every_agent: bool = True
    """whether rules for `*` hold for an agent without its own, as RFC 9309 defines; off: a host refuses only if it
    names one of `agents`, or addresses all agents in a signal about training"""
    unreachable: Literal["drop", "keep"] = "drop"
    """pages of hosts whose robots.txt could never be fetched up to that day; RFC 9309 forbids them"""
    ignore: tuple[Literal["host-list", "robots.txt", "ai.txt", "tdmrep.json", "page"], ...] = ()
    """which statements are ignored"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.as_of is not None:
            try:
                day_of(self.as_of)
            except ValueError as error:
                raise ValueError(f"as_of: {error}") from None
        for agent in self.agents:
            if not agent or agent != agent.strip() or set(agent) & set(" \t/,;:()*"):
                raise ValueError(f"agents: {agent!r} given, a product token such as GPTBot is allowed")
        return self


@dataclass(frozen=True, slots=True)
class Said:
    """What a table knows of a site: kind -> (day, key of what it says)."""

    files: tuple[tuple[int, int, int, RuleTable], ...]  # kind, day, says, table
    listed: str


class OptOuts:
    """What `OptOutParams` say, ready for use. Memory: 8 bytes a host of `host_lists`, two caches; tables are mapped."""

    def __init__(self, params: OptOutParams) -> None:
        lines = [entry for path in params.host_lists for _, entry in read_list("host_lists", path)]
        self.hosts = HostList((*lines, *params.hosts))
        self.tables = [open_table(path) for path in params.tables]
        self.last_day = LAST_DAY if params.as_of is None else day_of(params.as_of)
        self.agents = tuple(agent.lower() for agent in params.agents)
        self.kinds = [KINDS.index(kind) for kind in KINDS if kind not in params.ignore]
        self.rules: BoundedCache[Any] = BoundedCache(CACHED_TEXT)
        self.said = lru_cache(maxsize=CACHED_HOSTS)(self._said)

    def _said(self, site: str) -> Said:
        """All that is known of a site until the last day."""
        host = host_of(f"//{site}")
        listed = ""
        files = []
        if HOST_LIST in self.kinds:
            listed = self.hosts.covering(host) or next(
                (name for name in levels(host) if any(self._is_listed(table, name) for table in self.tables)), ""
            )
        for kind in self.kinds:
            found = [(table.find(kind, site, self.last_day), table) for table in self.tables if kind != HOST_LIST]
            known = [(*each, table) for each, table in found if each is not None]
            if known:  # the newest that could be fetched; of equally new ones that of the table named first
                files.append((kind, *max(known, key=lambda each: (each[1] != UNREACHABLE, each[0]))))
        return Said(tuple(files), listed)

    def _is_listed(self, table: RuleTable, host: str) -> bool:
        found = table.find(HOST_LIST, host, self.last_day)
        return found is not None and found[1] == LISTED

    def refusal(self, site: str, path: str, params: OptOutParams, tdm: int | None) -> tuple[str, str, str] | None:
        """(reason, name that is counted, rule) by which the site refuses the page at `path`, None for none. tdm: what
        the page says of mining itself, which supersedes its host's file."""
        said = self.said(site)
        if said.listed:
            return "opt-out-host", "host-list/listed", said.listed
        for kind, day, says, table in said.files:
            if says == UNREACHABLE and params.unreachable == "drop":
                return "opt-out-robots", "robots.txt/unreachable", f"robots.txt since {_date(day)}: unreachable"
            if says in (NOTHING, UNREACHABLE):
                continue
            if kind == TDM_FILE:
                rule = "" if tdm is not None else reservation(self._ready(table, says, parse_reservations), path)
                name, reason = "reserved", "opt-out-tdm"
            else:
                rules = self._ready(table, says, parse_rules)
                rule = rules.refusal(path, self.agents, params.every_agent, is_page=kind == AI_TXT)
                name = rule.partition(" ")[0]
                reason = "opt-out-robots" if kind == ROBOTS else "opt-out-ai-txt"
            if rule:
                return reason, f"{KINDS[kind]}/{name}", f"{KINDS[kind]} since {_date(day)}: {rule}"
        return None

    def _ready(self, table: RuleTable, says: int, parse: Any) -> Any:
        def make() -> tuple[Any, int]:
            text = table.text(says)
            return parse(text), 200 + len(text)

        return self.rules.get(says, make)


def _date(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()


def open_table(path: str) -> RuleTable:
    """The table at `path`, mapped. Raises ValueError for what is none, or is not there; OSError as its storage does."""
    try:
        return RuleTable(machine_copy(path, MAX_HEADER))
    except FileNotFoundError:
        raise ValueError(f"tables: {path!r} given, an existing file is allowed") from None
    except ValueError as error:
        raise ValueError(f"tables: {error}") from error


def check_opt_outs(params: OptOutParams) -> None:
    """Load all of it, and read every table from its first byte to its last. Raises ValueError and OSError."""
    known = OptOuts(params)
    for table in known.tables:
        try:
            check_table(table.path)
        except ValueError as error:
            raise ValueError(f"tables: {error}") from error


def judge_opt_out(doc: Document, known: OptOuts, params: OptOutParams) -> Document | Answer:
    """`doc`, or why its host or page refuses; with what of its host is known. Cost: some 150
    microseconds for a host that was not seen lately, else 20."""
    tdm = doc.meta.get(TDM_RESERVATION.name) if PAGE not in params.ignore else None
    refused, seen = None, list[str]()
    newest = -1
    site = site_of(doc.url) if doc.url else ""
    if site:
        refused = known.refusal(site, path_of(doc.url), params, tdm if isinstance(tdm, int) else None)
        for kind, day, says, _ in known.said(site).files:
            if says != UNREACHABLE:
                seen.append(f"known/{KINDS[kind]}")
                newest = max(newest, day)
    refused = refused or next(_page_refusals(doc, tdm, params), None)
    found = tuple(dict.fromkeys(seen))
    if refused is not None:
        reason, name, rule = refused
        return Answer(Drop(reason), (name, *found), rule[:MAX_DETAIL])
    if not found:
        return doc
    return Answer(replace(doc, meta={**doc.meta, AS_OF.name: _date(newest)}), found)


def _page_refusals(doc: Document, tdm: Any, params: OptOutParams) -> Iterator[tuple[str, str, str]]:
    if PAGE in params.ignore:
        return
    if tdm == 1:
        yield "opt-out-tdm", "page/tdm-reservation", "page: tdm-reservation"
    if no_ai := doc.meta.get(NO_AI.name):
        yield "opt-out-page", f"page/{no_ai}", f"page: {no_ai}"


def list_files(params: OptOutParams) -> tuple[str, ...]:
    """Files whose content decides the result."""
    return params.tables + params.host_lists


AS_OF = Note(
    "opt_out_as_of",
    str,
    "date since when the newest of the host's files that are known is as it is, which let the document pass",
)

OPT_OUT: Stage[OptOutParams] = Stage(
    name="opt-out",
    version=2,
    summary="Drop documents whose hosts or pages have opted out of model training, as of a date.",
    params=OptOutParams,
    judge=judge_opt_out,
    prepare=OptOuts,
    check=check_opt_outs,
    files=list_files,
    libraries=("idna",),
    concerns=("rights",),
    notes=(AS_OF,),
    reasons=(
        Reason("opt-out-host", "the host, or a domain above it, is on a list of hosts", "correct the list"),
        Reason(
            "opt-out-robots",
            "its robots.txt forbids the page to one of `agents`, or to train on it, or could not be fetched",
            "name fewer `agents`, or set `every_agent: off`",
            "RFC 9309",
        ),
        Reason(
            "opt-out-ai-txt",
            "its ai.txt forbids pages of text to one of `agents`",
            "name fewer `agents`, or set `every_agent: off`",
            "Spawning 2023",
        ),
        Reason(
            "opt-out-tdm",
            "text and data mining is reserved by tdmrep.json, an HTTP header or the page",
            "`ignore` the file or the page, if you have a licence",
            "TDM Reservation Protocol, W3C Community Group 2024",
        ),
        Reason("opt-out-page", "the page says that no model may be trained on it (`noai`, `train-ai=n`)"),
    ),
    on=False,
    hint="`refinery opt-outs` makes tables",
)
