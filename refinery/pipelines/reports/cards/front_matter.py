"""The front matter of a data set's card, as Hugging Face's `datasets` and its hub read it.

https://github.com/huggingface/hub-docs/blob/main/datasetcard.md
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.pipelines.reports.cards.facts import CardFacts
from refinery.pipelines.reports.cards.markdown import line_of, to_yaml

SIZES = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6), ("1M<n<10M", 10**7))
LARGER = (("10M<n<100M", 10**8), ("100M<n<1B", 10**9), ("1B<n<10B", 10**10), ("10B<n<100B", 10**11))
LARGEST = "100B<n<1T"
LANGUAGE = re.compile(r"[a-z]{2,3}")  # of ISO 639
LOADABLE = re.compile(r"\.(jsonl|parquet)(\.(zst|gz))?")  # endings of files that `datasets` reads by themselves
LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}")  # as the hub spells them


def size_category(documents: int) -> str:
    """The hub's name for a number of rows."""
    return next((name for name, limit in (*SIZES, *LARGER) if documents < limit), LARGEST)


def front_matter(data: Mapping[str, Any]) -> Iterator[str]:
    """Lines of the front matter, with an empty one behind it."""
    yield "---"
    yield to_yaml(data).rstrip()
    yield "---"
    yield ""


def shared_data(name: str, documents: int) -> dict[str, Any]:
    """What every card of ours says there."""
    return {
        "pretty_name": line_of(name),
        "task_categories": ["text-generation"],
        "size_categories": [size_category(documents)],
    }


def corpus_data(facts: CardFacts) -> dict[str, Any]:
    """Of a corpus. Tokens are not a table, so one of tokens has the configuration of its provenance files alone."""
    languages = [code for code in language_codes(facts) if LANGUAGE.fullmatch(code)]
    if facts.category("code_language"):
        languages.append("code")
    found = shared_data(facts.manifest.name, facts.manifest.totals["documents"])
    if languages:
        found["language"] = languages
    if LICENSE.fullmatch(facts.about.license):
        found["license"] = facts.about.license
    if any(shard.provenance_file for shard in facts.manifest.shards):
        found["configs"] = list(configurations(facts))
    return found


def language_codes(facts: CardFacts) -> list[str]:
    """Languages of the corpus, most documents first, as far as they were detected."""
    known = facts.category("language")
    return [value.value for value in known.values if value.value] if known else []


def loadable_texts(manifest: Manifest) -> str:
    """The ending of the files of texts that `datasets` loads; "" where there are none."""
    ending = manifest.written.endings[0][1]
    return "" if manifest.has_tokens or not LOADABLE.fullmatch(ending) else ending


def configurations(facts: CardFacts) -> Iterator[dict[str, Any]]:
    """The texts, as far as `datasets` loads them, and the provenance files where these are others."""
    written = facts.manifest.written
    texts = loadable_texts(facts.manifest)
    if texts:
        yield configuration("texts", facts.splits, texts, True)
    if not written.has_text_column:
        yield configuration("provenance", facts.splits, dict(written.endings)["provenance"], not texts)


def configuration(name: str, splits: Iterable[str], ending: str, default: bool) -> dict[str, Any]:
    """The shards' files of an ending as a configuration."""
    files = [{"split": split, "path": f"{split}/*/*{ending}"} for split in sorted(splits)]
    return {"config_name": name, **({"default": True} if default else {}), "data_files": files}
