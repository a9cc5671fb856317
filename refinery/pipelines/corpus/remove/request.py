"""What is asked to go: lists of addresses, hosts and ids as sorted keys, licences and sources by name, a rule.

A list of ten million lines is 240 MB of keys and line numbers, whatever its lines are long, and is read as a stream.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import CHUNK
from refinery.transforms.core.address.host import host_name, host_of, is_address
from refinery.transforms.core.address.normalise import normalise_address
from refinery.transforms.core.address.page_address import page_address
from refinery.transforms.core.safe_text import printable
from refinery.transforms.filter.rules.expression import ExpressionError, Rule, column_types, compile_rule
from refinery.transforms.redaction.redact_address import redact_address

KEY = np.dtype("S16")  # a hash, or a document's id: compares like bytes of one length
LICENCE = "license"
WHERE, BENCHMARK = "where", "benchmark"
BY_OTHERS = ("copies", "sources")  # columns that other documents decide
POSITIONS = ("token_offset",)  # of a document in its shard, which another takedown moves
URLS, HOSTS, DOCUMENTS = LISTS = ("urls", "hosts", "documents")
ID = re.compile(r"[0-9a-f]{32}")
HOST = re.compile(r"[^\s/?#@:]+")
WITH_PORT = re.compile(r"(?:\[([^\]]*)\]|([^\[\]:]*))(?::[0-9]{1,5})?")  # [IPv6]:port, or name:port
MAX_LINE = 64 << 10  # bytes: a longer line is not one of a list
WORD = re.compile(r"[\w.+:-]+")  # of a licence expression: an SPDX identifier, or AND, OR, WITH


class BadList(ValueError):
    """A line of a list that says nothing. One line, which names the file and the line."""


@dataclass(frozen=True)
class Keys:
    """A list. keys: sorted, each once. lines: where in its file each was found first. sha256: of the file."""

    keys: NDArray[np.bytes_]
    lines: NDArray[np.int64]
    sha256: str
    count: int

    def find(self, keys: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """The line of each of `keys`, 0 for those that are not in the list."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.lines[place], 0)


@dataclass(frozen=True)
class Request:
    """What goes. lists: by the names in LISTS. licences, sources: exact names. where: over columns of provenance."""

    lists: Mapping[str, Keys] = field(default_factory=dict)
    licences: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    where: Rule | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the provenance that it asks for beside those of every document."""
        return frozenset((LICENCE,) if self.licences else ()) | frozenset(self.where.names if self.where else ())

    def plain(self) -> dict[str, Any]:
        """What decides the answer, and nothing of what the lists say."""
        lists = {name: {"lines": keys.count, "sha256": keys.sha256} for name, keys in sorted(self.lists.items())}
        found = {"lists": lists, "licences": sorted(self.licences), "sources": sorted(self.sources)}
        return found if self.where is None else {**found, "where": self.where.text}

    @property
    def lasting(self) -> "Request":
        """What may be asked of the new version, too: without a rule over what other documents decide, which is asked of
        the corpus as it was."""
        return replace(self, where=None) if self.where and set(self.where.names) & set(BY_OTHERS) else self

    def says(self, names: Collection[str]) -> bool:
        """Whether columns of these names alone can say that a row is asked for."""
        return bool(self.lists or self.sources or (self.where and set(self.where.names) <= set(names)))

    def match(self, rows: Mapping[str, Sequence[Any]]) -> list[str]:
        """Which line asks for each row, "" where none does: "urls:3" is line 3 of --urls.

        rows: columns of one length: id (bytes) or none, url, source, and those of `columns` as far as there are any.
        What needs a column that is not there asks for nothing. Cost: about 20 microseconds a row with addresses, 5 with
        hosts or a rule, next to nothing without either.
        """
        found = [""] * len(rows["source"])
        if DOCUMENTS in self.lists and "id" in rows:
            self._note(found, DOCUMENTS, np.array(rows["id"], KEY))
        if URLS in self.lists:
            self._note(found, URLS, np.array([url_key(url) for url in rows["url"]], KEY))
        if HOSTS in self.lists:
            known = self.lists[HOSTS]
            for row, url in enumerate(rows["url"]):
                if not found[row] and url:
                    lines = known.find(np.array([text_key(name) for name in domains(host_of(url))], KEY))
                    if len(lines) and lines.any():
                        found[row] = f"{HOSTS}:{lines[np.argmax(lines > 0)]}"
        if self.sources:
            for row, source in enumerate(rows["source"]):
                if not found[row] and source in self.sources:
                    found[row] = f"source:{source}"
        if self.licences and LICENCE in rows:
            for row, licence in enumerate(rows[LICENCE]):
                if not found[row] and licence:
                    found[row] = next((f"licence:{each}" for each in self.licences if names(licence, each)), "")
        rule = self.where
        if rule is not None and all(name in rows for name in rule.names):
            for row in range(len(found)):
                if not found[row] and rule({name: rows[name][row] for name in rule.names}):
                    found[row] = WHERE
        return found

    def _note(self, found: list[str], name: str, keys: NDArray[np.bytes_]) -> None:
        lines = self.lists[name].find(keys)
        for row in np.flatnonzero(lines).tolist():
            found[row] = found[row] or f"{name}:{lines[row]}"


def asked_words(request: str, rule: str = "") -> str:
    """What `Request.match` and the search for benchmarks say, in words. rule: that of --where.

    >>> asked_words("urls:3"), asked_words("source:web")
    ('line 3 of --urls', '--source web')
    """
    kind, _, value = request.partition(":")
    if kind in LISTS:
        return f"line {value} of --{kind}"
    if request == WHERE:
        return f"--where {rule}".rstrip()
    if kind == BENCHMARK:
        return f"--benchmarks, {', '.join(each.removeprefix(f'{BENCHMARK}:') for each in request.split())}"
    return f"--{kind} {value}" if kind in ("source", "licence") else request


def where_rule(text: str, schema: pa.Schema) -> Rule:
    """The rule of --where over the columns of a corpus' provenance. Raises ValueError, one line with the place of the
    mistake."""
    types = {name: kind for name, kind in column_types(schema).items() if name not in POSITIONS}
    try:
        return compile_rule(text, types)
    except ExpressionError as error:
        raise ValueError(f"--where: {error}") from None


def names(expression: str, licence: str) -> bool:
    """Whether an SPDX expression is that licence, or names it among others. Upper and lower case are one."""
    wanted = licence.casefold()
    return expression.casefold() == wanted or wanted in (word.casefold() for word in WORD.findall(expression))


def text_key(text: str) -> bytes:
    """16 bytes of blake2b."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY.itemsize).digest()


