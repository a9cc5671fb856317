"""`refinery adopt`: a manifest for files that another tool wrote, after every byte of them was checked.

Megatron's own tools write .bin and .idx and nothing beside. The manifest adds what a reader checks later (sizes,
checksums, counts, the tokenizer); where documents come from stays unknown, so its shards have no provenance.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from refinery import DISTRIBUTION
from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import BlockHasher
from refinery.loader.format.indexed import DTYPES
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    KIND,
    MANIFEST,
    RUN,
    WRITER,
    Manifest,
    seal,
    shard_name,
)
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import WRITABLE, open_store
from refinery.loader.storage.store import CHUNK, Hasher, Store, checksums, size_and_crc32c
from refinery.pipelines.corpus.adopt.document_ends import DocumentEnds, Marks
from refinery.pipelines.corpus.adopt.find_pairs import Pair, find_pairs, place_of
from refinery.pipelines.corpus.adopt.megatron_index import FoundIndex, read_megatron_index
from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes
from refinery.transforms.tokenize.published import published_files
from refinery.transforms.tokenize.tokenizer import Tokenizer

PROGRESS = 4 << 30  # bytes of a .bin between two lines that say how far it is
AUTO = "auto"
WIDEST = max(dtype.itemsize for dtype in DTYPES.values())


@dataclass(frozen=True)
class AdoptOptions:
    """train, validation: [DOMAIN=]LOCATION of .bin and .idx. bos, eos: the token's name, "auto" for the tokenizer's
    own, None if documents have none. copy: copy files that are outside of `output`, which are refused otherwise."""

    train: Sequence[str]
    tokenizer: str
    output: str
    validation: Sequence[str] = ()
    bos: str | None = AUTO
    eos: str | None = AUTO
    copy: bool = False
    name: str = ""


@dataclass
class _Shard:
    """A pair that was checked. own: its name below the output, "" where it has to be copied."""

    pair: Pair
    found: FoundIndex
    ends: DocumentEnds
    bin: dict[str, Any]
    idx: dict[str, Any]
    idx_bytes: bytes
    own: str


def adopt(options: AdoptOptions, say: Callable[[str], None] = print) -> Manifest:
    """Check every byte of the files and write the manifest of their corpus; returns it.

    Raises ValueError for arguments, FormatError for files that are not as they must be, StorageConflict where a file of
    another content has the name, OSError as the stores do. Nothing is written unless everything was checked. Cost: a
    read of every file, a second one if it is copied; memory: a chunk of 8 MiB, the index of one shard and 24 bytes for
    each of its documents.
    """
    root = place_of(options.output)
    if root.startswith(("http://", "https://")):
        raise ValueError(f"--output: {options.output} given, {WRITABLE}")
    store = open_store(root)
    for name in (MANIFEST, RUN):
        if store.size(name) is not None:
            raise ValueError(f"--output: {options.output} given, which holds {name}: another corpus or run")
    data = read_resource(options.tokenizer)
    tokenizer = load_tokenizer_bytes(data, options.tokenizer)
    bos_id = _mark(tokenizer, "bos", options.bos, tokenizer.bos_id())
    eos_id = _mark(tokenizer, "eos", options.eos, tokenizer.eos_id())
    pairs = [*find_pairs(options.train, "train", "corpus"), *find_pairs(options.validation, "validation", "corpus")]
    urls = [pair.url for pair in pairs]
    if twice := [url for i, url in enumerate(urls) if url in urls[:i]]:
        raise ValueError(f"{twice[0]}: given twice, each file once is allowed")
    owns = [_own_name(pair, root, options) for pair in pairs]
    absent = (options.bos is None, options.eos is None)
    name = options.name or root.rpartition("/")[2]
    return adopt_pairs(store, pairs, owns, Known(options.tokenizer, data, bos_id, eos_id, name, absent), say)


@dataclass(frozen=True)
class Known:
    """What is said of the files of a corpus. path, data: of its tokenizer. bos_id, eos_id: what is looked for at the
    ends of documents, None for nothing. absent: whether documents have none of either all the same."""

    path: str
    data: bytes
    bos_id: int | None
    eos_id: int | None
    name: str
    absent: tuple[bool, bool] = (False, False)


def adopt_pairs(
    store: Store,
    pairs: Sequence[Pair],
    owns: Sequence[str],
    known: Known,
    say: Callable[[str], None],
    extra: Sequence[dict[str, Any]] = (),
) -> Manifest:
    """Check every byte of pairs and write the manifest of their corpus to `store`; as `adopt`.

    owns: the name of each pair there, "" for one that has to be copied. extra: further files of the corpus.
    """
    vocab_size = load_tokenizer_bytes(known.data, known.path).vocab_size
    ids = known.bos_id, known.eos_id
    shards = [_check(pair, own, vocab_size, ids, say) for pair, own in zip(pairs, owns, strict=True)]
    _check_whole(shards)
    marks = {
        "bos": _verdict("bos", known.absent[0], known.bos_id, [(s, s.ends.bos) for s in shards], say),
        "eos": _verdict("eos", known.absent[1], known.eos_id, [(s, s.ends.eos) for s in shards], say),
    }
    bos_id, eos_id = (marks[key]["id"] for key in ("bos", "eos"))
    published = published_files(known.path, known.data, bos_id, eos_id)
    files = {f"tokenizer/{name}": content for name, content in published.items()}
    entries = list(_shard_entries(store, shards, say))
    payload = {
        "kind": KIND,
        "name": known.name,
        "lane": ADOPTED,
        "writer": WRITER,
        "stages": [],
        "columns": [],
        "dtype": shards[0].found.index.dtype.name,
        "dtype_code": DTYPE_CODES[shards[0].found.index.dtype],
        "tokenizer": {"path": next(iter(files)), "vocab_size": vocab_size, "bos_id": bos_id, "eos_id": eos_id},
        "shards": entries,
        "files": [
            *({"path": name, **checksums(content)._asdict()} for name, content in files.items()),
            *extra,
        ],
        "totals": {"documents": _sum(entries, "documents"), "tokens": _sum(entries, "tokens"), "bytes": 0},
        "funnel": [],
        "recipe": {ADOPTED: marks},
        "versions": {"refinery": version(DISTRIBUTION)},
    }
    fingerprint = hashlib.sha256(seal(payload)).hexdigest()
    made = make_manifest(payload | {"fingerprint": fingerprint}, store.url(MANIFEST))
    for name, content in files.items():
        store.create(name, content)
    made.publish(store)
    return made.manifest


def _mark(tokenizer: Tokenizer, key: str, name: str | None, own: int | None) -> int | None:
    """The id of what may stand at an end of documents. It is looked for also where it was declared absent."""
    if name in (None, AUTO):
        return own
    found = tokenizer.token_id(str(name))
    if found is None:
        raise ValueError(f"--{key}: {name!r} given, which is not a token of --tokenizer")
    return found


def _own_name(pair: Pair, root: str, options: AdoptOptions) -> str:
    if pair.url.startswith(f"{root}/"):
        return pair.url[len(root) + 1 :]
    if not options.copy:
        raise ValueError(
            f"{pair.url}.bin is not below --output {options.output}: a manifest lists only files below its folder. "
            "Give a folder that holds them all as --output, or pass --copy"
        )
    return ""


def _check(
    pair: Pair, own: str, vocab_size: int, marked: tuple[int | None, int | None], say: Callable[[str], None]
) -> _Shard:
    bin_name, idx_name = f"{pair.name}.bin", f"{pair.name}.idx"
    idx_bytes = pair.store.read(idx_name)
    found = read_megatron_index(idx_bytes, pair.store.url(idx_name))
    url, size, expected = pair.store.url(bin_name), pair.store.size(bin_name), found.index.bin_size
    if size != expected:
        raise FormatError(f"{url}: {size} bytes found, {expected} expected from its .idx")
    say(f"{url}: {size:,} bytes, {len(found.index):,} documents")
    ends = DocumentEnds(found.index, vocab_size, *marked, url)
    hasher, blocks, said = Hasher(), BlockHasher(), 0
    with pair.store.open(bin_name) as stream:
        for chunk in _chunks(stream):
            hasher.update(chunk)
            blocks.update(chunk)
            ends.watch(chunk)
            if hasher.size - said >= PROGRESS:
                said = hasher.size
                say(f"{url}: {said / 1e9:,.1f} of {size / 1e9:,.1f} GB")
    if hasher.size != size:
        raise FormatError(f"{url}: {hasher.size} bytes read, {size} expected: it changed meanwhile")
    bin_entry = {"path": f"{own}.bin", **hasher.result()._asdict(), "block_crc32c": blocks.result()}
    idx_entry = {"path": f"{own}.idx", **checksums(idx_bytes)._asdict()}
    return _Shard(pair, found, ends, bin_entry, idx_entry, found.joined or idx_bytes, own)


def _chunks(stream: Any) -> Iterator[bytes]:
    """Pieces of whole tokens: a remote stream may return less than it was asked for."""
    rest = b""
    while data := stream.read(CHUNK):
        data = rest + data
        whole = len(data) // WIDEST * WIDEST
        yield data[:whole]
        rest = data[whole:]
    if rest:
        yield rest


def _check_whole(shards: Sequence[_Shard]) -> None:
    """What no file shows alone."""
    if not any(shard.found.index.tokens for shard in shards):
        raise FormatError("there are no tokens in these files")
    dtypes = {shard.found.index.dtype.name: shard.pair.url for shard in shards}
    if len(dtypes) > 1:
        both = " and ".join(f"{name} in {url}.idx" for name, url in sorted(dtypes.items()))
        raise FormatError(f"{both} found, but a corpus has one type of token; adopt them as two")


def _verdict(
    key: str,
    is_absent: bool,
    id_: int | None,
    found: Sequence[tuple[_Shard, Marks | None]],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """What the manifest says of BOS or EOS: its id, None if documents have none, and how often it stands elsewhere."""
    if id_ is None:
        say(f"{key}: the tokenizer names none, so documents have none")
        return {"id": None, "elsewhere": 0}
    pairs = [(shard, marks) for shard, marks in found if marks is not None]
    filled, there = sum(shard.ends.filled for shard, _ in pairs), sum(marks.there for _, marks in pairs)
    total = sum(marks.total for _, marks in pairs)
    where = "begin" if key == "bos" else "end"
    if is_absent:
        if there == filled:
            raise FormatError(f"--no-{key}: given, but all {filled:,} documents {where} with {key.upper()} {id_}")
        return {"id": None, "elsewhere": 0}
    if there < filled:
        shard, marks = next((shard, marks) for shard, marks in pairs if marks.first >= 0)
        raise FormatError(
            f"{there:,} of {filled:,} documents {where} with {key.upper()} {id_}; the first that does not: document "
            f"{marks.first} of {shard.pair.url}.bin. Give --no-{key} if documents have none, or --{key} NAME of another"
        )
    if total > there:
        say(f"{key}: {total - there:,} times elsewhere in documents, too")
    return {"id": id_, "elsewhere": total - there}


def _shard_entries(store: Store, shards: Sequence[_Shard], say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The manifest's entries; copies files, and publishes an .idx where documents had several sequences.

    Files without tokens are left out: Megatron cannot map them.
    """
    for shard in shards:
        if not shard.found.index.tokens:
            say(f"{shard.pair.url}.bin: has no tokens, left out")
    shards = [shard for shard in shards if shard.found.index.tokens]
    counts: dict[tuple[str, str], int] = {}
    for shard in shards:
        key = shard.pair.split, shard.pair.domain
        counts[key] = counts.get(key, 0) + 1
    numbers = dict.fromkeys(counts, 0)
    for shard in shards:
        key = shard.pair.split, shard.pair.domain
        number = numbers[key]
        numbers[key] += 1
        name = shard_name(*key, number, counts[key])
        if not shard.own:
            shard.bin["path"] = f"{name}.bin"
            _copy(shard, store, say)
        if not shard.own or shard.found.joined:
            if shard.found.joined:
                say(f"{shard.pair.url}.idx: documents of {shard.found.sequences:,} sequences; {name}.idx joins them")
            store.create(f"{name}.idx", shard.idx_bytes)
            shard.idx = {"path": f"{name}.idx", **checksums(shard.idx_bytes)._asdict()}
        entry = {"split": key[0], "domain": key[1], "index": number, "count": counts[key]}
        counted = {"documents": len(shard.found.index), "tokens": shard.found.index.tokens}
        yield {**entry, **counted, "files": {"bin": shard.bin, "idx": shard.idx}}


def _copy(shard: _Shard, store: Store, say: Callable[[str], None]) -> None:
    name, source = str(shard.bin["path"]), f"{shard.pair.name}.bin"
    say(f"{shard.pair.url}.bin: copied to {store.url(name)}")
    path = shard.pair.store.local_path(source)
    if path is not None:
        store.create(name, path)
    else:
        with scratch_folder(name) as folder, shard.pair.store.open(source) as stream:
            near = Path(folder, "tokens.bin")
            with near.open("wb") as out:
                for chunk in _chunks(stream):
                    out.write(chunk)
            store.create(name, near)
    with store.open(name) as stream:
        found = size_and_crc32c(stream)
    if found != (shard.bin["size"], shard.bin["crc32c"]):
        store.delete(name)
        raise FormatError(f"{shard.pair.url}.bin: it changed while it was copied")


def _sum(entries: Sequence[dict[str, Any]], key: str) -> int:
    return sum(int(entry[key]) for entry in entries)
