"""Partial results of a check: share k of n of a corpus' pieces, written by any machine, joined later by one.

A partial is a sealed JSON file, `partial-00003-of-00016.json`, written last, with what was asked and found, and beside
it the runs of rows that it lists with their checksums. Files that no partial lists, of attempts that were killed, are
ignored.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import seal, unseal
from refinery.loader.storage.store import StorageConflict, Store, size_and_crc32c
from refinery.pipelines.corpus.verify.keyed_rows import TABLES, Run
from refinery.pipelines.corpus.verify.pieces import Finding, Piece, Question

KIND, VERSION = "refinery verify partial", 2
NAME = re.compile(r"partial-([0-9]{5})-of-([0-9]{5})\.json")
SHOWN = 5  # missing shares in a message


@dataclass(frozen=True)
class Share:
    """Share `number`, from 0, of `count`.

    >>> Share.parse("3/16")
    Share(number=3, count=16)
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Raises ValueError for anything but K/N with 0 <= K < N."""
        found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
        share = cls(*map(int, found.groups())) if found else cls(0, 0)
        if not share.number < share.count:
            raise ValueError(
                f"--shards: {text!r} given, K/N is expected, with K from 0 to N - 1, such as 0/16 or 15/16"
            )
        return share

    @property
    def name(self) -> str:
        return f"partial-{self.number:05d}-of-{self.count:05d}"

    def of(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Its pieces: every `count`-th, so shares are of about one size."""
        return pieces[self.number :: self.count]


def identity(question: Question, manifest: str, pieces: Sequence[Piece]) -> dict[str, Any]:
    """What all partials of one check agree on: the manifest's SHA-256, what is asked, and the pieces."""
    names = hashlib.sha256()
    for piece in pieces:
        names.update(repr((piece.kind, piece.path, piece.number, piece.part)).encode("utf-8", "backslashreplace"))
    return {
        "manifest": manifest,
        "samples": question.samples,
        "partitions": question.partitions,
        "pieces": names.hexdigest(),
        **({"writer": [question.writer.name, question.writer.version]} if question.writer else {}),
    }


def find_partial(place: Store, share: Share, asked: Mapping[str, Any]) -> list[Finding] | None:
    """What the partial of this share found, None if it is not there. Raises ValueError (FormatError) if it is damaged
    or of another check."""
    if place.size(f"{share.name}.json") is None:
        return None
    return _read(place, share, asked)[0]


def find_runs(place: Store, share: Share, asked: Mapping[str, Any]) -> list[Run] | None:
    """The runs of the partial of this share, whose bytes are checked; None if it is not there. Raises the same errors
    as `find_partial`, and for damaged runs. Cost: one read of them."""
    if place.size(f"{share.name}.json") is None:
        return None
    runs = _read(place, share, asked)[1]
    check_runs(place, runs, asked["partitions"])
    return runs


def write_partial(
    place: Store, share: Share, asked: Mapping[str, Any], findings: Sequence[Finding], runs: Sequence[Run], folder: Path
) -> list[Run]:
    """Write a partial to `place`, from runs in `folder`. One that another process has written meanwhile is as good.
    -> the runs in `place`, of the partial that is there."""
    listed = publish_runs(place, runs, folder, share.name)
    payload = {
        "schema_version": VERSION,
        "kind": KIND,
        "asked": dict(asked),
        "share": share.number,
        "shares": share.count,
        "findings": [_sealable(asdict(finding)) for finding in findings],
        "runs": [asdict(run) for run in listed],
    }
    try:
        place.create(f"{share.name}.json", seal(payload))
    except StorageConflict:
        return _read(place, share, asked)[1]
    return listed


def publish_runs(place: Store, runs: Sequence[Run], folder: Path, into: str) -> list[Run]:
    """Write runs in `folder` to `place`, each under a name of its bytes: another attempt may have grouped its rows
    otherwise."""
    listed = []
    for run in runs:
        name = f"{into}/{run.name.removesuffix('.rows')}-{run.crc32c}-{run.size}.rows"
        place.create(name, folder / run.name)
        listed.append(replace(run, name=name))
    return listed


