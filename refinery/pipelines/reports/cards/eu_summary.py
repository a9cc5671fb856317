"""The European Commission's template of the public summary of training content, filled in as far as the data say it.

Regulation (EU) 2024/1689 (AI Act), Article 53(1)(d); the template is the annex to C(2025) 5235 of 24 July 2025, whose
sections and numbers are used here. It is about a model, and a corpus is a part of what one is trained on: what the
provider alone can know is marked, or comes from `--about`. Nothing is concluded that the files do not say.
"""

from collections.abc import Iterator

from refinery.loader.format.removals import REASONS
from refinery.pipelines.published.statistics.published import Hosts
from refinery.pipelines.reports.cards.about import TO_FILL
from refinery.pipelines.reports.cards.collected import UNKNOWN, Collection, collections
from refinery.pipelines.reports.cards.facts import NOTHING, CardFacts
from refinery.pipelines.reports.cards.front_matter import language_codes
from refinery.pipelines.reports.cards.handling import handling_lines
from refinery.pipelines.reports.cards.markdown import code, quoted, table, text
from refinery.pipelines.reports.cards.tables import made_by, totals_line
from refinery.pipelines.reports.run.words import share

BANDS = ((10**9, "less than 1 billion tokens"), (10**13 + 1, "1 billion to 10 trillion tokens"))
LARGEST_BAND = "more than 10 trillion tokens"
LARGE = 0.03  # of all publicly available data sets: from there on one is listed by name
SMALL_PROVIDERS = 1_000  # names that they list at most


def eu_summary(facts: CardFacts) -> bytes:
    """The summary, the same bytes each time."""
    found = collections(facts.inputs)
    lines = [*_head(facts), *_general(facts), *_sources(facts, found), *_processing(facts)]
    return ("\n".join(lines).rstrip() + "\n").encode()


def size_band(tokens: int) -> str:
    """The template's range for so many tokens."""
    return next((name for limit, name in BANDS if tokens < limit), LARGEST_BAND)


def answer(what: str, words: str) -> str:
    """A line of the template."""
    return f"- **{what}:** {words or f'*{TO_FILL}*'}"


def _head(facts: CardFacts) -> Iterator[str]:
    yield "# Public summary of training content"
    yield ""
    yield (
        "Template of the European Commission for general-purpose AI models, Article 53(1)(d) of Regulation (EU) "
        f"2024/1689, filled in for one corpus: {text(facts.manifest.name)} ({totals_line(facts.manifest)}), made by "
        f"{made_by(facts.manifest)}, manifest SHA-256 {code(facts.sha256)}. A model that is trained on other data too "
        "needs these as well."
    )
    yield ""
    yield answer("Version of the summary", code(facts.sha256[:12]))
    yield answer("Last update", text(facts.about.published))
    yield ""


def _general(facts: CardFacts) -> Iterator[str]:
    about, totals = facts.about, facts.manifest.totals
    tokens = totals.get("tokens")
    size = f"not counted in tokens ({totals['bytes']:,} bytes of text)"
    if tokens is not None:
        size = f"{size_band(tokens)} ({tokens:,} tokens of its tokenizer)"
    yield from ("## 1. General information", "")
    yield from ("### 1.1. Provider identification", "")
    yield answer("Provider name and contact details", text(", ".join(filter(None, (about.creator, about.contact)))))
    yield answer("Authorised representative name and contact details", text(about.representative))
    yield from ("", "### 1.2. Model identification", "")
    yield answer("Versioned model name(s)", text(about.models))
    yield answer("Model dependencies", text(about.model_dependencies))
    yield answer("Date of placement of the model on the Union market", text(about.placed_on_market))
    yield from ("", "### 1.3. Modalities, overall training data size and other characteristics", "")
    yield from table(
        ("modality", "training data size", "types of content"),
        [("text", size, text(_types(facts)))],
    )
    yield "No image, audio or video is in the corpus."
    yield ""
    yield answer("Latest date of data acquisition or collection", text(about.last_acquired))
    yield answer("Whether the model is trained on new data after that date", text(about.collection_goes_on))
    yield answer("Linguistic characteristics", _languages(facts))
    other = f"{facts.manifest.totals['documents']:,} documents after pre-processing, each counted once per epoch."
    yield answer("Other relevant characteristics", other)
    yield ""