def url_key(url: str) -> bytes:
    """The key of an address: of its one spelling, as `url_dup` compares; of the text itself where it is not an
    address. Of a copy of a page the page's."""
    page = page_address(url)
    return text_key(normalise_address(page) or page.strip())


def domains(host: str) -> Iterator[str]:
    """A host and the domains above it, the host first; of an IP address the address alone."""
    yield host
    while not is_address(host) and "." in host:
        host = host.partition(".")[2]
        yield host


def keys_of(kind: str, line: str) -> list[bytes]:
    """The keys of a line of that list. Raises ValueError, which says what is expected."""
    if kind == DOCUMENTS:
        if not ID.fullmatch(line.lower()):
            raise ValueError("32 hexadecimal digits are expected, as `refinery trace` prints ids")
        return [bytes.fromhex(line)]
    if kind == HOSTS:
        return [text_key(_listed_host(line))]
    if not line.isprintable():
        raise ValueError("an address is expected")
    # An address may hold what the run took for a credential: then the corpus has it redacted.
    return list({url_key(line), url_key(redact_address(line))})


def _listed_host(line: str) -> str:
    """The host of a line, with or without a port, or of a whole address, as `host_of` spells it. Raises ValueError for
    what is not a host, and for patterns, which no host would match."""
    if "/" in line:
        host = host_of(line)
    elif is_address(line):
        host = line.lower()
    else:
        ipv6, name = found.groups() if (found := WITH_PORT.fullmatch(line)) else ("", "")
        host = (ipv6 or "").lower() or host_name(name or "")
    if host.startswith((".", "*")):
        below = host.lstrip("*.")
        raise ValueError(
            f"a host is expected, no pattern: {printable(below[:60])} covers itself and all hosts below it"
        )
    if not is_address(host) and ("." not in host or not HOST.fullmatch(host)):
        raise ValueError("a host with a dot is expected, such as example.com, which covers those below it")
    return host


def read_list(kind: str, path: str) -> Keys:
    """A list from a file, local, gs:// or s3://, gzip or not: a line each, without blank ones and
    those that begin with #.

    Raises BadList for a line that says nothing of its kind, and for a list without any; OSError for a file that cannot
    be read. Memory: 24 bytes a line, and twice that while they are sorted.
    """
    keys, lines, count, digest = bytearray(), [], 0, hashlib.sha256()
    for number, raw in _lines(path, digest):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if not text or text.startswith("#"):
                continue
            found = keys_of(kind, text)
        except UnicodeDecodeError:
            raise BadList(f"--{kind} {path}: line {number} is not UTF-8; save the file as UTF-8 text") from None
        except ValueError as error:
            raise BadList(
                f"--{kind} {path}: line {number} is {printable(raw[:60].decode(errors='replace').strip())!r}: {error}"
            ) from None
        count += 1
        for key in found:
            keys += key
            lines.append(number)
    if not count:
        raise BadList(f"--{kind} {path}: the file has no line; one entry per line is expected")
    every, where = np.frombuffer(bytes(keys), KEY), np.array(lines, np.int64)
    order = np.argsort(every, kind="stable")
    every, where = every[order], where[order]
    first = np.concatenate([[True], every[1:] != every[:-1]])
    return Keys(every[first], where[first], digest.hexdigest(), count)


def _lines(path: str, digest: Any) -> Iterator[tuple[int, bytes]]:
    """(number, line) of a file, which `digest` sees as it is stored."""
    folder, _, name = path.rpartition("/")
    store = open_store(folder or ("." if "://" not in path and not path.startswith("/") else "/"))
    with store.open(name) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
        stream.seek(0)
        text: Any = gzip.GzipFile(fileobj=stream) if path.endswith(".gz") else stream
        number = 0
        while line := _line(text, path):
            number += 1
            if len(line) == MAX_LINE and not line.endswith(b"\n"):
                raise BadList(f"{path}: line {number} is longer than {MAX_LINE} bytes; a list has an entry per line")
            yield number, line


def _line(text: Any, path: str) -> bytes:
    try:
        return bytes(text.readline(MAX_LINE))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadList(f"{path}: is cut or is not gzip ({error}); copy it again") from None


def many(values: Iterable[str]) -> tuple[str, ...]:
    """Names given one flag each or with commas, sorted, each once."""
    return tuple(sorted({part.strip() for value in values for part in value.split(",") if part.strip()}))
