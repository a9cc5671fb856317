"""The corpus as Croissant 1.0 JSON-LD (MLCommons), which search engines for data sets and `mlcroissant` read.

http://mlcommons.org/croissant/1.0 is the specification, http://mlcommons.org/croissant/RAI/1.0 that of the properties
about responsible use. Small files are listed one by one with their SHA-256; shards are too, up to `MOST_FILES`, and by
patterns beyond that: the manifest, which is listed with its SHA-256, has the checksums of all.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from refinery.loader.format.manifest import MANIFEST, FileEntry, Manifest
from refinery.loader.format.removals import REMOVALS_SCHEMA
from refinery.pipelines.reports.cards.facts import CardFacts
from refinery.pipelines.reports.cards.front_matter import language_codes, splits_of
from refinery.pipelines.reports.cards.handling import handlings
from refinery.pipelines.reports.cards.markdown import line_of
from refinery.pipelines.reports.cards.tables import totals_line
from refinery.transforms.core.stage import CONCERNS

MOST_FILES = 1_000  # files of shards that are listed one by one
VERSION = "http://mlcommons.org/croissant/1.0"
RAI = "http://mlcommons.org/croissant/RAI/1.0"
NOT_NAME = re.compile(r"[^A-Za-z0-9_-]+")

# As the specification has it, https://docs.mlcommons.org/croissant/docs/croissant-spec.html#appendix-1-json-ld-context
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
FORMATS = {".parquet": "application/x-parquet", ".json": "application/json"}
TYPES = {
    pa.string(): "sc:Text",
    pa.binary(16): "sc:Text",
    pa.float32(): "cr:Float32",
    pa.float64(): "cr:Float64",
    **{getattr(pa, f"int{bits}")(): f"cr:Int{bits}" for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): f"cr:UInt{bits}" for bits in (8, 16, 32, 64)},
    pa.bool_(): "sc:Boolean",
    pa.date32(): "sc:Date",
    **{pa.timestamp(unit, zone): "sc:DateTime" for unit in ("ms", "us", "ns") for zone in (None, "UTC")},
}


def croissant(facts: CardFacts) -> bytes:
    """The description, the same bytes each time."""
    manifest, about = facts.manifest, facts.about
    found: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, RAI],
        "name": NOT_NAME.sub("-", manifest.name).strip("-") or "corpus",
        "alternateName": line_of(manifest.name),
        "description": line_of(about.description) or f"{totals_line(manifest)}, for training language models.",
        "version": "1.0.0",
        "identifier": f"sha256:{facts.sha256}",
        "isLiveDataset": False,
        "keywords": ["language modeling", "pre-training", holds(manifest), line_of(manifest.lane)],
    }
    said = {
        "url": about.url,
        "license": about.license,
        "datePublished": about.published,
        "citeAs": about.citation,
        "rai:dataUseCases": about.uses,
        "rai:dataReleaseMaintenancePlan": about.maintenance,
    }
    found |= {name: line_of(value) for name, value in said.items() if value}
    if about.creator:
        found["creator"] = {"@type": "sc:Organization", "name": line_of(about.creator)}
    if languages := language_codes(facts):
        found["inLanguage"] = [line_of(language) for language in languages]
    found |= responsible_use(facts)
    found["distribution"] = list(distribution(facts))
    found["recordSet"] = list(record_sets(facts))
    return (json.dumps(found, indent=1, ensure_ascii=True) + "\n").encode()


def responsible_use(facts: CardFacts) -> dict[str, Any]:
    """The properties about responsible use that the run knows."""
    if not facts.stages:
        return {}
    sources = {str(source.get("name", "")) for source in facts.sources}
    files, size = len(facts.inputs), sum(entry["size"] for entry in facts.inputs)
    lost = sum(documents for stage in facts.stages for documents, _ in stage.dead.values())
    steps = [
        f"{line_of(stage.name)}: of {stage.entered:,} documents {stage.kept:,} were kept" for stage in facts.stages
    ]
    care = [
        f"{each.stage.name} ({CONCERNS[concern]}): {each.stage.summary}"
        for concern in ("personal-data", "credentials")
        for each in handlings(facts, concern)
        if each.is_on
    ]
    return {
        "rai:dataCollection": f"{len(sources)} sources, {files:,} input files of {size:,} bytes.",
        "rai:dataPreprocessingProtocol": steps,
        "rai:dataCollectionMissingData": f"{lost:,} records failed and were left out.",
        "rai:personalSensitiveInformation": [
            *(care or ["No stage of this run replaced personal data."]),
            *([line_of(facts.about.personal_data)] if facts.about.personal_data else []),
        ],
        "rai:dataLimitations": [
            *(line_of(each) for each in facts.missing),
            "Texts were judged by rules and models, not by people.",
        ],
    }


def holds(manifest: Manifest) -> str:
    """What its shards hold."""
    return "tokens" if manifest.has_tokens else "texts"


def distribution(facts: CardFacts) -> Iterator[dict[str, Any]]:
    """Files, and patterns of files."""
    manifest = facts.manifest
    yield file_object(MANIFEST, facts.size, facts.sha256)
    for file in manifest.files:
        yield file_object(file.path, file.size, file.sha256)
    shards: list[FileEntry] = [file for shard in manifest.shards for file in (*shard.files, *shard.packed)]
    if len(shards) <= MOST_FILES:
        yield from (file_object(file.path, file.size, file.sha256) for file in shards)
    if any(shard.provenance_file for shard in manifest.shards):
        ending = dict(manifest.written.endings)["provenance"]
        folders = (
            sorted(splits_of(manifest)) if manifest.written.has_text_column else ["*"]
        )  # other files have that ending
        yield file_set("provenance", *(f"{folder}/*/*{ending}" for folder in folders))
    if manifest.removals:
        yield file_set("removals", "removals/*.parquet")
    if len(shards) > MOST_FILES:
        names = {"bin": "tokens", "idx": "indexes"}
        for kind, ending in manifest.written.endings:
            if kind != "provenance":
                yield file_set(names.get(kind, kind), f"*/*/*{ending}")


def file_object(path: str, size: int, digest: str) -> dict[str, Any]:
    """A file, whose address is relative to this description."""
    shown = line_of(path)
    suffix = f".{shown.rpartition('.')[2]}"
    return {
        "@type": "cr:FileObject",
        "@id": shown,
        "name": shown,
        "contentUrl": shown,
        "contentSize": f"{size} B",
        "encodingFormat": FORMATS.get(suffix, "application/octet-stream"),
        "sha256": digest,
    }


def file_set(name: str, *patterns: str) -> dict[str, Any]:
    """Files by patterns; the manifest has their checksums."""
    suffix = f".{patterns[0].rpartition('.')[2]}"
    encoding = FORMATS.get(suffix, "application/octet-stream")
    includes = patterns[0] if len(patterns) == 1 else list(patterns)
    return {"@type": "cr:FileSet", "@id": name, "name": name, "encodingFormat": encoding, "includes": includes}


def record_sets(facts: CardFacts) -> Iterator[dict[str, Any]]:
    """The rows of provenance files, and of removals."""
    manifest = facts.manifest
    if any(shard.provenance_file for shard in manifest.shards):
        what = "Row i describes document i of the shard of the same name."
        if manifest.written.has_text_column:
            what = "A row for each document: its text, and where it comes from."
        yield record_set("provenance", what, manifest.provenance_schema)
    if manifest.removals:
        yield record_set("removals", "Documents that deduplication removed, and those kept instead.", REMOVALS_SCHEMA)


def record_set(files: str, what: str, schema: pa.Schema) -> dict[str, Any]:
    """The rows of a set of files; without columns of types that the standard has no name for, such as structs."""
    name = f"{files}-rows"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": what,
        "field": [_field(name, files, each) for each in schema if inner_type(each.type) in TYPES],
    }


def _field(record: str, files: str, column: pa.Field) -> dict[str, Any]:
    inner = inner_type(column.type)
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record}/{column.name}",
        "name": column.name,
        "dataType": TYPES[inner],
        "source": {"fileSet": {"@id": files}, "extract": {"column": column.name}},
    }
    return found if inner == column.type else {**found, "repeated": True}


def inner_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values, of lists that of what is in them."""
    return kind.value_type if pa.types.is_list(kind) else kind
