"""The text of a drafted recipe: sections with the reason for each, and what was seen of each source."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refinery.pipelines.recipe.draft.survey import Survey
from refinery.pipelines.recipe.draft.yaml_text import comment, listed, quoted, source_lines
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.transforms.read.explain import listed as listed_fields
from refinery.transforms.read.registry import readers

SHARE = 0.05  # of the documents that were looked at, from which a language is kept
PAGES = ("warc", "arc")  # formats of pages as crawlers store them
ARCHIVES = (*PAGES, "wet")


@dataclass(frozen=True)
class SourceDraft:
    """A source as it is written. fields: keys beside name and paths. survey: None where its files are still to be
    made."""

    name: str
    paths: list[str]
    fields: Mapping[str, str]
    survey: Survey | None

    @property
    def kind(self) -> str:
        return self.survey.group.kind if self.survey else ""


def recipe_text(
    name: str, sources: Sequence[SourceDraft], is_code: bool, tokenizer: str, problems: Sequence[str]
) -> str:
    """The recipe. problems: what was not read, as a comment at its end."""
    lines = [
        *comment("Written by `refinery init` from a sample of the files: read it through before the first run."),
        *comment("docs/recipes.md has every key; what is not named here has its default."),
        f"name: {quoted(name)}",
        *(["lane: code"] if is_code else []),
        "",
        *_source_section(sources),
        "",
        *(_code_sections() if is_code else _web_sections(sources)),
        *comment(
            "The tokenizer decides the ids: `refinery train-tokenizer` makes this file, or name one that you have."
        ),
        f"tokenizer: {{path: {quoted(tokenizer)}}}",
        "",
        *comment("One document in a hundred, by a hash of its id, is kept for validation."),
        "shards: {validation: 0.01}",
    ]
    if problems:
        lines += ["", *comment("What was not read, or is to be decided:")]
        lines += [line for problem in problems for line in comment(f"- {problem}")]
    return "\n".join(lines) + "\n"


def _source_section(sources: Sequence[SourceDraft]) -> Iterator[str]:
    yield from comment(
        "What is read. Every record becomes a document, a counted reason why it is none, or a dead letter."
    )
    yield "sources:"
    several = len(sources) > 1 and any(source.kind not in ARCHIVES for source in sources)
    for source in sources:
        fields: dict[str, str | int | list[str]] = {"name": source.name, "paths": source.paths}
        fields |= source.fields
        if source.kind in ARCHIVES:
            fields["domain"] = "web"
            fields |= {"priority": 1} if several else {}
        yield from source_lines(fields, _notes(source, several))


def _notes(source: SourceDraft, several: bool) -> Iterator[str]:
    """What was seen of a source, and why it is read as it is."""
    found = source.survey
    if found is None:
        yield "These files are made by `refinery acquire git`, one record for each file of a repository."
        return
    files = found.group.files
    size = show(sum(file.size for file in files if file.size > 0), "bytes")
    what = readers()[found.group.kind].name
    looked = _count(sum(found.kinds.values()), "record")
    lost = "".join(f", {name} {count:,}" for name, count in found.kinds.most_common() if name != "documents")
    yield (
        f"{_count(len(files), 'file')}, {size}, {what}. Looked at {looked} in {_count(found.files, 'file')}: "
        f"{_count(found.documents, 'document')}{lost}."
    )
    if found.names:
        yield f"Fields: {listed_fields(found.names)}."
    if found.fields.get("text_field") == "":
        yield "text_field: several fields may hold the text, see the end of this file; name one here before you run it."
    if source.kind in PAGES:
        yield "Pages of a crawl: their main text is extracted."
    if source.kind in ARCHIVES and several:
        yield "Of a copy in two sources the one with the lower priority number is kept."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _web_sections(sources: Sequence[SourceDraft]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for source in sources:
        seen.update(source.survey.languages if source.survey else {})
    has_pages = any(source.kind in PAGES or (source.survey and source.survey.html) for source in sources)
    if has_pages:
        yield from comment("Main text of HTML, by the model of a page's blocks that comes along.")
        yield from ("extract: {engine: blocks}", "")
    yield from _language_section(seen)
    yield from comment("Keys, tokens and passwords are replaced before anything is written.")
    yield from ("secrets: {action: redact}", "")
    yield from comment(
        "Rules of Gopher, C4 and FineWeb for prose; `refinery sample` shows what they drop. Off: no rules."
    )
    yield from ("heuristics: on", "")
    if any(source.kind in ARCHIVES for source in sources):
        yield from comment("Of an address that was crawled several times the newest capture is kept.")
        yield from ("url_dup: on", "")
    yield from comment("Of documents that nearly equal each other one is kept.")
    yield from ("near_dup: {threshold: 0.75}", "")
    yield from comment("Documents full of slurs and obscenities are dropped.")
    yield from ("toxicity: on", "")
    yield from comment("Addresses, numbers and other personal data are replaced.")
    yield from ("pii: {action: redact}", "")


def _language_section(seen: Counter[str]) -> Iterator[str]:
    """The languages that are kept: those above SHARE of what was looked at."""
    known = Counter({code: count for code, count in seen.items() if code})
    total = sum(seen.values())
    kept = [code for code, count in known.most_common() if count >= SHARE * total]
    if not kept:
        yield from comment(
            "Languages were not recognised in the sample: all are kept. Name some: {languages: [en, de]}."
        )
        yield from ("language: {languages: []}", "")
        return
    shares = ", ".join(f"{code} {known[code] / total:.0%}" for code in kept)
    rare = ", ".join(f"{code} {count:,}" for code, count in known.most_common() if code not in kept)
    unknown = f" In {seen['']:,} no language was sure." if seen[""] else ""
    yield from comment(
        f"Languages that are kept: those of {SHARE:.0%} or more of {total:,} documents that were looked at ({shares}). "
        f"Others are dropped{f': {rare}' if rare else ''}.{unknown}"
    )
    yield from (f"language: {{languages: {listed(kept)}}}", "")


def _code_sections() -> Iterator[str]:
    yield from comment("Keys, tokens and passwords are replaced before anything is written.")
    yield from ("secrets: {action: redact}", "")
    yield from comment("Files under permissive licences, and with `weak_copyleft` those under LGPL, MPL and the like.")
    yield from ("license: {weak_copyleft: off}", "")
    yield from comment("Vendored, generated, minified and oversized files are dropped (docs/code-lane.md).")
    yield from ("code_heuristics: on", "")
    yield from comment("E-mail addresses, names of users in paths and other personal data are replaced.")
    yield from ("pii: {action: redact}", "")
