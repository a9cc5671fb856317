"""The loaders that `benchmarks/loader.py` compares, each used as its documentation shows.

All give batches of BATCH rows of SEQUENCE tokens as int64, shuffled except for the first limit, without workers. Rows
of SEQUENCE + 1 tokens are split into inputs and labels by two views, which costs nothing. For a loader with its own
format, the corpus is converted first, to samples of SEQUENCE + 1 tokens that overlap by one.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.loader_corpus import BATCH, EOS, SEED, SEQUENCE, VOCABULARY, Batches, Corpus, Side, Start
from refinery.loader.format.manifest import IndexedReader


def halves(rows: Any) -> tuple[Any, Any]:
    """Inputs and labels, two views of rows of SEQUENCE + 1 tokens."""
    return rows[:, :-1], rows[:, 1:]


# --- numpy ------------------------------------------------------------------------------------------------------------


def numpy_rows(corpus: Corpus, shuffled: bool) -> Start:
    def start(step: int) -> Batches:
        tokens, samples = corpus.open(), corpus.samples
        generator = np.random.default_rng(SEED)
        buffer = np.empty((BATCH, SEQUENCE + 1), np.int64)
        while True:
            order = (generator.permutation(samples) if shuffled else np.arange(samples)) * SEQUENCE
            starts = order[: corpus.steps * BATCH].reshape(-1, BATCH).tolist()
            for rows in starts[step:]:
                for out, first in zip(buffer, rows, strict=True):
                    out[:] = tokens[first : first + SEQUENCE + 1]
                yield halves(buffer)
            step = 0

    return start


def textbook(corpus: Corpus) -> Start:
    def start(step: int) -> Batches:
        generator = np.random.default_rng(SEED)
        needed, skip = BATCH * SEQUENCE + 1, step
        buffer: list[int] = []
        while True:
            documents = IndexedReader(corpus.bin)
            for i in generator.permutation(len(documents)).tolist():
                buffer.extend(documents[i].tolist())
                while len(buffer) >= needed:
                    batch = np.array(buffer[:needed], np.int64)
                    buffer = buffer[needed - 1 :]
                    if skip:
                        skip -= 1
                    else:
                        yield batch[:-1].reshape(BATCH, SEQUENCE), batch[1:].reshape(BATCH, SEQUENCE)

    return start


# --- torch ------------------------------------------------------------------------------------------------------------


def nanogpt(corpus: Corpus) -> Start:
    import torch

    def start(step: int) -> Batches:
        generator = torch.Generator().manual_seed(SEED + step)  # there is no order; resuming means another seed
        tokens = corpus.open()
        while True:
            where = torch.randint(corpus.tokens - SEQUENCE, (BATCH,), generator=generator).tolist()
            x = torch.stack([torch.from_numpy(tokens[i : i + SEQUENCE].astype(np.int64)) for i in where])
            y = torch.stack([torch.from_numpy(tokens[i + 1 : i + 1 + SEQUENCE].astype(np.int64)) for i in where])
            yield x, y

    return start


def megatron(corpus: Corpus, documents: bool = False, attention_mask: bool = False) -> Start:
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split
    from torch.utils.data import default_collate

    tokenizer = SimpleNamespace(
        eod=EOS, eos=EOS, vocab_size=VOCABULARY, unique_identifiers={"class": "ids"}, special_tokens_dict={}
    )

    def open_dataset() -> Any:
        config = GPTDatasetConfig(
            random_seed=SEED,
            sequence_length=SEQUENCE,
            blend=([str(corpus.shard)], None),
            split="1",
            path_to_cache=str(corpus.folder.parent / "megatron"),
            tokenizer=tokenizer,
            reset_position_ids=documents,
            reset_attention_mask=documents,
            eod_mask_loss=documents,
            create_attention_mask=attention_mask,
        )
        tokens = IndexedDataset(str(corpus.shard), multimodal=False, mmap=True)
        everything = np.arange(corpus.documents, dtype=np.int32)
        return GPTDataset(tokens, str(corpus.shard), everything, None, Split.train, config)

    def start(step: int) -> Batches:
        dataset = open_dataset()
        for i in count(step):
            batch = default_collate([dataset[j % len(dataset)] for j in range(i * BATCH, (i + 1) * BATCH)])
            yield {"input_ids": batch.pop("tokens"), **batch}

    open_dataset()  # writes the order's indices, which later data sets map
    return start


def mosaic(corpus: Corpus) -> Start:
    from streaming import MDSWriter, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    folder = corpus.folder.parent / "mosaic"
    if not (folder / "index.json").exists():
        tokens = corpus.open()
        with MDSWriter(out=str(folder), columns={"tokens": f"ndarray:int32:{SEQUENCE + 1}"}) as writer:
            for i in range(corpus.samples):
                writer.write({"tokens": np.array(tokens[i * SEQUENCE : (i + 1) * SEQUENCE + 1])})
    clean_stale_shared_memory()

    def open_dataset() -> Any:
        return StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=SEED, batch_size=BATCH)

    def start(step: int) -> Batches:
        dataset = open_dataset()
        if step:
            dataset.load_state_dict(state | {"sample_in_epoch": step * BATCH})
        while True:
            rows = []
            for sample in dataset:
                rows.append(sample["tokens"])
                if len(rows) == BATCH:
                    yield halves(np.stack(rows).astype(np.int64))
                    rows = []

    dataset = open_dataset()
    next(iter(dataset))
    state: dict[str, Any] = dataset.state_dict(0, from_beginning=True)
    return start


def token_blocks(part: range, path: Path) -> Iterator[Any]:
    """Samples of one part as tensors. litdata calls it in a separate process."""
    import torch

    tokens = np.memmap(path, np.int32, "r")
    for i in part:
        yield torch.from_numpy(np.array(tokens[i * SEQUENCE : (i + 1) * SEQUENCE + 1]))


def litdata(corpus: Corpus) -> Start:
    import torch
    from litdata import StreamingDataset, TokensLoader, optimize

    folder = corpus.folder.parent / "litdata"
    if not (folder / "index.json").exists():
        optimize(
            fn=partial(token_blocks, path=corpus.bin),
            inputs=[range(corpus.samples)],
            output_dir=str(folder),
            chunk_size=(SEQUENCE + 1) * 4096,  # 64 MiB, its default
            item_loader=TokensLoader(),
            num_workers=1,
            verbose=False,
        )

    def start(step: int) -> Batches:
        loader = TokensLoader(block_size=SEQUENCE + 1)
        dataset = StreamingDataset(str(folder), item_loader=loader, shuffle=True, drop_last=True, seed=SEED)
        if step:
            dataset.load_state_dict(dataset.state_dict(step * BATCH, 0, BATCH))
        while True:
            rows = []
            for sample in dataset:
                rows.append(sample)
                if len(rows) == BATCH:
                    yield halves(torch.stack(rows).long())
                    rows = []

    return start


def grain(corpus: Corpus) -> Start:
    import grain as library

    class Rows:
        def __init__(self) -> None:
            self.tokens = corpus.open()

        def __len__(self) -> int:
            return corpus.samples

        def __getitem__(self, i: Any) -> Any:
            return self.tokens[int(i) * SEQUENCE : (int(i) + 1) * SEQUENCE + 1]

    def start(step: int) -> Batches:
        dataset = library.MapDataset.source(Rows()).seed(SEED).shuffle().repeat().batch(BATCH, drop_remainder=True)
        batches = iter(dataset.to_iter_dataset(library.ReadOptions(num_threads=0, prefetch_buffer_size=0)))
        if step:
            batches.set_state(batches.get_state() | {"next_index": step})
        for rows in batches:
            yield halves(rows.astype(np.int64))

    return start


PEERS = {
    "numpy-sequential": Side("limit: consecutive rows into one buffer", partial(numpy_rows, shuffled=False)),
    "numpy-random": Side("limit: rows by a permutation into one buffer", partial(numpy_rows, shuffled=True)),
    "nanogpt": Side(
        "random offsets into a memmap, torch.stack; no epochs (the original, slower, maps the file for every batch)",
        nanogpt,
    ),
    "litdata": Side("TokensLoader, 64 MiB chunks, shuffle, torch.stack of the dataset's samples", litdata),
    "grain": Side("MapDataset over a memmap: shuffle, repeat, batch, no threads", grain),
    "megatron": Side(
        "GPTDataset over a memory-mapped IndexedDataset (our .bin and .idx), cached order indices, default_collate, "
        "create_attention_mask off: tokens, labels, loss_mask, position_ids",
        megatron,
    ),
    "megatron-documents": Side(
        "the same with reset_position_ids, reset_attention_mask and eod_mask_loss, as inter-document masking requires",
        partial(megatron, documents=True),
    ),
    "megatron-default": Side(
        "megatron with create_attention_mask on, its default: a dense 4,096 x 4,096 mask per row",
        partial(megatron, attention_mask=True),
    ),
    "mosaic": Side("StreamingDataset, MDS shards on the local disk, shuffle py1e, np.stack of its samples", mosaic),
    "textbook": Side("buffer.extend(document.tolist()), documents shuffled; resumes by replay", textbook),
}
