"""What each one-step command switches on: the sections of its recipe, from what the command line or Python says."""

from collections.abc import Sequence
from typing import Any

from refinery.pipelines.run.steps.step import ID_FIELD, SOURCE, Part, Step
from refinery.transforms.core.wording import nearest
from refinery.transforms.dedup.cut_lines import LINES
from refinery.transforms.dedup.cut_substrings import SUBSTRINGS
from refinery.transforms.dedup.near_duplicates import found_share
from refinery.transforms.dedup.signatures import SignatureParams
from refinery.transforms.dedup.stages import URL_DUPLICATES

FOUND = 0.9995  # share of the pairs at the threshold of near copies that have a band in common
RULE_SETS = ("basic", "gopher", "repetition", "c4", "fineweb")  # of `heuristics`
PUBLISHED = {"gopher": ("gopher", "repetition")}  # what a paper's name stands for, where that is more than one set
LANGUAGE_LABELS = ("language", "language_score")
PII_TYPES = ("email", "phone", "ip", "mac", "iban", "card", "imei", "ssn", "national_id", "user_path")


def dedup_step(
    exact: bool = False,
    near: float | None = None,
    lines: bool = False,
    substrings: bool = False,
    url: bool = False,
    against: Sequence[str] = (),
    prefer: str = "first",
) -> Step:
    """Remove copies. exact: documents of equal text, up to white space. near: those whose shingles of five words have
    at least this Jaccard similarity, which is computed of the texts. lines, substrings: cut what is repeated. url: keep
    one document of an address. against: prefixes of published corpora whose documents win. Without any of these: near
    at 0.8. prefer: which copy stays."""
    if not (exact or near is not None or lines or substrings or url):
        near = 0.8
    parts = [Part("which of several copies stays", {"rank": {"prefer": prefer}})]
    whole = exact or near is not None or bool(against)
    if whole:
        parts.append(Part("equal texts, up to white space", {"exact_dup": True}))
    if near is not None:
        bands, rows = near_layout(near)
        found = {"threshold": near, "bands": bands, "rows": rows, "verify": "exact"}
        parts.append(Part("nearly equal texts, by the similarity of the texts themselves", {"near_dup": found}))
    if against:
        corpora = [{"prefix": prefix} for prefix in against]
        parts.append(Part("copies of these corpora go, too", {"reference_corpora": corpora}))
    if lines:
        parts.append(Part("lines that are in many documents are cut from all", {LINES.key: {"min_chars": 1}}))
    if substrings:
        parts.append(Part("runs of 50 words are cut from all but one", {SUBSTRINGS.key: {"min_chars": 1}}))
    if url:
        parts.append(Part("one document of each address, the newest", {URL_DUPLICATES.key: True}))
    labels = (
        *(("duplicate", "duplicate_of", "copies", "cluster", "cluster_size") if whole or url else ()),
        *(("lines_cut", "line_spans") if lines else ()),
        *(("chars_cut", "substring_spans") if substrings else ()),
        "reason",
    )
    return Step("dedup", parts, labels, flags={"near_dup.threshold:": "--near:"})


def near_layout(threshold: float) -> tuple[int, int]:
    """Bands and rows that find all but one in 2,000 pairs of just this similarity, and practically all more similar
    ones. More candidates than a recipe's defaults have: they are compared exactly."""
    permutations, rows = SignatureParams().permutations, 1
    while rows < permutations and found_share(threshold, permutations, rows + 1) >= FOUND:
        rows += 1
    return permutations // rows, rows


def filter_step(rules: Sequence[str] = (), languages: Sequence[str] = ()) -> Step:
    """Judge documents by published rules. rules: of RULE_SETS; Gopher's name stands for both of its sets. languages:
    the codes to keep. Raises ValueError for a set that there is not, and where nothing is asked for."""
    if not rules and not languages:
        raise ValueError(f"--rules: nothing given, some of {', '.join(RULE_SETS)} are needed, or --language")
    for name in rules:
        if name not in RULE_SETS:
            raise ValueError(f"--rules: {name!r:.60} given, {nearest(name, RULE_SETS)}")
    parts = []
    if languages:
        parts.append(Part("documents in these languages stay", {"language": {"languages": list(languages)}}))
    if rules:
        on = {each for name in rules for each in PUBLISHED.get(name, (name,))}
        sets: dict[str, Any] = {name: name in on for name in RULE_SETS}
        parts.append(Part("published rules of quality", {"heuristics": sets}))
    labels = (*(LANGUAGE_LABELS if languages else ()), *(("rule_spans",) if "c4" in rules else ()))
    return Step("filter", parts, ("keep", "reason", *labels), flags={"language.languages:": "--language:"})


def redact_step(only: Sequence[str] = (), secrets: bool = True) -> Step:
    """Replace personal data, and credentials. only: these types, of PII_TYPES. Raises ValueError for another one."""
    for name in only:
        if name not in PII_TYPES:
            raise ValueError(f"--only: {name!r:.60} given, {nearest(name, PII_TYPES)}")
    types: dict[str, Any] = {name: name in only for name in PII_TYPES} if only else {"action": "redact"}
    parts = [Part("personal data in the text", {"pii": types})]
    if secrets:
        parts.append(Part("keys, tokens and passwords in the text", {"secrets": {"action": "redact"}}))
    labels = ("pii", "pii_types", "pii_spans", *(("secrets", "secret_types", "secret_spans") if secrets else ()))
    return Step("redact", parts, labels, discard=True)


def language_step(keep: Sequence[str] = ()) -> Step:
    """Say which language each text is in. keep: drop texts in others."""
    on = [Part("the language of each text", {"language": {"languages": list(keep)} if keep else True})]
    flags = {"language.languages:": "--keep:"}
    return Step("detect-language", on, () if keep else LANGUAGE_LABELS, always=True, flags=flags)


def extract_step(html_field: str = "", markdown: bool = False, into: str = "") -> Step:
    """Take the main text out of HTML. html_field: of rows, "" of archives and pages. markdown: with headings, items and
    tables marked. into: the new field of rows that gets it; "" where the output is shards."""
    parts = [Part("the main text of pages", {"extract": {"output": "markdown" if markdown else "text"}})]
    if into:
        parts.append(Part("it goes into a new field of each row", {"rows": {"texts": "all", "into": into}}))
    fields = {"text_field": html_field, "content": "html"} if html_field else {ID_FIELD: None}  # of rows alone
    flags = {f"source {SOURCE}: text_field:": "--html-field:"} if html_field else {}
    return Step("extract", parts, ("reason",) if into else (), always=True, fields=fields, flags=flags)
