"""The graphs of the three phases as Dataflow gets them: names that a person reads, hints, size, nothing local."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup.components.find import FindComponents
from refinery.transforms.dedup.records.record_batch import LABEL, LABELS, LINK, LINKS, gather
from tests.beam import run_and_collect
from tests.pipelines.dataflow_graphs import (
    PHASES,
    demo_recipe,
    dry_run,
    functions,
    local_strings,
    no_credentials,
    phase_build,
    steps,
)
from tests.sampling import one_commit_in_four, scaled

# The steps of an exchange, below its name.
EXCHANGE = re.compile(
    r"/(together|key|sent/each|grouped(/.*)?|arrived/each|of key|sum of key|before|balance|of all|sum of all)$"
)
LIST = ("list/start", "list/items", "list/deal")
EVERY = (
    *("check-workers/start", "check-workers/compare"),
    *(f"report/{step}" for step in ("start", "job", "records", "write", "report", "publish")),
)
EXACTLY = tuple(
    f"verify-exactly/{step}"
    for step in (
        *("propose/batches/each", "by part", "shingles/batches/each"),
        *("by chunk", "settle/batches/each", "reference"),
    )
)
NEAR = (
    *("to hash", "hashes/batches/each", "by hash", "buckets/batches/each"),
    *("to sketch", "bands/batches/each", "by band", "links/batches/each"),
    *("components/route/batches/each", "components/by member", "components/reduce/batches/each"),
    *("components/all links", "components/forest/batches/each"),
    *("to verify", "members/batches/each", "by component"),
    *EXACTLY,
)


def own_steps(graph: Any) -> set[str]:
    """What the console shows, an exchange as one step."""
    return {EXCHANGE.sub("", name) for name in steps(graph)}


STEPS = {
    "clean": {
        *EVERY,
        *(f"ReadSources/{step}" for step in (*LIST, "tasks", "read/records/each")),
        *(f"{stage}/judge/each" for stage in ("extract", "secrets", "url", "language", "heuristics")),
        *(f"measure-{point}/tally/each" for point in ("extracted", "cleaned")),
        "write-documents/parts/each",
    },
    "dedup": {
        *EVERY,
        *(f"deduplicate/{step}" for step in (*LIST, "headers", "by part")),
        *(f"deduplicate/exact-duplicates/provenance/{step.removeprefix('list/')}" for step in LIST),
        *(
            f"deduplicate/exact-duplicates/{step}"
            for step in ("to read", "identities/batches/each", "listings", "reference-ids/batches/each")
        ),
        *(f"deduplicate/exact-duplicates/{step}" for step in ("first of part", "by id", "keep-first/batches/each")),
        "deduplicate/exact-duplicates/later in part",
        *(f"deduplicate/near-duplicates/{step}" for step in NEAR),
        *(f"deduplicate/lines/{step}" for step in ("kept", "lines/batches/each", "by hash")),
        *(f"deduplicate/lines/{step}" for step in ("count/batches/each", "by part", "cuts/batches/each")),
        *(f"deduplicate/substrings/{step}" for step in ("kept", "anchors/batches/each", "by anchor")),
        *(f"deduplicate/substrings/{step}" for step in ("repeated/batches/each", "by part")),
        *(f"deduplicate/substrings/{step}" for step in ("windows/batches/each", "by window", "repeats/batches/each")),
        *(f"deduplicate/substrings/{step}" for step in ("of part", "spans/batches/each")),
        *("deduplicate/assemble-verdicts/verdicts/each", "write-verdicts/parts"),
    },
    "shards": {
        *EVERY,
        *(f"kept-documents/{step}" for step in (*LIST, "groups", "deal groups", "read")),
        *(f"{stage}/judge/each" for stage in ("substrings", "lines", "quality", "toxicity", "pii", "encode")),
        *(f"measure-{point}/tally/each" for point in ("deduplicated", "final")),
        *(f"shuffle/{step}" for step in ("start", "every shard", "batch", "by shard")),
        "write-shards/write",
        *(f"write-removals/{step}" for step in (*LIST, "batch", "start", "every file", "by file", "write")),
    },
}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The graph of each phase over ten files."""
    with pytest.MonkeyPatch.context() as patch:
        no_credentials(patch)
        folder = tmp_path_factory.mktemp("lists")
        yield {name: dry_run(phase_build(name, demo_recipe(), 10, folder)).proto_pipeline for name in PHASES}


