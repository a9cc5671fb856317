"""`refinery verify` of a view: its files, its runs against the corpora's indexes, and its recipe computed again.

The first part trusts nothing but the corpora: every run begins and ends where documents do, every turn has only what
the turn before it has, and what documents are delivered how often is counted from the runs alone. The second part
makes the view again from its recipe and the corpora's provenance: the selection has to be the same, byte for byte.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, SPLITS
from refinery.loader.format.selection import SELECTION, Selection, Table
from refinery.loader.format.view import EARLIER, View, earlier_folder, read_view
from refinery.loader.order.arrays import I64
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.loader.view.opened_view import OpenedView
from refinery.pipelines.corpus.checks.file_checks import check_file, collect
from refinery.pipelines.corpus.checks.verdict import Verdict, reach
from refinery.pipelines.corpus.mix.build import build, published_domains
from refinery.pipelines.corpus.mix.make_view import documents_to_read
from refinery.pipelines.corpus.mix.recipe import MixRecipe
from refinery.pipelines.corpus.mix.selecting import TimesTable
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.counters import work_done


@dataclass
class ViewReport(Verdict):
    """The verdict on a view."""

    corpora: int = 0
    segments: int = 0

    def read_lines(self) -> list[str]:
        return [
            f"{self.prefix}: a view of {self.corpora:,} corpora, {self.documents:,} documents, {self.tokens:,} tokens",
            f"checked {self.segments:,} segments against the corpora's indexes and made the view again, "
            f"in {self.seconds:.1f} s; `refinery verify` of its corpora checks their tokens",
        ]


def verify_view(prefix: str, work: Work | None = None) -> ViewReport:
    """Check the view at `prefix`. Never raises for what it finds there.

    work: learns what there is to read. Cost: the corpora's indexes twice and their provenance as often as making the
    view; memory is that of making it, and a byte per document of a shard.
    """
    report = ViewReport(prefix)
    return reach(report, MANIFEST, _check(report, work or Work()))


def _check(report: ViewReport, work: Work) -> Iterator[str]:
    store = open_store(report.prefix)
    try:
        view, _ = read_view(store)
        if view.selection is not None:
            failed = False
            for failure in check_file(store, view.selection):
                failed = True
                yield failure
            if failed:
                return
        elif store.size(SELECTION) is not None:
            yield f"{SELECTION}: not listed in {MANIFEST}"
        yield from collect(EARLIER, _check_earlier(store, view))
        opened = OpenedView(store)
    except FormatError as error:
        yield str(error)
        return
    try:
        report.corpora, report.segments = len(view.corpora), len(opened.segments)
        report.documents, report.tokens = view.totals["documents"], view.totals["tokens"]
        if opened.selection is not None:
            yield from collect(SELECTION, check_selection(opened, opened.selection))
        yield from collect("recipe", _check_recipe(view, opened, store, work))
    finally:
        opened.close()


def _check_earlier(store: Store, view: View) -> Iterator[str]:
    """Failures of the views that it was made again of: each is the one that its folder is named after, and whole."""
    for sha256 in view.previous:
        place = open_store(earlier_folder(store.root, sha256))
        earlier, data = read_view(place)
        if (found := hashlib.sha256(data).hexdigest()) != sha256:
            yield f"{EARLIER}/{sha256}/{MANIFEST}: sha256 {found} found"
        elif earlier.selection is not None:
            yield from check_file(place, earlier.selection)


def check_selection(opened: OpenedView, selection: Selection) -> Iterator[str]:
    """Every segment against its shard's index, and the documents of each domain counted by how often they are there."""
    segments = selection.segments
    keys = np.stack([segments[name].astype(np.int64) for name in ("split", "domain", "corpus", "shard")])
    order = np.lexsort((segments["turn"], *keys[::-1]))  # all turns of a shard, one after the other
    tables: dict[tuple[int, int], TimesTable] = {}
    first = 0
    while first < len(order):
        key = keys[:, order[first]]
        stop = first + int(np.argmin(np.append((keys[:, order[first:]] == key[:, None]).all(axis=0), False)))
        split, domain, corpus, shard = key.tolist()
        entry = opened.corpora[corpus].manifest.shards[shard]
        index = opened.corpora[corpus].index_of(entry)
        counts: I64 = np.zeros(len(index), np.int64)
        where = f"{opened.view.corpora[corpus].name}/{entry.bin.path}"
        for place in order[first:stop].tolist():
            yield from _count(selection, place, index.offsets, index.lengths, counts, where)
        table = tables.setdefault((split, domain), TimesTable())
        table.add_each(counts, index.lengths)
        first = stop
    for (split, domain), table in sorted(tables.items()):
        named = opened.view.domains[domain]
        expected = [tuple(row) for row in named.splits[SPLITS[split]].times]
        if table.rows() != expected:
            yield (
                f"{MANIFEST}: domain {named.name!r}, {SPLITS[split]}: times, documents and tokens are "
                f"{expected!s:.200}, {table.rows()!s:.200} expected from {SELECTION}"
            )