def _sealable(value: Any) -> Any:
    """Plain data without lone surrogates, which no JSON has; a terminal shows them escaped, too."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_sealable(key): _sealable(each) for key, each in value.items()}
    return [_sealable(each) for each in value] if isinstance(value, list | tuple) else value


def refuse_other_counts(place: Store, count: int) -> None:
    """Raises ValueError where partial results of another number of shares are, which could not be merged."""
    for share in _shares_there(place):
        if share.count != count:
            raise ValueError(
                f"{place.root}: partial results of {share.count} shares are there, and {count} are to be written; use "
                "a folder for each check"
            )


def _shares_there(place: Store) -> list[Share]:
    return [Share(int(match[1]), int(match[2])) for name in place.list() if (match := NAME.fullmatch(name))]


def read_partials(
    place: Store, asked: Mapping[str, Any], pieces: Sequence[Piece], again: str
) -> tuple[list[Finding], list[Run]]:
    """The findings of all pieces in order, and all runs. again: the command of a share, in backquotes, without its
    number.

    Raises ValueError (FormatError) where a share is missing, damaged or of another check.
    """
    there = _shares_there(place)
    counts = sorted({share.count for share in there})
    if len(counts) != 1:
        held = f"partial results of {' and of '.join(map(str, counts))} shares are there" if counts else "none is there"
        command = f"{again[:-1]}K/N`"
        raise ValueError(f"{place.root}: {held}; all of one check are expected: {command} with K from 0 to N - 1")
    count = counts[0]
    missing = sorted(set(range(count)) - {share.number for share in there})
    if missing:
        named = ", ".join(map(str, missing[:SHOWN])) + (", …" if len(missing) > SHOWN else "")
        command = f"{again[:-1]}{missing[0]}/{count}`"
        raise ValueError(f"{place.root}: {len(missing)} of {count} shares are missing: {named}; run {command}")
    findings, runs = [Finding() for _ in pieces], list[Run]()
    for number in range(count):
        share = Share(number, count)
        own, written = _read(place, share, asked)
        if len(own) != len(share.of(pieces)):
            raise FormatError(f"{share.name}.json: {len(own)} findings, {len(share.of(pieces))} expected")
        findings[number::count] = own
        runs += written
    return findings, runs


def check_runs(place: Store, runs: Sequence[Run], partitions: int) -> None:
    """Raises FormatError for the first run whose bytes are not those that its partial lists, or that does not hold rows
    of so many partitions. Cost: one read of all."""
    for run in runs:
        _check_run(place, run, partitions)


def _read(place: Store, share: Share, asked: Mapping[str, Any]) -> tuple[list[Finding], list[Run]]:
    name, where = f"{share.name}.json", place.url(f"{share.name}.json")
    payload = unseal(place.read(name), where)
    if payload.get("kind") != KIND:
        raise FormatError(f"{where}: no partial result of `refinery verify`; remove it")
    if payload.get("schema_version") != VERSION:
        version = payload.get("schema_version")
        raise FormatError(f"{where}: schema version {version!r:.80} found, {VERSION} expected; make it again")
    theirs = payload.get("asked")
    if theirs != asked:
        theirs = theirs if isinstance(theirs, dict) else {}
        other = ", ".join(key for key, value in asked.items() if theirs.get(key) != value)
        raise ValueError(
            f"{where}: the partial result of another check ({other} differ): of another corpus or version of it, with "
            "or without --full or --against, or from before its work/ changed; use a folder for each check"
        )
    if (payload.get("share"), payload.get("shares")) != (share.number, share.count):
        held = f"{payload.get('share')}/{payload.get('shares')}"
        raise FormatError(f"{where}: it is share {held!r:.40} under the name of another; remove it and run this share")
    try:
        findings = [Finding(**each) for each in payload["findings"]]
        runs = [Run(**each) for each in payload["runs"]]
        if any(run.table not in TABLES or not run.name.startswith(f"{share.name}/") for run in runs):
            raise ValueError("runs")
        if not all(_is_finding(each) for each in findings):
            raise ValueError("findings")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"{where}: a field is missing or wrong ({type(error).__name__}: {error})") from error
    return findings, runs


def _is_finding(each: Finding) -> bool:
    texts = each.failures, each.content
    lists = all(isinstance(found, list) and all(isinstance(text, str) for text in found) for found in texts)
    return lists and isinstance(each.facts, dict)


def _check_run(place: Store, run: Run, partitions: int) -> None:
    where, again = place.url(run.name), f"remove {run.name.partition('/')[0]}.json and run its share again"
    try:
        with place.open(run.name) as stream:
            found = size_and_crc32c(stream)
    except FileNotFoundError:
        raise FormatError(f"{where}: missing; {again}") from None
    if found != (run.size, run.crc32c):
        have, want = (f"{size} bytes, crc32c {crc32c}" for size, crc32c in (found, (run.size, run.crc32c)))
        raise FormatError(f"{where}: {have} found; {want} expected; {again}")
    starts = np.frombuffer(place.read(run.name, 0, 8 * (partitions + 1)), np.uint8)
    rows, rest = divmod(run.size - 8 * (partitions + 1), TABLES[run.table].itemsize)
    places = starts.view("<u8") if len(starts) == 8 * (partitions + 1) else np.empty(0, "<u8")
    if rest or rows < 0 or places[:1].any() or places[-1:].tolist() != [rows] or (places[1:] < places[:-1]).any():
        raise FormatError(f"{where}: no rows of {partitions} partitions; {again}")
