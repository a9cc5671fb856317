"""Documents dropped for where they come from: block lists of domains, patterns and words.

The order and the two kinds of words follow RefinedWeb's URL filter (Penedo et al. 2023, section G.1), which FineWeb
kept: one hard word drops a page, soft words must come together.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, Self
from urllib.parse import unquote

import numpy as np
import re2
from numpy.typing import NDArray
from pydantic import model_validator

from refinery.transforms.core.address.host import host_of, is_address
from refinery.transforms.core.address.page_address import page_address
from refinery.transforms.core.document import Document, Drop, hash64
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.stage import Reason, Stage
from refinery.transforms.rights.host_list import HostList, read_list

if TYPE_CHECKING:
    from tldextract import TLDExtract

# fmt: off
# Small on purpose: unmistakable in any context. Long lists belong into files, such as those of the University of
# Toulouse (UT1), which RefinedWeb and FineWeb use.
HARD_WORDS = ("blowjob", "camgirl", "camgirls", "hentai", "porn", "porno", "pornos", "xnxx", "xvideos", "xxx")
HARD_PARTS = ("pornhub", "freeporn", "pornvid", "sexcam", "xxxvid")
SOFT_WORDS = (
    "adult", "bet", "bets", "betting", "bingo", "blackjack", "bonus", "cam", "cams", "casino", "casinos", "cialis",
    "dating", "erotic", "escort", "escorts", "fetish", "fuck", "gambling", "hookup", "jackpot", "milf", "naked",
    "nude", "nudes", "poker", "roulette", "sex", "sexy", "slot", "slots", "viagra", "webcam",
)
# fmt: on

WORD = re.compile(r"[^\W_]+")
NO_LETTER = re.compile(r"[^a-zA-Z0-9]+")
REFINEDWEB = "Penedo et al. 2023, section G.1"
MAX_URL = 8192  # characters looked at: longer ones exist, but say nothing more about their site


class UrlParams(Params):
    """Which addresses are unwanted."""

    LATER: ClassVar[tuple[str, ...]] = ("address_lists", "matching")

    domain_lists: tuple[str, ...] = ()
    """files, one host or domain a line, `#` starts a comment, gzip by suffix, local, `gs://` or `s3://`; an entry
    covers the host itself and all below it"""
    pattern_lists: tuple[str, ...] = ()
    """files with one RE2 expression a line, searched anywhere in the address (`(?i)` ignores case)"""
    address_lists: tuple[str, ...] = ()
    """files with one whole address a line, as in the crawl"""
    blocked_domains: tuple[str, ...] = ()
    """the same as in `domain_lists`, inline"""
    blocked_patterns: tuple[str, ...] = ()
    """the same as in `pattern_lists`, inline"""
    hard_words: tuple[str, ...] = HARD_WORDS
    """a page is dropped if one of these is a word of its address"""
    hard_parts: tuple[str, ...] = HARD_PARTS
    """a page is dropped if one of these is anywhere in its address, even inside a word"""
    soft_words: tuple[str, ...] = SOFT_WORDS
    """a page is dropped if `soft_limit` different ones of these are words of its address"""
    soft_limit: Positive = 2
    """number of different `soft_words` that drop a page"""
    matching: Literal["own", "datatrove"] = "own"
    """`datatrove`: as in FineWeb's code; the registered domain or the whole host must be listed, words are runs of
    ASCII letters and digits in the case and escapes of the address, and `hard_parts` are searched in its letters and
    digits put together"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("hard_words", "soft_words"):
            for word in getattr(self, name):
                if not WORD.fullmatch(word):
                    raise ValueError(f"{name}: {word!r} given, a single word of letters and digits is allowed")
        if "" in self.hard_parts:
            raise ValueError("hard_parts: '' given, one character or more is allowed")
        compile_patterns([("blocked_patterns", pattern) for pattern in self.blocked_patterns])
        return self


class UrlRules:
    """What `UrlParams` say, ready for use: 8 bytes a listed domain or address: lists of millions fit a worker."""

    def __init__(
        self, domains: HostList, addresses: Iterable[str], patterns: re2.Set | None, params: UrlParams
    ) -> None:
        self.domains = domains
        keys = np.fromiter((hash64("address", address) for address in addresses), np.uint64)
        self.addresses: NDArray[np.uint64] = np.unique(keys)
        self.patterns = patterns
        self.hard_words = frozenset(word.lower() for word in params.hard_words)
        self.soft_words = frozenset(word.lower() for word in params.soft_words)
        self.exact = params.matching == "datatrove"
        cut = NO_LETTER.sub if self.exact else lambda _, part: part
        parts = "|".join(re.escape(part) for each in params.hard_parts if (part := cut("", each.lower())))
        self.hard_parts = re.compile(parts) if parts else None
        self.host_reason = lru_cache(maxsize=65_536)(self._host_reason)

    def lists_address(self, url: str) -> bool:
        key = np.uint64(hash64("address", url))
        at = int(np.searchsorted(self.addresses, key))
        return at < len(self.addresses) and bool(self.addresses[at] == key)

    def words_and_whole(self, url: str) -> tuple[set[str], str]:
        """The words of an address, and what `hard_parts` are searched in."""
        if self.exact:
            return set(NO_LETTER.split(url)), NO_LETTER.sub("", url).lower()
        plain = unquote(url).lower()
        return set(WORD.findall(plain)), plain

    def _host_reason(self, host: str) -> str:
        if self.exact:  # an address of numbers has neither a domain nor a name
            if is_address(host):
                return ""
            registered = _suffixes(private=False).extract_str(host).top_domain_under_public_suffix
            listed = self.domains.lists
            return "blocked-domain" if listed(registered) else "blocked-host" if listed(host) else ""
        entry = self.domains.covering(host)
        if not entry:
            return ""
        return "blocked-domain" if entry == registered_domain(host) else "blocked-host"


