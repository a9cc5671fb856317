"""A view from its recipe and its opened corpora: the manifest's payload, and the selection in a file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader.format.manifest import SCHEMA_VERSION, SPLITS, VIEW_KIND, FileEntry
from refinery.loader.format.selection import SELECTION
from refinery.loader.format.view import View, ViewDomain
from refinery.loader.view.segments import shards_of
from refinery.pipelines.corpus.mix.candidates import Corpora, Part
from refinery.pipelines.corpus.mix.quantiles import bins_by, cuts_of
from refinery.pipelines.corpus.mix.recipe import MixDomainParams, MixRecipe
from refinery.pipelines.corpus.mix.scans import Scans
from refinery.pipelines.corpus.mix.selecting import BinTable, SelectionWriter, TimesTable
from refinery.pipelines.corpus.mix.targets import UNIT, HostLimits, Sums, bins_of, fit, times_of
from refinery.transforms.core.data_text.plain_yaml import RecipeError

Done = Callable[[int], None]


@dataclass(frozen=True)
class Built:
    """domains, plan: of the manifest. selection: entry of the file `path`, None for a view that needs none."""

    domains: list[dict[str, Any]]
    plan: dict[str, Any]
    selection: FileEntry | None
    path: Path

    @property
    def totals(self) -> dict[str, int]:
        splits = [split for domain in self.domains for split in domain["splits"].values()]
        return {key: sum(split[key] for split in splits) for key in ("documents", "tokens")}

    def payload(self, recipe: MixRecipe, links: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The manifest, not sealed. links: the corpora with location and sha256."""
        entry = self.selection
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": VIEW_KIND,
            "name": recipe.name,
            "corpora": list(links),
            "domains": self.domains,
            "selection": None
            if entry is None
            else {k: getattr(entry, k) for k in ("path", "size", "crc32c", "sha256")},
            "mixing": None if recipe.mixing is None else recipe.mixing.published(),
            "totals": self.totals,
            "plan": self.plan,
            "recipe": recipe_of(recipe),
        }


def recipe_of(recipe: MixRecipe) -> dict[str, Any]:
    """What is published of a recipe: all but where corpora are, which the manifest's links say."""
    return {key: value for key, value in recipe.told().items() if key != "corpora"}


def published_domains(view: View) -> list[dict[str, Any]]:
    """The `domains` of a view's manifest."""
    return [
        {
            "name": domain.name,
            "parts": [{"corpus": corpus, "domain": name} for corpus, name in domain.parts],
            "splits": {
                name: {
                    "documents": split.documents,
                    "tokens": split.tokens,
                    "times": [{"times": t, "documents": d, "tokens": n} for t, d, n in split.times],
                }
                for name, split in domain.splits.items()
            },
        }
        for domain in view.domains
    ]


def parts_of(domain: MixDomainParams, names: Sequence[str], corpora: Corpora) -> tuple[tuple[int, str], ...]:
    """(corpus, its domain) of a domain's `parts`, in order. Raises RecipeError for those that there are not."""
    found: set[tuple[int, str]] = set()
    for part in domain.parts:
        name, slash, inner = part.partition("/")
        where = f"domains: {domain.name}: parts: {part!r:.120} given"
        if name not in names:
            raise RecipeError(f"{where}, corpora are {', '.join(names):.300}")
        corpus = names.index(name)
        known = sorted({entry.domain for entry in corpora[corpus].manifest.shards})
        if slash and inner not in known:
            raise RecipeError(f"{where}, domains of {name!r} are {', '.join(known):.300}")
        some = {(corpus, each) for each in ([inner] if slash else known)}
        if twice := sorted(found & some):
            raise RecipeError(f"{where}, but {name}/{twice[0][1]} is named before; each is allowed once")
        found |= some
    return tuple(sorted(found))


def is_whole(domain: MixDomainParams, split: str) -> bool:
    """Whether a split of a domain has every document of its parts equally often."""
    if domain.where:
        return False
    if split != SPLITS[0]:
        return True  # held-out documents are for comparing models: each once, whatever is trained on
    return not (domain.per_host or domain.upsample or domain.tokens) and domain.times == int(domain.times)


