"""The data card of a corpus: README.md for people and for Hugging Face's hub.

Its sections answer the questions of "Datasheets for Datasets" (Gebru et al. 2021): what it consists of, how it was
collected and processed, what it is good for, how it is loaded, made again and kept up. What is not known is said.
"""

from collections.abc import Iterator, Sequence

from refinery.loader.format.manifest import MANIFEST, Manifest
from refinery.pipelines.published.statistics.published import Category, Point, Series
from refinery.pipelines.reports.cards.facts import NOTHING, CardFacts
from refinery.pipelines.reports.cards.front_matter import (
    DEFAULT,
    PROVENANCE,
    corpus_data,
    front_matter,
    load_program,
    shard_configurations,
)
from refinery.pipelines.reports.cards.handling import handling_lines
from refinery.pipelines.reports.cards.markdown import code, fenced, quoted, table, text, to_yaml
from refinery.pipelines.reports.cards.reproduce import reproduce
from refinery.pipelines.reports.cards.tables import funnel_table, made_by, reasons_table, sizes, totals_line
from refinery.pipelines.reports.run.words import share

HOSTS = 20  # that are listed
VALUES = 24  # of a category
UNKNOWN = "Not stated by the publisher."
WHERE = "a row of a Parquet file beside its shard"


def data_card(facts: CardFacts) -> bytes:
    """The card, the same bytes each time. Its size is bounded, except for the recipe and the number of stages."""
    lines = [*front_matter(corpus_data(facts)), *_title(facts), *_composition(facts)]
    lines += [*_sources(facts), *_processing(facts), *_care(facts), *_limits(facts), *_uses(facts)]
    lines += [*_loading(facts), *reproduce(facts), *_maintenance(facts)]
    return ("\n".join(lines).rstrip() + "\n").encode()


def _title(facts: CardFacts) -> Iterator[str]:
    manifest = facts.manifest
    yield f"# {text(manifest.name)}"
    yield ""
    what = ": texts as tokens" if manifest.has_tokens else ""
    yield (
        f"{totals_line(manifest)}{what}, for training language models. Made by {made_by(manifest)}; its manifest has "
        f"the SHA-256 {code(facts.sha256)}."
    )
    yield ""
    yield from _said(facts.about.description)


def _said(words: str, otherwise: str = "") -> Iterator[str]:
    if words:
        yield from quoted(words)
    elif otherwise:
        yield from (otherwise, "")


def _composition(facts: CardFacts) -> Iterator[str]:
    manifest = facts.manifest
    yield "## What it consists of"
    yield ""
    yield from _shards(manifest)
    yield _format(manifest)
    if any(shard.provenance_file for shard in manifest.shards):
        where = "in the columns beside its text" if manifest.written.has_text_column else WHERE
        yield (
            f"The provenance of every document (address, source, input file and offset, scores) is {where}. Which "
            "documents are held out is decided by a hash of their ids."
        )
    yield ""
    point = facts.published
    if point:
        for category in point.categories:
            if category.name != "source":
                yield from _category(category, manifest.has_tokens)
        yield from _numbers(point.series)
        yield from _hosts(point)


def _shards(manifest: Manifest) -> Iterator[str]:
    units = ("documents", "tokens") if manifest.has_tokens else ("documents",)
    sums: dict[tuple[str, str], list[int]] = {}
    for shard in manifest.shards:
        counts = (1, *(getattr(shard, unit) for unit in units), sum(file.size for file in shard.files))
        entry = sums.setdefault((shard.split, shard.domain), [0] * len(counts))
        for place, value in enumerate(counts):
            entry[place] += value
    yield from table(
        ("split", "domain", "shards", *units, "size"),
        (
            (text(split), text(domain), *(f"{each:,}" for each in counts), sizes(size))
            for (split, domain), (*counts, size) in sums.items()
        ),
    )


def _format(manifest: Manifest) -> str:
    """What shards are, in a sentence."""
    if not manifest.has_tokens and not manifest.written.has_texts:
        return "Its rows are in files of the shape of the inputs, beside the corpus; shards hold their provenance."
    if not manifest.has_tokens:
        endings = ", ".join(code(ending) for _, ending in manifest.written.own)
        return f"Shards are files of texts ({endings}), written by {code(manifest.written.writer)}."
    special = manifest.tokenizer
    pairs = (("BOS", special.bos_id), ("EOS", special.eos_id))
    ends = ", ".join(f"{name} {id_}" for name, id_ in pairs if id_ is not None) or "neither BOS nor EOS"
    return (
        f"Tokens are {manifest.dtype} ids of {code(special.path)} ({special.vocab_size:,} entries; {ends}), in "
        "Megatron's indexed format."
    )


