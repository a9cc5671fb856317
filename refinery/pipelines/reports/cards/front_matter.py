"""The front matter of a data set's card, as Hugging Face's `datasets` and its hub read it.

https://github.com/huggingface/hub-docs/blob/main/datasetcard.md
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.provenance import TEXT_COLUMN
from refinery.pipelines.reports.cards.facts import CardFacts
from refinery.pipelines.reports.cards.markdown import line_of, to_yaml
from refinery.transforms.core.document import FIELDS
from refinery.transforms.write.text_writers import TEXT_WRITERS

LINES = ".jsonl"  # that endings of JSON Lines begin with
FLOATS = {"float": "float32", "double": "float64"}  # Arrow's names of types, and those of `datasets`
DEFAULT, PROVENANCE = "default", "provenance"  # names of configurations
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
    """Of a corpus. Texts are tables; tokens are not, so their only configuration is that of the provenance files."""
    languages = [code for code in language_codes(facts) if LANGUAGE.fullmatch(code)]
    if facts.category("code_language"):
        languages.append("code")
    found = shared_data(facts.manifest.name, facts.manifest.totals["documents"])
    if languages:
        found["language"] = languages
    if LICENSE.fullmatch(facts.about.license):
        found["license"] = facts.about.license
    return found | shard_data(facts.manifest)


def language_codes(facts: CardFacts) -> list[str]:
    """Languages of the corpus, most documents first, as far as they were detected."""
    known = facts.category("language")
    return [value.value for value in known.values if value.value] if known else []


def splits_of(manifest: Manifest) -> dict[str, list[str]]:
    """Split -> its domains, both in the manifest's order."""
    found: dict[str, list[str]] = {}
    for shard in manifest.shards:
        if shard.domain not in found.setdefault(shard.split, []):
            found[shard.split].append(shard.domain)
    return found


def shard_configurations(manifest: Manifest) -> list[dict[str, Any]]:
    """Which of a corpus' files are tables: those of texts by our writers, by domain; else the provenance."""
    splits = splits_of(manifest)
    if manifest.written.writer in TEXT_WRITERS:
        ending = manifest.written.endings[0][1]
        return configurations(splits, lambda split, domain: f"{split}/{domain}/shard-*{ending}")
    if not any(shard.provenance_file for shard in manifest.shards):
        return []
    files = [{"split": split, "path": f"{split}/*/*.provenance.parquet"} for split in sorted(splits)]
    return [{"config_name": PROVENANCE, "default": True, "data_files": files}]


def load_program() -> str:
    """How the default configuration is loaded."""
    return 'from datasets import load_dataset\n\nload_dataset("this-folder", split="train")'


def shard_data(manifest: Manifest) -> dict[str, Any]:
    """`configs` of a corpus, and where its tables are JSON Lines `dataset_info`, the types of their columns: else
    `datasets` takes them from the first file, in which a column may have nulls alone. Lines with the fields of records
    have keys whose types nobody knows."""
    configs = shard_configurations(manifest)
    if not configs or not writes_lines(manifest) or has_fields(manifest):
        return {"configs": configs} if configs else {}
    names = [each["config_name"] for each in configs]
    return {
        "dataset_info": [{"config_name": name, "features": _features(manifest)} for name in names],
        "configs": configs,
    }


def writes_lines(manifest: Manifest) -> bool:
    """Whether its shards are JSON Lines."""
    return manifest.written.endings[0][1].startswith(LINES)


def has_fields(manifest: Manifest) -> bool:
    """Whether a source keeps the fields of its records."""
    return any(column.name == FIELDS for column in manifest.columns)


def _features(manifest: Manifest) -> list[dict[str, str]]:
    return [{"name": field.name, **_feature(field.type)} for field in (TEXT_COLUMN, *manifest.row_schema)]


def _feature(kind: pa.DataType) -> dict[str, str]:
    if pa.types.is_list(kind):
        return {"sequence": str(kind.value_type)}
    return {"dtype": "string" if pa.types.is_fixed_size_binary(kind) else FLOATS.get(str(kind), str(kind))}


def configurations(splits: Mapping[str, Sequence[str]], place: Callable[[str, str], str]) -> list[dict[str, Any]]:
    """A configuration of all domains, and one for each where there are several. splits: split -> its domains. place:
    the pattern of the files of a split and a domain, "*" for all."""

    def entry(name: str, domain: str) -> dict[str, Any]:
        found = [split for split in sorted(splits) if domain in (*splits[split], "*")]
        return {"config_name": name, "data_files": [{"split": each, "path": place(each, domain)} for each in found]}

    domains = sorted({domain for names in splits.values() for domain in names})
    whole = {"config_name": DEFAULT, "default": True, "data_files": entry(DEFAULT, "*")["data_files"]}
    return [whole, *(entry(name, name) for name in domains if len(domains) > 1 and name != DEFAULT)]