def _types(facts: CardFacts) -> str:
    kinds = ["source code"] if facts.category("code_language") else []
    html = {str(source.get("name")) for source in facts.sources if source.get("content") == "html"}
    found = collections(facts.inputs)
    pages = {each.source for each in found if each.archives or each.source in html}
    others = sorted({each.source for each in found} - pages)
    if pages and others:
        kinds += [f"text of web pages (source {', '.join(sorted(pages))})", f"other text (source {', '.join(others)})"]
    elif pages:
        kinds.append("text of web pages")
    said = ", ".join(kinds)
    return f"{said}; more exactly: {TO_FILL}" if said else f"text; more exactly: {TO_FILL}"


def _languages(facts: CardFacts) -> str:
    category = facts.category("language")
    if category is None or not language_codes(facts):
        return "not measured in this corpus"
    whole = sum(value.documents for value in category.values) + (category.other.documents if category.other else 0)
    shares = [f"{code(value.value)} {share(value.documents, whole)}" for value in category.values if value.value]
    more = f", and others {share(category.other.documents, whole)}" if category.other else ""
    return f"languages by share of documents, as a classifier says: {', '.join(shares)}{more}"


def _sources(facts: CardFacts, found: list[Collection]) -> Iterator[str]:
    about = facts.about
    public = [each for each in found if each.kind != UNKNOWN]
    other = [each for each in found if each.kind == UNKNOWN]
    yield from ("## 2. List of data sources", "")
    if not facts.inputs:
        yield from ("The input files of this corpus are not recorded.", "")
    yield from ("### 2.1. Publicly available datasets", "")
    if public:
        yield answer("Publicly available datasets were used", "yes, as the names of input files say. Modality: text")
        yield answer(
            "Large publicly available datasets", "those with more than 3 % of the size of all of them are marked"
        )
        yield ""
        yield from _collections(facts, public, sum(each.bytes for each in public))
    else:
        yield answer("Publicly available datasets were used", f"no name of an input file says so; {TO_FILL}")
        yield ""
    if other:
        yield (
            "Of the following inputs their names do not say whether they are publicly available data sets (2.1), "
            "private ones (2.2), crawled by the provider (2.3) or other data (2.4 to 2.6); that is "
            f"*{TO_FILL}*:"
        )
        yield ""
        yield from _collections(facts, other, 0)
    yield from ("### 2.2. Private non-publicly available datasets obtained from third parties", "")
    yield from _words("2.2.1. Commercially licensed, and 2.2.2. from other third parties", about.licensed_data)
    yield from ("### 2.3. Data crawled and scraped from online sources", "")
    yield from _words("Crawlers, their names, purposes and behaviour", about.crawlers)
    yield answer("Period of data collection", _period(found))
    yield answer("Type of modality covered", "text")
    yield ""
    yield from _domains(facts)
    yield from ("### 2.4. User data", "")
    yield from _words("Data from users of the model or of the provider's services", about.user_data)
    yield from ("### 2.5. Synthetic data", "")
    yield from _words("Synthetic data made to train the model", about.synthetic_data)
    yield from ("### 2.6. Other sources of data", "")
    yield answer("Other sources", "")
    yield ""


def _words(what: str, words: str) -> Iterator[str]:
    yield answer(what, "in the provider's words:" if words else "")
    yield ""
    if words:
        yield from quoted(words)


def _collections(facts: CardFacts, found: list[Collection], public: int) -> Iterator[str]:
    kept = {row["source"]: row["kept"] for row in facts.manifest.funnel}
    rows = []
    for each in found:
        size = f"{each.bytes:,}" + (" (large)" if public and each.bytes > LARGE * public else "")
        crawls = ", ".join(code(name) for name in sorted(each.crawls)[:50])
        names = crawls or ("" if each.kind == UNKNOWN else code(each.kind))
        months = f"{each.first} to {each.last}" if each.first else "not said"
        documents = kept.get(each.source, {"documents": 0})["documents"]
        rows.append((text(each.source), text(each.kind), names, f"{each.files:,}", size, months, f"{documents:,}"))
    head = ("source", "kind", "names", "files", "bytes read", "captures", "documents of the source in the corpus")
    yield from table(head, rows)


