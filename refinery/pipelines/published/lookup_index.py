"""Which files of a corpus may have rows of an address or an origin: by its lookup index, without one all of them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.published.find_rows import Wanted, everywhere
from refinery.pipelines.published.scan import Say, scan, silent
from refinery.transforms.write.lookup.entries import FOLDER, SCHEMA, Entry, entry_files, key_hash, lookup_files

Key = tuple[str, str]  # "url" or "origin", and its value


class LookupIndex:
    """Where rows of addresses and origins may be. What was asked for is remembered.

    files: of lookup/, none in corpora of older versions.
    """

    def __init__(self, corpus: Corpus, say: Say = silent) -> None:
        self.store = corpus.store
        self.say = say
        self.files = [file.path for file in corpus.files(FOLDER)]
        self.manifest = corpus.manifest
        self._known: dict[Key, set[str]] = {}
        self._has_said = False

    def __call__(self, paths: Iterable[str], wanted: Wanted) -> Mapping[str, Wanted]:
        """Files that may have addresses or origins of `wanted`, each with what it may have of them: with an index any
        files of the corpus, else `paths`.

        Cost of an index: for each value that is new a footer and a row group, about 0.2 MB.
        """
        if not self.files:
            found = everywhere(paths, wanted)
            self._say_all(len(found))
            return found
        keys = [*(("url", value) for value in wanted.url), *(("origin", value) for value in wanted.origin)]
        self._look_up([key for key in keys if key not in self._known])
        of_path: dict[str, dict[str, set[str]]] = {}
        for column, value in keys:
            for path in self._known[column, value]:
                of_path.setdefault(path, {"url": set(), "origin": set()})[column].add(value)
        return {
            path: Wanted(frozenset(chosen["url"]), origin=frozenset(chosen["origin"]))
            for path, chosen in of_path.items()
        }

    @cached_property
    def _paths(self) -> Mapping[Entry, str]:
        """Not read where nothing is found: it is a pass over all shards of the manifest."""
        return entry_files(self.manifest)

    def _say_all(self, files: int) -> None:
        if files and not self._has_said:
            self.say("this corpus has no lookup index: addresses and origins are searched in every file")
            self._has_said = True

    def _look_up(self, keys: list[Key]) -> None:
        by_file: dict[int, list[tuple[int, Key]]] = {}
        hashes = np.array([key_hash(*key) for key in keys], np.uint64)
        for number, hash_, key in zip(lookup_files(hashes, len(self.files)), hashes.tolist(), keys, strict=True):
            by_file.setdefault(int(number), []).append((hash_, key))

        def look(number: int) -> list[tuple[Key, Entry]]:
            return list(_entries(self.store, self.files[number], by_file[number]))

        self._known |= {key: set() for key in keys}
        for found in scan(look, sorted(by_file), "files of the lookup index", self.say):
            for key, entry in found:
                if entry in self._paths:  # else the corpus has no such file: damaged, as verify says
                    self._known[key].add(self._paths[entry])


def _entries(store: Store, path: str, wanted: list[tuple[int, Key]]) -> Iterator[tuple[Key, Entry]]:
    """The entries of these hashes, all of which belong to that file. Cost: its footer, the hashes of each row group
    that may have one, and the rest of those that do."""
    with listed_parquet(store, path, SCHEMA) as file:
        for group in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(group).column(0).statistics
            known = facts is not None and facts.has_min_max
            here = [each for each in wanted if not known or facts.min <= each[0] <= facts.max]
            if not here:
                continue
            hashes = file.read_row_group(group, columns=["hash"], use_threads=False)["hash"].to_numpy()
            keys = np.array([hash_ for hash_, _ in here], np.uint64)
            firsts, lasts = (np.searchsorted(hashes, keys, side).tolist() for side in ("left", "right"))
            if firsts == lasts:
                continue
            table = file.read_row_group(group, columns=["place", "file"], use_threads=False)
            for (_, key), first, last in zip(here, firsts, lasts, strict=True):
                for row in table.slice(first, last - first).to_pylist():
                    yield key, (row["place"], row["file"])