@one_commit_in_four
@pytest.mark.parametrize("phase", PHASES)
def test_steps_have_names_that_a_person_can_read(graphs: dict[str, Any], phase: str) -> None:
    assert own_steps(graphs[phase]) == STEPS[phase]
    assert not [
        name for name in steps(graphs[phase]) if "ReshufflePerKey" not in name and re.search(r"lambda|\(", name)
    ]


@one_commit_in_four
@pytest.mark.parametrize("phase", PHASES)
def test_a_hundred_thousand_files_make_no_larger_request_than_ten(
    graphs: dict[str, Any], tmp_path: Path, phase: str
) -> None:
    """Or a few thousand, where not everything runs: their lists are larger than the request already."""
    few = graphs[phase]
    files = scaled(100_000, 4_000)
    many = dry_run(phase_build(phase, demo_recipe(), files, tmp_path)).proto_pipeline
    assert abs(many.ByteSize() - few.ByteSize()) <= few.ByteSize() // 100
    assert many.ByteSize() < 300_000
    listed = sum(path.stat().st_size for path in tmp_path.rglob("list-*.jsonl"))
    assert listed > files // 2000 * many.ByteSize()  # they are somewhere: in the objects that the job reads
    assert any(b"apache_beam/transforms/core.py" in code for _, code in functions(many))
    found = [(name, place) for name, code in functions(many) for place in local_strings() if place in code]
    assert not found
    assert not [place for place in local_strings() if place in many.SerializeToString()]


def hinted(graph: Any) -> dict[str, bytes]:
    """Step -> its hint of memory; all other steps have one environment, without hints."""
    found = {}
    used = {name: step.environment_id for name, step in steps(graph).items() if step.environment_id}
    for name, environment in used.items():
        hints = graph.components.environments[environment].resource_hints
        if hints:
            assert list(hints) == ["beam:resources:min_ram_bytes:v1"]
            found[name] = hints["beam:resources:min_ram_bytes:v1"]
    assert len(set(used.values())) == 1 + len(set(found.values()))
    return found


def test_steps_get_more_memory_only_where_a_default_worker_has_too_little(
    graphs: dict[str, Any], tmp_path: Path
) -> None:
    assert [hinted(graphs[phase]) for phase in PHASES] == [{}, {}, {}]
    large = demo_recipe(shards={"target_bytes": 4 << 30})  # 2.6 GB, and 8 shards at once of 4 GiB each
    shards = dry_run(phase_build("shards", large, 10, tmp_path)).proto_pipeline
    hint = b"37000000000"  # what counts a group runs where the group is taken: they must not come apart
    assert hinted(shards) == {"write-shards/write": hint, "shuffle/by shard/arrived/each": hint}


@pytest.mark.parametrize(("documents", "hint"), [(400_000_000, None), (1_000_000_000, b"36000000000")])
def test_a_forest_gets_what_its_documents_may_take(documents: int, hint: bytes | None) -> None:
    def build(pipeline: beam.Pipeline) -> None:
        links = pipeline | beam.Create([(0, b"")]).with_output_types(tuple[int, bytes])
        links | FindComponents("near-duplicates", "near", "forest", 4, documents)
        take_side_outputs(pipeline)

    names = ("components/forest/batches/each", "components/all links/arrived/each")
    expected = dict.fromkeys(names, hint) if hint else {}
    assert hinted(dry_run(build).proto_pipeline) == expected


def test_a_step_with_a_hint_runs_on_this_machine_too() -> None:
    links = np.array([(7, 3), (9, 7)], LINK)
    (found,) = run_and_collect(
        lambda pipeline: [
            pipeline
            | beam.Create([(0, bytes([LINKS]) + links.tobytes())]).with_output_types(tuple[int, bytes])
            | FindComponents("near-duplicates", "near", "forest", 1, 1_000_000_000)
        ]
    )
    rows = gather([batch for _, batch in found], LABELS, LABEL)
    assert sorted(rows.tolist()) == [(3, 3), (7, 3), (9, 3)]