def _category(category: Category, has_tokens: bool) -> Iterator[str]:
    whole = sum(value.documents for value in category.values) + (category.other.documents if category.other else 0)
    yield f"### By {text(category.name)}"
    yield ""
    yield f"{text(category.meaning).capitalize()}."
    yield ""
    listed = category.values[:VALUES]
    rows = [
        (
            code(value.value) or "not known",
            f"{value.documents:,}",
            share(value.documents, whole),
            *(["" if value.tokens is None else f"{value.tokens:,}"] if has_tokens else []),
        )
        for value in listed
    ]
    rest = whole - sum(value.documents for value in listed)
    if rest:
        rows.append(("all others", f"{rest:,}", share(rest, whole), *([""] if has_tokens else [])))
    yield from table((text(category.name), "documents", "share", *(["tokens"] if has_tokens else [])), rows)


def _numbers(series: Sequence[Series]) -> Iterator[str]:
    yield "### Lengths and scores"
    yield ""
    rows = []
    for each in series:
        if len(each.all.quantiles) == 5:
            low, _, middle, _, high = each.all.quantiles
            rows.append((text(each.name), text(each.meaning), *(f"{value:,.4g}" for value in (low, middle, high))))
    yield from table(("number", "meaning", "5 %", "median", "95 %"), rows)


def _hosts(point: Point) -> Iterator[str]:
    hosts = point.hosts
    if hosts is None or not hosts.top:
        return
    number = f"{hosts.distinct:,}" if hosts.exact else f"about {hosts.distinct:,}"
    yield "### Hosts"
    yield ""
    without = hosts.without_host.documents
    yield f"Documents come from {number} hosts; {without:,} have no address. Those with most documents:"
    yield ""
    total = point.total or NOTHING
    yield from table(
        ("host", "documents", "share", "bytes of text"),
        (
            (code(host.host), f"{host.documents:,}", share(host.documents, total.documents), f"{host.bytes:,}")
            for host in hosts.top[:HOSTS]
        ),
    )


def _sources(facts: CardFacts) -> Iterator[str]:
    yield "## Where it comes from"
    yield ""
    if not facts.sources:
        yield from ("Not recorded.", "")
        return
    read = {row["source"]: row["in"] for row in reversed(facts.manifest.funnel)}
    kept = {row["source"]: row["kept"] for row in facts.manifest.funnel}
    files: dict[str, list[int]] = {}
    for entry in facts.inputs:
        files.setdefault(str(entry["source"]), []).append(entry["size"])
    nothing = {"documents": 0, "bytes": 0}
    yield from table(
        ("source", "domain", "files", "size", "records read", "documents kept", "bytes of text kept"),
        (
            (
                text(name),
                text(source.get("domain") or name),
                f"{len(files.get(name, ())):,}",
                sizes(sum(files.get(name, ()))),
                f"{read.get(name, nothing)['documents']:,}",
                f"{kept.get(name, nothing)['documents']:,}",
                f"{kept.get(name, nothing)['bytes']:,}",
            )
            for source in facts.sources
            for name in (str(source.get("name", "")),)
        ),
    )
    yield "Who collected these inputs, and when, is known only from their names and from the publisher."
    yield ""


def _processing(facts: CardFacts) -> Iterator[str]:
    yield "## From input to corpus"
    yield ""
    if not facts.stages:
        yield from ("Not recorded.", "")
        return
    yield "Every record that was read is counted once when it leaves: kept, dropped for a named reason, or failed."
    yield ""
    yield from funnel_table(facts.manifest.funnel)
    yield "### Reasons"
    yield ""
    yield from reasons_table(facts.stages, facts.declared)
    if facts.statistics and facts.statistics.clusters:
        yield "### Copies"
        yield ""
        yield from table(
            ("compared", "documents with a near copy", "groups", "largest group"),
            (
                (text(each.scope), f"{each.documents:,}", f"{each.components:,}", f"{each.largest:,}")
                for each in facts.statistics.clusters
            ),
        )


