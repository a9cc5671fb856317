"""What stages prepare is built once per process, and goes when nobody needs it."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import apache_beam as beam
import pytest

from refinery.transforms.core.document import Document
from refinery.transforms.core.params import Params
from refinery.transforms.core.prepared import Prepared, prepare_once
from refinery.transforms.core.stage import Stage
from refinery.transforms.filter.decontaminate import DecontaminateParams, load_benchmarks
from tests.beam import make_document, run_and_collect

BUILT: list[str] = []
THREADS = 8


class TableParams(Params):
    """Nothing but a name."""

    name: str = "a"


class Table:
    pass


def build(params: TableParams) -> Table:
    BUILT.append(params.name)
    return Table()


def fails(params: TableParams) -> Table:
    BUILT.append(params.name)
    raise ValueError("damaged")


@pytest.fixture(autouse=True)
def _nothing_built() -> None:
    gc.collect()
    BUILT.clear()


def at_once(*prepares: partial) -> list[Prepared]:
    """Each in THREADS threads that start together."""
    start = threading.Barrier(THREADS * len(prepares))

    def run(prepare: partial) -> Prepared:
        start.wait()
        return prepare_once(prepare)

    with ThreadPoolExecutor(THREADS * len(prepares)) as pool:
        return list(pool.map(run, [*prepares] * THREADS))


def test_threads_share_one() -> None:
    found = at_once(partial(build, TableParams()), partial(build, TableParams(name="b")))
    assert sorted(BUILT) == ["a", "b"]
    assert len({id(each.resource) for each in found}) == 2


def test_the_table_of_benchmarks_is_built_once(tmp_path) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "one two three four five six seven eight nine ten"}\n')
    params = DecontaminateParams(benchmarks=({"path": str(tmp_path / "items.jsonl")},))
    load_benchmarks.cache_clear()
    found = at_once(partial(load_benchmarks, params))
    assert load_benchmarks.cache_info().misses == 1
    assert len({id(each.resource) for each in found}) == 1


def test_it_goes_with_the_last_that_needs_it() -> None:
    for _ in range(2):
        held = prepare_once(partial(build, TableParams()))
        assert prepare_once(partial(build, TableParams())) is held
        del held
        gc.collect()
    assert BUILT == ["a", "a"]


def test_a_failure_is_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            prepare_once(partial(fails, TableParams()))
    assert BUILT == ["a", "a"]


def test_functions_inside_others_are_called() -> None:
    assert prepare_once(lambda: 1).resource == 1


def judge(doc: Document, table: Table, params: TableParams) -> Document:
    """The document, with the id of the table."""
    return make_document(f"{id(table)} {threading.get_ident()}", doc.origin)


def test_copies_of_a_stage_share_one() -> None:
    stage = Stage(name="table", version=1, summary="Look.", params=TableParams, judge=judge, prepare=build)
    docs = [make_document("text", f"o{i}") for i in range(20)]
    (found,) = run_and_collect(
        lambda p: [p | beam.Create(docs) | stage(TableParams())], "--direct_runner_bundle_repeat=2"
    )
    assert len(found) == 20
    assert BUILT == ["a"]
