"""`refinery mix`: open the corpora, build the view, publish it, the manifest last."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, SPLITS, seal
from refinery.loader.format.selection import SELECTION
from refinery.loader.format.view import (
    EARLIER,
    View,
    ViewDomain,
    earlier_folder,
    parse_view,
    read_view,
    relative,
    resolve,
)
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import WRITABLE, open_store
from refinery.loader.storage.store import StorageConflict, Store
from refinery.loader.view.opened_view import check_same_tokens
from refinery.loader.view.segments import shards_of
from refinery.pipelines.corpus.mix.build import Built, build, is_whole, parts_of
from refinery.pipelines.corpus.mix.recipe import MixRecipe, recipe_of_view
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.prefix import location
from refinery.transforms.core.counters import work_done


def open_all(recipe: MixRecipe) -> tuple[list[Corpus], list[dict[str, str]]]:
    """The recipe's corpora, and the location and sha256 of each. Raises FormatError for what is not a corpus, and where
    tokens are not the same in all."""
    corpora: list[Corpus] = []
    links = []
    for name, where in recipe.corpora.items():
        root = location(where)
        try:
            corpora.append(Corpus(root))
        except FormatError as error:
            raise FormatError(f"corpora: {name}: {error}") from None
        links.append({"name": name, "location": root, "manifest_sha256": corpora[-1].sha256})
    check_same_tokens([corpus.manifest for corpus in corpora], list(recipe.corpora))
    return corpora, links


def documents_to_read(recipe: MixRecipe, corpora: Sequence[Corpus]) -> int:
    """For progress: of the domains that choose documents."""
    found = 0
    for domain in recipe.domains:
        shape = ViewDomain(domain.name, parts_of(domain, list(recipe.corpora), corpora), {})
        for split in SPLITS:
            shards = shards_of(shape, split, [corpus.manifest for corpus in corpora])
            if not is_whole(domain, split):
                found += sum(corpora[corpus].manifest.shards[shard].documents for corpus, shard in shards)
    return found


def make_view(recipe: MixRecipe, output: str, work: Work, workers: int = 0, before: "Earlier | None" = None) -> View:
    """Publish the view at `output` and return it. The same view there already is success. before: the view that it is
    made again of, which it keeps, so a loader's state of that one goes on.

    After an interruption, the same command starts again and publishes the same bytes: nothing has its final name
    before it is complete, and the manifest comes last. workers: as of `build`. Raises RecipeError, FormatError,
    StorageConflict for another view there, and RefineError for a place that holds something else.
    """
    root = location(output)
    store = open_store(root)
    _check_free(store, output)
    corpora, links = open_all(recipe)
    for link in links:
        if link["location"] == root:
            raise RefineError(f"{output}: one of the view's corpora; choose another --output")
        link["location"] = relative(link["location"], root)
    work.steps = [Step("documents", documents_to_read(recipe, corpora))]
    with scratch_folder("a view's selection") as folder:
        done = partial(work_done, "documents")
        built = build(recipe, list(recipe.corpora), corpora, folder, done=done, workers=workers)
        previous = {} if before is None else {"previous": before.previous}
        data = seal({**built.payload(recipe, links), **previous})
        view = parse_view(data)  # what readers will accept, before it counts
        try:
            if before is not None:
                before.keep(store)
            if built.selection is not None:
                store.create(SELECTION, built.path)
            store.create(MANIFEST, data)
        except StorageConflict as error:
            raise StorageConflict(f"{error}: another view is there; choose another --output, or remove it") from None
    return view


@dataclass(frozen=True)
class Earlier:
    """A view that is made again, for later versions of its corpora. data: of its manifest."""

    store: Store
    view: View
    data: bytes

    @property
    def previous(self) -> list[str]:
        """What the view that is made of it names as earlier ones."""
        return [*self.view.previous, hashlib.sha256(self.data).hexdigest()]

    def keep(self, store: Store) -> None:
        """Publish this view's manifest and selection, and those that it keeps itself, in the new one's place."""
        for sha256 in self.previous:
            here = sha256 == self.previous[-1]
            old = self.store if here else open_store(earlier_folder(self.store.root, sha256))
            for name in (SELECTION, MANIFEST):
                if old.size(name) is not None:
                    store.create(f"{EARLIER}/{sha256}/{name}", old.read(name))


def view_again(location_of_view: str, corpora: Mapping[str, str]) -> tuple[MixRecipe, Earlier]:
    """The recipe of a view over later versions of some of its corpora, and the view. corpora: name -> where.

    Raises FormatError for what is not a view, and ValueError for a name that it has not, and for a corpus that no
    takedown made of the one that it was made of.
    """
    root = location(location_of_view)
    store = open_store(root)
    view, data = read_view(store)
    places = {link.name: resolve(link.location, root) for link in view.corpora}
    for name, where in corpora.items():
        if name not in places:
            raise ValueError(f"--corpus: {name!r} given, the corpora of the view are {', '.join(places):.300}")
        corpus = Corpus(location(where))
        wanted = next(link.manifest_sha256 for link in view.corpora if link.name == name)
        known = [corpus.sha256, *(takedown.previous for takedown in corpus.versions)]
        if wanted not in known:
            raise ValueError(
                f"--corpus {name}={where}: not a version that `refinery remove` made of the corpus of the view; "
                "`refinery mix RECIPE` makes a view of any corpus"
            )
        places[name] = where
    return recipe_of_view(view, places), Earlier(store, view, data)


def _check_free(store: Store, output: str) -> None:
    if "://" not in store.root and Path(store.root).exists() and not Path(store.root).is_dir():
        raise RefineError(f"{output} is a file, not a folder; choose another --output")
    if store.root.startswith(("http://", "https://")):
        raise ValueError(f"--output: {output} given, {WRITABLE}")
    kept = f"{EARLIER}/"
    foreign = [name for name in store.list() if name not in (MANIFEST, SELECTION) and not name.startswith(kept)]
    if foreign:
        raise RefineError(f"{output} holds {foreign[0]}, no view; choose another --output")
    if store.size(MANIFEST) is None and store.size(SELECTION) is not None:
        return  # of a command that was interrupted between the two
    store.sweep()


def dry_run(recipe: MixRecipe, workers: int = 0) -> tuple[Built, list[Corpus]]:
    """What the view would be, without its selection; nothing is written."""
    corpora, _ = open_all(recipe)
    with scratch_folder("a view's candidates") as folder:
        done = partial(work_done, "documents")
        return build(recipe, list(recipe.corpora), corpora, folder, done, write=False, workers=workers), corpora