def build(
    recipe: MixRecipe, names: Sequence[str], corpora: Corpora, folder: Path, done: Done, write: bool = True,
    workers: int = 0,
) -> Built:  # fmt: skip
    """Build in `folder`. names: of the corpora, in order. done: told documents that were read. write: False computes
    everything but the selection. workers: processes that read shards; 0: this one. The result does not depend on them.

    Raises RecipeError for what the corpora do not have and targets that cannot be reached, FormatError for damaged
    files. Cost: provenance columns and indexes once, for each domain that chooses documents; see the docstrings of
    `scan_shard`, HostLimits, Sums and SelectionWriter for memory; 50 bytes per candidate of a domain on disk.
    """
    chosen_parts = [parts_of(domain, names, corpora) for domain in recipe.domains]
    tables = [{split: TimesTable() for split in SPLITS} for _ in recipe.domains]
    plan: dict[str, Any] = {}
    needed = not all(is_whole(domain, split) for domain in recipe.domains for split in SPLITS)
    entry, path = None, folder / SELECTION
    with SelectionWriter(folder / "runs") as writer, Scans(corpora, names, workers) as scans:
        for s, split in enumerate(SPLITS):
            for d, domain in enumerate(recipe.domains):
                shape = ViewDomain(domain.name, chosen_parts[d], {})
                shards = list(shards_of(shape, split, [corpus.manifest for corpus in corpora]))
                if is_whole(domain, split):
                    turns = int(domain.times) if split == SPLITS[0] else 1
                    for corpus, shard in shards:
                        whole = corpora[corpus].manifest.shards[shard]
                        writer.whole(s, d, turns, corpus, shard, whole)
                        tables[d][split].add(turns, whole.documents, whole.tokens)
                    continue
                inside = folder / f"{s}-{d}"
                inside.mkdir()
                parts = list(scans.parts(domain, recipe.seed, split, shards, inside, done))
                told = _choose(domain, split, parts, inside, tables[d][split], writer if write else None, (s, d))
                if split == SPLITS[0]:
                    plan[domain.name] = told
                for part in parts:
                    part.path.unlink()
        if needed and write:
            entry = writer.finish(path)
    if not any(table[SPLITS[0]].rows() for table in tables):
        raise RecipeError("the view has no training document: no document meets its rules, or all times are 0")
    domains = [
        {
            "name": domain.name,
            "parts": [{"corpus": corpus, "domain": name} for corpus, name in chosen_parts[d]],
            "splits": {split: tables[d][split].published() for split in SPLITS},
        }
        for d, domain in enumerate(recipe.domains)
    ]
    return Built(domains, plan, entry, path)


def _choose(
    domain: MixDomainParams, split: str, parts: Sequence[Part], folder: Path, table: TimesTable,
    writer: SelectionWriter | None, place: tuple[int, int],
) -> dict[str, Any]:  # fmt: skip
    """Choose of the candidates and write their runs; what the manifest's plan says of it."""
    is_planned = split == SPLITS[0]
    limits = HostLimits(parts, domain.per_host, folder) if is_planned and domain.per_host else None

    def candidates() -> Iterator[tuple[Part, Any]]:
        for part in parts:
            some = part.read()
            yield part, some if limits is None else limits.keep(some)

    binned, upsample = candidates, domain.upsample if is_planned else None
    if upsample is not None and upsample.quantiles is not None:
        cuts = cuts_of(lambda: (some for _, some in candidates()), upsample.quantiles, upsample.by)

        def binned() -> Iterator[tuple[Part, Any]]:
            for part, some in candidates():
                some["bin"] = bins_by(cuts, some["value"].astype(np.float64))
                yield part, some

    times, bins = [UNIT], BinTable(0)
    if is_planned:
        sums = Sums(len(bins_of(domain)))
        if domain.tokens is not None:
            for _, some in binned():
                sums.add(some)
        times = fit(domain, sums)
        bins = BinTable(len(times) if upsample is not None else 0)
    for part, some in binned():
        each = times_of(some, times)
        table.add_each(each, some["tokens"])
        bins.add(some, each)
        if writer is not None:
            writer.chosen(*place, part.corpus, part.shard, part.entry, some, each)
    return {"times": [each / UNIT for each in times]} | bins.published()
