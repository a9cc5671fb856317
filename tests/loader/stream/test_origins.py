"""Rows know where they come from: domains, numbers, documents and addresses, compared with the files themselves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from refinery.loader import Corpus, TokenStream
from tests.corpus_factory import build_corpus
from tests.loader.streams import TEXTS, S, stream


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("origins") / "corpus"
    build_corpus(root, TEXTS)
    return root


def check_row(corpus: Path, one: TokenStream, number: int, inputs: list[int], real: int) -> str:
    """The parts say which tokens of which documents are in the row; read from the shards themselves."""
    parts = one.locate(number)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == real
    shards = {shard.entry.bin.path: shard for shard in Corpus(str(corpus)).shards()}
    for part in parts:
        shard = shards[part.shard]
        tokens = shard[part.document][part.first : part.first + part.stop - part.start]
        assert tokens.tolist() == inputs[part.start : part.stop]
        row = pq.read_table(corpus / shard.entry.provenance.path).slice(part.document, 1).to_pylist()[0]
        expected = row["id"].hex(), row["url"], row["source"], row["origin"]
        assert (part.id, part.url, part.source, part.origin) == expected
        assert part.domain == shard.entry.domain
    return parts[0].domain


@pytest.mark.parametrize("options", [{}, {"weights": {"web": 1, "code": 2}}, {"rank": 1, "world_size": 3}])
def test_every_row(corpus: Path, options: dict[str, Any]) -> None:
    seen = []
    with stream(corpus, epochs=1, domain_ids=True, sample_ids=True, doc_ids=True, **options) as one:
        assert sorted(one.domain_names) == ["code", "web"]
        for batch in one:
            assert batch["domain_ids"].dtype == np.int32 and batch["sample_ids"].dtype == np.int64
            for row, (domain, number) in enumerate(zip(batch["domain_ids"], batch["sample_ids"], strict=True)):
                real = int((batch["doc_ids"][row] >= 0).sum())
                assert (number < 0) == (domain < 0) == (real == 0)
                if real:
                    seen.append(int(number))
                    found = check_row(corpus, one, int(number), batch["input_ids"][row].tolist(), real)
                    assert one.domain_names[domain] == found
    assert len(set(seen)) == len(seen)


def test_the_arrays_change_nothing_else(corpus: Path) -> None:
    plain, more = stream(corpus, epochs=1), stream(corpus, epochs=1, domain_ids=True, sample_ids=True)
    for one, other in zip(plain, more, strict=True):
        assert set(other) - set(one) == {"domain_ids", "sample_ids"}
        assert all((one[name] == other[name]).all() for name in one)
    assert plain.state_dict() == more.state_dict()


def test_numbers_are_refused(corpus: Path) -> None:
    with stream(corpus) as one:
        for number in (-1, 10**9):
            with pytest.raises(ValueError, match=r"sample: .* given, 0 to \d+ is allowed"):
                one.locate(number)
        with pytest.raises(ValueError, match=r"sample_id: 1\.5 given"):
            one.locate(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"epochs": 3}, {"weights": {"web": 3, "code": 1}, "epochs": 3}])
def test_tokens_per_domain_whatever_was_resumed(corpus: Path, options: dict[str, Any]) -> None:
    """Counted by hand from the rows of the stream itself, across epochs, and by streams that resume anywhere."""
    tokens = {"web": 0, "code": 0}
    with stream(corpus, batch_size=1, sample_ids=True, doc_ids=True, **options) as one:
        assert one.tokens_per_domain == tokens
        for number, batch in enumerate(one):
            for part in one.locate(int(batch["sample_ids"][0])):
                tokens[part.domain] += part.stop - part.start
            assert one.tokens_per_domain == tokens
            if number % 7 == 3:
                with stream(corpus, **options) as other:
                    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
                    assert other.tokens_per_domain == tokens
                    if next(other, None) is not None:
                        assert sum(other.tokens_per_domain.values()) > sum(tokens.values())
    totals = {"web": 0, "code": 0}
    for shard in Corpus(str(corpus)).shards():
        totals[shard.entry.domain] += shard.entry.tokens
    if "weights" not in options:
        assert tokens == {name: 3 * count for name, count in totals.items()}
    assert max(tokens.values()) > S