def _care(facts: CardFacts) -> Iterator[str]:
    about = facts.about
    yield "## Licences and rights"
    yield ""
    yield from _said(about.license, "No licence of the corpus as a whole is known; the licences of the sources apply.")
    if category := facts.category("license_class"):
        yield from _category(category, facts.manifest.has_tokens)
    yield from handling_lines(facts, "rights")
    yield "## Personal data and credentials"
    yield ""
    yield from _said(about.personal_data)
    yield from handling_lines(facts, "personal-data")
    yield from handling_lines(facts, "credentials")
    yield "Personal data and credentials that no rule recognises are still in the texts."
    yield ""
    yield "## Unwanted content"
    yield ""
    yield from handling_lines(facts, "harmful")
    yield "## Decontamination"
    yield ""
    yield from handling_lines(facts, "benchmarks")


def _limits(facts: CardFacts) -> Iterator[str]:
    yield "## Known limits"
    yield ""
    yield from (f"- {text(each)}" for each in facts.missing)
    dead = sum(documents for stage in facts.stages for documents, _ in stage.dead.values())
    if dead:
        yield f"- {dead:,} records failed and are not in the corpus; `dead_letters/` lists them."
    yield "- Texts were judged by rules and models, not by people; their scores are in the provenance files."
    yield "- Nobody examined whether the texts are true, or whom they leave out."
    yield ""
    points = facts.statistics.points if facts.statistics else ()
    final = next((point for point in reversed(points) if point.collected and point.artefacts), None)
    if final and final.artefacts:
        whole = (final.total or NOTHING).documents
        yield f"Remaining signs of bad cleaning, of {whole:,} documents:"
        yield ""
        yield from table(
            ("sign", "a document counts if it has", "documents", "share"),
            (
                (text(each.name), text(each.meaning), f"{each.documents:,}", share(each.documents, whole))
                for each in final.artefacts
            ),
        )


def _uses(facts: CardFacts) -> Iterator[str]:
    yield "## Uses"
    yield ""
    yield from _said(facts.about.uses, f"Pre-training of language models. Other uses: {UNKNOWN.lower()}")


def _loading(facts: CardFacts) -> Iterator[str]:
    yield "## How to load it"
    yield ""
    where = facts.about.url or "this-folder"
    if facts.manifest.has_tokens:
        program = [
            "from refinery.loader import TokenStream  # pip install corpus-refinery",
            "",
            f"for batch in TokenStream({where!a}, sequence_length=4096, batch_size=8, seed=1, epochs=1):",
            '    batch["input_ids"], batch["labels"]',
        ]
    else:
        column = "text" if facts.manifest.written.has_texts else "url"
        program = [
            "import refinery.corpus  # pip install corpus-refinery[pipeline]",
            "",
            f"for batch in refinery.corpus.open({where!a}).documents(['id', '{column}']):",
            f"    batch['{column}']",
        ]
    yield from fenced("\n".join(program), "python")
    names = [each["config_name"] for each in shard_configurations(facts.manifest)]
    if DEFAULT in names:
        yield "`datasets` loads the texts with their provenance, too:"
        yield ""
        yield from fenced(load_program(), "python")
    elif PROVENANCE in names:
        program = ["from datasets import load_dataset", "", 'load_dataset("this-folder", "provenance", split="train")']
        yield "The provenance is a table, which `datasets` loads:"
        yield ""
        yield from fenced("\n".join(program), "python")
    what = "index, token" if facts.manifest.has_tokens else "text"
    yield f"`refinery verify` checks every file, {what} and count, `refinery audit` a sample against the inputs."
    yield ""


def _maintenance(facts: CardFacts) -> Iterator[str]:
    about = facts.about
    yield "## Publication and maintenance"
    yield ""
    for name, value in (
        ("Made by", about.creator),
        ("Contact, also for removals", about.contact),
        ("Published", about.published),
        ("Place", about.url),
        ("Maintenance", about.maintenance),
    ):
        yield f"- {name}: {text(value) if value else UNKNOWN.lower()}"
    yield ""
    if about.citation:
        yield from fenced(about.citation, "bibtex")
    if facts.further:
        yield "## Lineage"
        yield ""
        yield f"What else {MANIFEST} says of this corpus:"
        yield ""
        yield from fenced(to_yaml(dict(sorted(facts.further.items()))), "yaml")