def _count(selection: Selection, place: int, offsets: I64, lengths: I64, counts: I64, where: str) -> Iterator[str]:
    """Count the documents of a segment, which are to be counted in each earlier turn."""
    segment: Table = selection.segments[place]
    turn = int(segment["turn"])
    chosen = np.zeros(len(lengths) + 1, np.int64)
    if segment["runs"] == 0:
        chosen[0] = 1
        tokens, documents = int(lengths.sum(dtype=np.int64)), len(lengths)
    else:
        ends = offsets + lengths
        filled = np.flatnonzero(lengths > 0)  # documents without tokens are in no run
        tokens = 0
        for starts, sizes in selection.runs_of(place):
            first = np.minimum(np.searchsorted(offsets[filled], starts), len(filled) - 1)
            last = np.minimum(np.searchsorted(ends[filled], starts + sizes), len(filled) - 1)
            wrong = (offsets[filled[first]] != starts) | (ends[filled[last]] != starts + sizes)
            if wrong.any():
                i = int(np.argmax(wrong))
                yield (
                    f"{SELECTION}: segment {place}, of {where}: tokens {starts[i]} to {starts[i] + sizes[i]} are a "
                    "run, whole documents expected"
                )
                return
            np.add.at(chosen, filled[first], 1)
            np.add.at(chosen, filled[last] + 1, -1)
            tokens += int(sizes.sum())
        documents = -1
    here = np.cumsum(chosen[:-1])
    if documents < 0:
        here[lengths == 0] = 0
        documents = int(here.sum())
    if (here > 1).any() or (counts[here == 1] != turn - 1).any():
        yield f"{SELECTION}: segment {place}, of {where}: a document twice, or in turn {turn} and not in all before it"
    if (documents, tokens) != (int(segment["documents"]), int(segment["tokens"])):
        yield (
            f"{SELECTION}: segment {place}, of {where}: {segment['documents']} documents and {segment['tokens']} "
            f"tokens, {documents} and {tokens} expected from its runs"
        )
    counts += here


def _check_recipe(view: View, opened: OpenedView, store: Store, work: Work) -> Iterator[str]:
    """The view made again."""
    data = {**view.recipe, "corpora": {link.name: link.location for link in view.corpora}}
    recipe = parse(MixRecipe, data, "recipe")
    names = [link.name for link in view.corpora]
    if list(recipe.corpora) != names:
        yield f"{MANIFEST}: corpora are {', '.join(names):.200}, each once and in the order of names expected"
        return
    work.steps = [Step("documents", documents_to_read(recipe, opened.corpora))]
    with scratch_folder("a view's selection") as folder:
        done, workers = partial(work_done, "documents"), os.cpu_count() or 1
        built = build(recipe, names, opened.corpora, folder, done, workers=workers)
    links = [
        {"name": each.name, "location": each.location, "manifest_sha256": each.manifest_sha256} for each in view.corpora
    ]
    expected = built.payload(recipe, links)
    found = {
        "name": view.name, "domains": published_domains(view), "totals": dict(view.totals),
        "plan": view.plan, "mixing": view.mixing, "recipe": view.recipe,
    }  # fmt: skip
    for key, value in found.items():
        if value != expected[key]:
            told = f"{expected[key]!s:.200} expected from the recipe and the corpora"
            yield f"{MANIFEST}: {key} is {value!s:.200}, {told}"
    if built.selection != view.selection:
        yield (
            f"{store.url(SELECTION)}: {_told(view.selection)} found, {_told(built.selection)} expected from the recipe "
            "and the corpora's provenance"
        )


def _told(entry: object) -> str:
    return "none" if entry is None else f"sha256 {getattr(entry, 'sha256', '')}"
