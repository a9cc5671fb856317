"""The recipe: everything that decides what comes out of a run, as one tree of frozen parameter classes."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from refinery.loader.format.manifest import MANIFEST
from refinery.pipelines.run.params import RecipeError, load_yaml, override, parse, to_plain
from refinery.transforms.core.per_document import RejectParams
from refinery.transforms.core.resources import read_resource
from refinery.transforms.dedup.cut_lines import LineParams
from refinery.transforms.dedup.near_duplicates import ANY_SOURCE, NearParams
from refinery.transforms.dedup.rank import RankParams
from refinery.transforms.dedup.reference_corpora import MAX_CORPORA, ReferenceCorpusParams
from refinery.transforms.dedup.signatures import SignatureParams
from refinery.transforms.extract.extract import ExtractParams
from refinery.transforms.filter.heuristics import HeuristicsParams
from refinery.transforms.filter.language import LanguageParams
from refinery.transforms.filter.pii import PiiParams
from refinery.transforms.filter.quality import QualityParams
from refinery.transforms.filter.toxicity import ToxicityParams
from refinery.transforms.filter.url import UrlParams
from refinery.transforms.read.sources import LimitParams, SourceParams
from refinery.transforms.tokenize.encode import TokenizerParams
from refinery.transforms.write.documents import SourceFacts
from refinery.transforms.write.shuffle import ShardParams


@dataclass(frozen=True)
class FailureParams:
    """How many dead letters a run bears before it fails.

    max_ratio: dead / in of any stage. grace: this many dead letters of a stage are always borne, so that one damaged
    record does not fail a small run. Not part of the fingerprint: raise it and run the same command again.
    """

    max_ratio: float = 0.01
    grace: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.max_ratio <= 1:
            raise ValueError(f"max_ratio: {self.max_ratio} given, a number from 0 to 1 is allowed")
        if self.grace < 0:
            raise ValueError(f"grace: {self.grace} given, 0 or more is allowed")


@dataclass(frozen=True)
class RunParams:
    """How the work is cut; never what comes out, so not part of the fingerprint.

    wave_bytes, wave_files: input bytes (as stored) and files of one wave of phase 1: a failure costs a wave.
    part_bytes: text in one part of documents/. components: how links between near duplicates become components: in one
    worker's memory ("forest"), in rounds of shuffles ("stars"), or whichever suits the number of documents ("auto").
    """

    wave_bytes: int = 8 << 30
    wave_files: int = 1024
    part_bytes: int = 256 << 20
    components: Literal["auto", "forest", "stars"] = "auto"

    def __post_init__(self) -> None:
        for name in ("wave_bytes", "wave_files", "part_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")


@dataclass(frozen=True)
class Recipe:
    """One corpus. A section set to null (or off) leaves its stage out."""

    name: str
    sources: tuple[SourceParams, ...]
    tokenizer: TokenizerParams
    limits: LimitParams = field(default_factory=LimitParams)
    rejects: RejectParams = field(default_factory=RejectParams)
    failures: FailureParams = field(default_factory=FailureParams)
    extract: ExtractParams = field(default_factory=ExtractParams)
    url: UrlParams | None = field(default_factory=UrlParams)
    language: LanguageParams | None = field(default_factory=LanguageParams)
    heuristics: HeuristicsParams | None = field(default_factory=HeuristicsParams)
    signature: SignatureParams = field(default_factory=SignatureParams)
    rank: RankParams = field(default_factory=RankParams)
    exact_dup: bool = True
    near_dup: NearParams | None = field(default_factory=NearParams)
    near_dup_in_source: Mapping[str, NearParams | None] = field(default_factory=lambda: MappingProxyType({}))
    reference_corpora: tuple[ReferenceCorpusParams, ...] = ()
    line_dup: LineParams | None = None
    quality: QualityParams | None = None
    toxicity: ToxicityParams | None = field(default_factory=ToxicityParams)
    pii: PiiParams | None = field(default_factory=PiiParams)
    shards: ShardParams = field(default_factory=ShardParams)
    run: RunParams = field(default_factory=RunParams)

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            raise ValueError(f"name: {self.name!r} given, printable characters are allowed")
        if not self.name:
            raise ValueError("name: '' given, a name for the corpus is allowed")
        if not self.sources:
            raise ValueError("sources: [] given, at least one source is allowed")
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"sources: the name {twice[0]!r} given twice, every source needs its own name")
        layouts = {f"near_dup_in_source.{name}": params for name, params in self.near_dup_in_source.items()}
        for section, params in {**layouts, "near_dup": self.near_dup}.items():
            try:
                if params:
                    params.layout(self.signature.permutations)
            except ValueError as error:
                raise ValueError(f"{section}.{error}") from error
        for name in self.near_dup_in_source:
            if name not in (*names, ANY_SOURCE):
                raise ValueError(f"near_dup_in_source: {name!r} given, the name of a source or '*' is allowed")
        if self.reference_corpora and not self.exact_dup:
            raise ValueError("reference_corpora: corpora given with exact_dup off, they need it on")
        if len(self.reference_corpora) > MAX_CORPORA:
            raise ValueError(
                f"reference_corpora: {len(self.reference_corpora)} corpora given, up to {MAX_CORPORA} are allowed"
            )

    def source_facts(self) -> dict[str, SourceFacts]:
        """Source name -> its priority and domain."""
        return {s.name: SourceFacts(s.priority, s.domain or s.name) for s in self.sources}

    def files(self) -> Iterator[tuple[str, str]]:
        """(section, path) of every file that the recipe names beside the inputs: lists, models, the tokenizer."""
        for section, params in (("url", self.url), ("quality", self.quality), ("toxicity", self.toxicity)):
            for path in params.files() if params else ():
                yield section, path
        if self.language and self.language.model:
            yield "language", self.language.model
        for corpus in self.reference_corpora:
            yield "reference_corpora", f"{corpus.prefix.rstrip('/')}/{MANIFEST}"
        yield "tokenizer", self.tokenizer.path


# What decides the result of each phase. A phase also depends on every phase before it. `failures` and `run` decide
# nothing; `name` only labels the manifest of the last.
PHASE_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "clean": ("sources", "limits", "rejects", "extract", "url", "language", "heuristics", "signature", "rank"),
    "dedup": ("exact_dup", "near_dup", "near_dup_in_source", "reference_corpora", "line_dup"),
    "shards": ("name", "quality", "toxicity", "pii", "tokenizer", "shards"),
}


def load_recipe(path: str, settings: Sequence[str] = (), inputs: Sequence[str] = ()) -> Recipe:
    """Read a recipe from a YAML file, apply `--set a.b=c` settings in order, then `--input` globs to its first source.

    Raises RecipeError, one line: the path of the key, what was given, what is allowed.
    """
    file = Path(path)
    if not file.is_file():
        raise RecipeError(f"{path}: no such recipe file")
    data: Any = load_yaml(file.read_bytes(), path)
    for setting in settings:
        data = override(data, setting)
    if inputs:
        sources = data.get("sources") if isinstance(data, dict) else None
        if not isinstance(sources, list) or not sources or not isinstance(sources[0], dict):
            raise RecipeError("--input: the recipe has no source that could take it")
        # An input given by hand replaces what the recipe reads: the run is about these files and nothing else.
        data = {**data, "sources": [{**sources[0], "paths": list(inputs), "format": "auto"}]}
    return parse(Recipe, data)


def plain_sections(recipe: Recipe, phase: str) -> dict[str, Any]:
    """The sections that decide a phase, as plain data; of `line_dup` phase 1 depends only on whether it is there."""
    plain = to_plain(recipe)
    sections = {name: plain[name] for name in PHASE_SECTIONS[phase]}
    if phase == "clean":  # it hashes lines or not; which of them are cut is decided later
        sections["hash_lines"] = recipe.line_dup is not None
    return sections


def file_digest(path: str) -> str:
    """sha256 of a file that a recipe names, local or gs://. Raises RecipeError when it cannot be read."""
    try:
        return hashlib.sha256(read_resource(path)).hexdigest()
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror or error}") from error