def _period(found: list[Collection]) -> str:
    first = min((each.first for each in found if each.first), default="")
    last = max((each.last for each in found if each.last), default="")
    if not first:
        return ""
    return f"captures from {first[5:]}/{first[:4]} to {last[5:]}/{last[:4]}, as the names of archives say"


def _domains(facts: CardFacts) -> Iterator[str]:
    """The list of hosts, and how far it reaches."""
    yield "**Summary of the most relevant domain names**"
    yield ""
    point = facts.published
    hosts = point.hosts if point else None
    if point is None or hosts is None:
        yield from ("Hosts of this corpus were not counted.", "")
        return
    if not hosts.top:
        yield from ("No document of this corpus has an address.", "")
        return
    total = (point.total or NOTHING).bytes
    yield _reach(hosts, total)
    yield ""
    yield from table(
        ("host", "bytes of text", "share", "documents"),
        (
            (code(host.host), f"{host.bytes:,}", share(host.bytes, total), f"{host.documents:,}")
            for host in sorted(hosts.top, key=lambda host: (-host.bytes, host.host))
        ),
    )


def _reach(hosts: Hosts, total: int) -> str:
    """Which of the names that the template asks for are listed."""
    wanted, small = -(-hosts.distinct // 10), min(-(-hosts.distinct // 20), SMALL_PROVIDERS)
    number = f"{hosts.distinct:,}" if hosts.exact else f"{hosts.distinct_low:,} to {hosts.distinct_high:,} (estimated)"
    held = share(sum(host.bytes for host in hosts.top), total)
    asked = (
        f"Documents come from {number} hosts. The template asks for the top 10 % by size of content, {wanted:,} names; "
        f"of small and medium-sized providers for 5 % or {SMALL_PROVIDERS:,}, whichever is less, {small:,} names."
    )
    if len(hosts.top) >= hosts.distinct and hosts.exact:
        return f"{asked} All {len(hosts.top):,} hosts are listed, by size."
    least = "these are not proven to be the largest by size, since the run chose them by number of documents" + (
        "" if hosts.exact else f", and counts may be too large by up to {hosts.bytes_error:,} bytes"
    )
    if len(hosts.top) >= wanted:
        listed = f"Listed are the {len(hosts.top):,} hosts with most documents, by size"
        return f"{asked} {listed} ({held} of the bytes); {least}."
    return (
        f"{asked} This list does not reach that far: it has the {len(hosts.top):,} hosts with most documents, which "
        f"hold {held} of the bytes, and {wanted - len(hosts.top):,} names are missing; {least}. The provenance files "
        "have the address of every document, from which the rest can be counted."
    )


def _processing(facts: CardFacts) -> Iterator[str]:
    about = facts.about
    yield from ("## 3. Data processing aspects", "")
    yield from ("### 3.1. Respect of reservation of rights from the text and data mining exception", "")
    yield "What the run did, by the stages that are declared to take care of it:"
    yield ""
    yield from handling_lines(facts, "rights")
    yield from _words("Further measures, code of practice", about.opt_outs)
    yield from ("### 3.2. Removal of illegal content", "")
    yield "What the run did; none of these stages decides what is illegal:"
    yield ""
    for concern in ("harmful", "personal-data", "credentials"):
        yield from list(handling_lines(facts, concern))[:-1]
    yield ""
    yield from _words("Further measures", about.illegal_content)
    yield from ("### 3.3. Other information", "")
    copies = sum(documents for stage in facts.stages for why, (documents, _) in stage.dropped.items() if why in REASONS)
    entered = facts.stages[0].entered if facts.stages else 0
    if entered:
        yield (
            f"Of {entered:,} records that were read, {facts.manifest.totals['documents']:,} documents are in the "
            f"corpus; {copies:,} were removed as copies of others. The data card has every reason with its number."
        )
        yield ""