def judge_url(doc: Document, rules: UrlRules, params: UrlParams) -> Document | Drop:
    """`doc`, or why its address is unwanted; a document without one passes.

    Drops: blocked-domain (its registered domain is listed), blocked-host (another level is), blocked-address,
    blocked-pattern, hard-word, soft-words. Cost: about 5 microseconds for a known host.
    """
    if not doc.url:
        return doc
    page = page_address(doc.url)  # what is refused is refused of copies of a page, too
    url = page[:MAX_URL]
    host = host_of(url)
    reason = rules.host_reason(host) if host else ""
    if reason:
        return Drop(reason)
    if len(rules.addresses) and rules.lists_address(page):
        return Drop("blocked-address")
    if rules.patterns is not None and rules.patterns.Match(url.encode("utf-8", "replace")):
        return Drop("blocked-pattern")
    words, whole = rules.words_and_whole(url)
    if not words.isdisjoint(rules.hard_words) or (rules.hard_parts is not None and rules.hard_parts.search(whole)):
        return Drop("hard-word")
    if len(words & rules.soft_words) >= params.soft_limit:
        return Drop("soft-words")
    return doc


@cache
def _suffixes(private: bool) -> "TLDExtract":
    """Splits hosts by the suffix list that ships with tldextract; nothing is fetched and nothing is cached on disk.

    private: also by suffixes that companies give to others, such as github.io.
    """
    from tldextract import TLDExtract  # imports requests, which only its updates of the list need

    return TLDExtract(
        suffix_list_urls=(), cache_dir=None, fallback_to_snapshot=True, include_psl_private_domains=private
    )


def registered_domain(host: str) -> str:
    """What somebody registered or was given: example.co.uk, somebody.github.io; "" for addresses and bare suffixes."""
    return _suffixes(private=True).extract_str(host).top_domain_under_public_suffix


def compile_patterns(patterns: list[tuple[str, str]]) -> re2.Set | None:
    """One automaton for all (place, expression); None for none. Raises ValueError that names the place."""
    if not patterns:
        return None
    options = re2.Options()
    options.max_mem = 256 << 20
    options.log_errors = False
    joined = re2.Set.SearchSet(options)
    for place, pattern in patterns:
        try:
            re2.compile(pattern, options)  # a Set complains on stderr instead
        except re2.error as error:
            raise ValueError(f"{place}: {pattern!r} given, an RE2 expression is allowed ({error})") from error
        joined.Add(pattern)
    joined.Compile()
    return joined


@lru_cache(maxsize=4)
def load_rules(params: UrlParams) -> UrlRules:
    """Lists read and patterns compiled, once per process. Raises ValueError for a missing or broken list."""
    domains = [entry for path in params.domain_lists for _, entry in read_list("domain_lists", path)]
    patterns = [("blocked_patterns", pattern) for pattern in params.blocked_patterns]
    for path in params.pattern_lists:
        patterns += read_list("pattern_lists", path)
    addresses = (entry for path in params.address_lists for _, entry in read_list("address_lists", path))
    hosts = HostList((*domains, *params.blocked_domains))
    return UrlRules(hosts, addresses, compile_patterns(patterns), params)


def list_files(params: UrlParams) -> tuple[str, ...]:
    """Files whose content decides the result."""
    return params.domain_lists + params.address_lists + params.pattern_lists


URL = Stage(
    name="url",
    version=2,
    summary="Drop documents whose address is on a block list or consists of unwanted words.",
    concerns=("harmful",),
    params=UrlParams,
    judge=judge_url,
    prepare=load_rules,
    files=list_files,
    libraries=("google-re2", "idna", "tldextract"),
    reasons=(
        Reason(
            "blocked-domain",
            "the registered domain is listed in `domain_lists` or `blocked_domains`",
            "correct the list",
        ),
        Reason(
            "blocked-host",
            "the host itself, or a level of it that is not the registered domain, is listed",
            "correct the list",
        ),
        Reason("blocked-address", "the whole address is listed in `address_lists`", "correct the list"),
        Reason(
            "blocked-pattern",
            "an expression of `pattern_lists` or `blocked_patterns` matches",
            "correct the expression",
        ),
        Reason("hard-word", "one of `hard_words` or `hard_parts` in the address", "give your own list", REFINEDWEB),
        Reason("soft-words", "`soft_limit` different `soft_words`", "raise `soft_limit`", REFINEDWEB),
    ),
)
