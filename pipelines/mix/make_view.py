"""`refinery mix`: open the corpora, build the view, publish it, the manifest last."""

import hashlib
from functools import partial
from pathlib import Path

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, SPLITS, Manifest, load_manifest, seal
from refinery.loader.format.selection import SELECTION
from refinery.loader.format.view import View, ViewDomain, parse_view, relative
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict, Store
from refinery.loader.view.opened_view import check_same_tokens
from refinery.loader.view.segments import shards_of
from refinery.pipelines.mix.build import Built, build, is_whole, parts_of
from refinery.pipelines.mix.recipe import MixRecipe
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.prefix import location
from refinery.transforms.core.counters import work_done

Opened = list[tuple[Store, Manifest]]


def open_all(recipe: MixRecipe) -> tuple[Opened, list[dict[str, str]]]:
    """The recipe's corpora, and the location and sha256 of each. Raises FormatError for what is no corpus, and where
    tokens are not the same in all."""
    corpora: Opened = []
    links = []
    for name, where in recipe.corpora.items():
        root = location(where)
        store = open_store(root)
        try:
            manifest, data = load_manifest(store)
        except FormatError as error:
            raise FormatError(f"corpora: {name}: {error}") from None
        corpora.append((store, manifest))
        links.append({"name": name, "location": root, "manifest_sha256": hashlib.sha256(data).hexdigest()})
    check_same_tokens([manifest for _, manifest in corpora], list(recipe.corpora))
    return corpora, links


def documents_to_read(recipe: MixRecipe, corpora: Opened) -> int:
    """For progress: of the domains that choose documents."""
    found = 0
    for domain in recipe.domains:
        shape = ViewDomain(domain.name, parts_of(domain, list(recipe.corpora), corpora), {})
        for split in SPLITS:
            shards = shards_of(shape, split, [manifest for _, manifest in corpora])
            if not is_whole(domain, split):
                found += sum(corpora[corpus][1].shards[shard].documents for corpus, shard in shards)
    return found


def make_view(recipe: MixRecipe, output: str, work: Work, workers: int = 0) -> View:
    """Publish the view at `output` and return it. The same view there already is success.

    Interrupted, the same command begins anew, and publishes the same bytes: nothing has its final name before it is
    complete, and the manifest comes last. workers: as of `build`. Raises RecipeError, FormatError, StorageConflict for
    another view there, and RefineError for a place that holds something else.
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
        data = seal(built.payload(recipe, links))
        view = parse_view(data)  # what readers will accept, before it counts
        try:
            if built.selection is not None:
                store.create(SELECTION, built.path)
            store.create(MANIFEST, data)
        except StorageConflict as error:
            raise StorageConflict(f"{error}: another view is there; choose another --output, or remove it") from None
    return view


def _check_free(store: Store, output: str) -> None:
    if "://" not in store.root and Path(store.root).exists() and not Path(store.root).is_dir():
        raise RefineError(f"{output} is a file, not a folder; choose another --output")
    if store.root.startswith(("http://", "https://")):
        raise ValueError(f"--output: {output} given, a local folder or gs://bucket/prefix is allowed")
    foreign = [name for name in store.list() if name not in (MANIFEST, SELECTION)]
    if foreign:
        raise RefineError(f"{output} holds {foreign[0]}, no view; choose another --output")
    if store.size(MANIFEST) is None and store.size(SELECTION) is not None:
        return  # of a command that was interrupted between the two
    store.sweep()


def dry_run(recipe: MixRecipe, workers: int = 0) -> tuple[Built, Opened]:
    """What the view would be, without its selection; nothing is written."""
    corpora, _ = open_all(recipe)
    with scratch_folder("a view's candidates") as folder:
        done = partial(work_done, "documents")
        return build(recipe, list(recipe.corpora), corpora, folder, done, write=False, workers=workers), corpora
