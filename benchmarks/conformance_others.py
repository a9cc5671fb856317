"""Decisions that do not count in a text, by datatrove's code and by ours: language, addresses, personal data.

Needs the extra [bench].
"""

import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from datatrove.data import Document as TheirDocument
from datatrove.pipeline.filters import LanguageFilter, URLFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.utils._import_utils import ASSETS_PATH

from benchmarks.conformance_rules import Decision, Rule, theirs, values_of
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.language import LanguageParams, bundled_model, judge_language, load_language
from refinery.transforms.filter.pii import PiiParams, judge_pii, load_pseudonyms
from refinery.transforms.filter.url import UrlParams, judge_url, load_rules

LISTS = ("banned_words.txt", "banned_subwords.txt", "soft_banned_words.txt")


def language_rules(params: LanguageParams) -> Iterator[Rule]:
    """By the bundled model, for each language of the parameters."""
    for code, least in params.languages.items():
        block = LanguageFilter(code, language_threshold=params.needed(code))
        block.model.MODEL_URL = f"file://{bundled_model()}"  # otherwise it downloads lid.176.bin
        own = LanguageParams(**{**values_of(params), "languages": {code: least}})
        model = load_language(own)
        yield Rule(f"language.{code}", theirs(block), stage(partial(judge_language, model=model, params=own)))


def url_rules(params: UrlParams, folder: Path) -> Iterator[Rule]:
    """With the lists that come with datatrove, on both sides; the text is the address."""
    with tarfile.open(Path(ASSETS_PATH) / "url_filterblacklistsv0_3_0.tar.gz") as lists:
        lists.extractall(folder, filter="data")
    words = {name: _entries(Path(ASSETS_PATH) / name) for name in LISTS}
    own = UrlParams(
        domain_lists=(str(folder / "domains"),),
        address_lists=(str(folder / "urls"),),
        hard_words=words["banned_words.txt"],
        hard_parts=words["banned_subwords.txt"],
        soft_words=words["soft_banned_words.txt"],
        matching=params.matching,
    )
    rules, block = load_rules(own), URLFilter()
    block.tldextractor = type(block.tldextractor)(suffix_list_urls=())  # otherwise it downloads the suffixes

    def there(text: str) -> Decision:
        found = block.filter(TheirDocument(text="", id="0", metadata={"url": text}))
        return Decision("" if found is True else found[1])

    def here(text: str) -> Decision:
        found = judge_url(Document(b"", "", text, "", "", 0), rules, own)
        return Decision(found.reason if isinstance(found, Drop) else "")

    yield Rule("url", there, here)


def _entries(path: Path) -> tuple[str, ...]:
    lines = path.read_text().splitlines()
    words = {"".join(filter(str.isalnum, line.lower())) for line in lines if not line.startswith("#")}
    return tuple(sorted(words - {""}))


def pii_rules(params: PiiParams) -> Iterator[Rule]:
    """E-mail and IP addresses, alone and together: whether the redacted text is the same."""
    kinds = {"email": (True, False), "ip": (False, True), "email and ip": (True, True)}
    for name, (emails, ips) in kinds.items():
        block = PIIFormatter(
            emails, ips, email_replacement=params.email_replacement, ip_replacement=params.ip_replacement
        )
        own = PiiParams(**{**values_of(params), "email": emails, "ip": ips})
        judge = partial(judge_pii, pseudonyms=load_pseudonyms(own), params=own)
        yield Rule(f"pii.{name}", partial(_formatted, block), stage(judge), by_text=True)


def _formatted(block: Any, text: str) -> Decision:
    return Decision("", block.format(text))


def stage(judge: Callable[[Document], Any]) -> Callable[[str], Decision]:
    """Our stage as a decision."""

    def decide(text: str) -> Decision:
        found = judge(Document(document_id(text), text, "", "", "", 0, {}))
        inner = getattr(found, "answer", found)
        return Decision(inner.reason) if isinstance(inner, Drop) else Decision("", inner.text)

    return decide
