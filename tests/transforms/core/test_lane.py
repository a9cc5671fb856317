"""A lane: an order of declarations, and what follows from it."""

from dataclasses import replace
from typing import Any

import pytest

from refinery.pipelines.lanes.web import LANE as WEB
from refinery.pipelines.recipe.recipe import find_lane, lane_names, recipe_class
from refinery.transforms.core.document import Document
from refinery.transforms.core.lane import Lane
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Sink, Stage, Writer


class SomeParams(Params):
    some: int = 1


def make(name: str, **fields: Any) -> Stage[Any]:
    judge = fields.pop("judge", lambda doc, params: doc)
    return Stage(name=name, version=1, summary=f"{name}.", params=SomeParams, judge=judge, **fields)


def composite(name: str, *uses: str, **fields: Any) -> Stage[Any]:
    return Stage(name=name, version=1, summary=f"{name}.", uses=uses, **fields)


URL = make("url", notes=(Note("host", str, "the host", column=True),))
LANE = Lane(
    name="small",
    summary="A lane for tests.",
    readers=("warc",),
    clean=(composite("read", "sources", "limits"), URL, make("too-long", uses=("limits",))),
    parts=Sink(name="parts", version=1, summary="Parts.", uses=("signature", "rank")),
    dedup=(composite("copies", "near_dup", "rank", notes=(Note("copies", int, "how many"),)),),
    shards=(
        make("quality", notes=(Note("quality", float, "a score", column=True),)),
        make("encode", section="tokens", output=bytes),
    ),
    writer=Writer(
        name="plain",
        version=1,
        summary="Files.",
        uses=("shards", "sources"),
        files={"text": ".txt"},
        write=lambda paths, shard: None,
        read=lambda files: (),
    ),
)


def test_order_is_that_of_the_phases() -> None:
    assert LANE.funnel == ("read", "url", "too-long", "copies", "quality", "encode")
    assert [stage.name for name in PHASES for stage in LANE.phase(name)] == list(LANE.funnel)
    assert [LANE.phase_of(stage) for stage in LANE.stages] == ["clean"] * 3 + ["dedup"] + ["shards"] * 2
    assert [sink and sink.name for sink in map(LANE.sink, PHASES)] == ["parts", None, "plain"]


def test_notes_and_columns_are_in_order() -> None:
    assert [note.name for note in LANE.notes] == ["host", "copies", "quality"]


def test_a_section_belongs_to_the_first_phase_that_uses_it() -> None:
    assert LANE.sections("clean") == ("sources", "limits", "url", "too_long", "signature", "rank")
    assert LANE.sections("dedup") == ("near_dup",)  # rank decided the parts already
    assert LANE.sections("shards") == ("quality", "tokens", "shards")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clean": (*LANE.clean, URL)}, "lane small: stage 'url' declared twice"),
        ({"shards": (URL, *LANE.shards)}, "lane small: stage 'url' declared twice"),
        ({"shards": (make("other", section="url"), *LANE.shards)}, "lane small: section 'url' declared twice"),
        (
            {"dedup": (composite("other", notes=(Note("host", str, ""),)),)},
            "lane small: note 'host' declared twice",
        ),
    ],
)
def test_nothing_is_declared_twice(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(LANE, **changes)


@pytest.mark.parametrize(
    ("after", "funnel"),
    [
        ("url", ("read", "url", "new", "too-long", "copies", "quality", "encode")),
        ("too-long", ("read", "url", "too-long", "new", "copies", "quality", "encode")),
        ("quality", ("read", "url", "too-long", "copies", "quality", "new", "encode")),
    ],
)
def test_a_stage_is_inserted_behind_another(after: str, funnel: tuple[str, ...]) -> None:
    new = make("new")
    longer = LANE.insert(new, after)
    assert longer.funnel == funnel
    assert longer.phase_of(new) == LANE.phase_of(next(stage for stage in LANE.stages if stage.name == after))
    assert "new" in longer.sections(longer.phase_of(new))
    assert LANE.funnel == replace(LANE).funnel and "new" not in LANE.funnel  # the lane itself is untouched
    twice = longer.insert(make("newer"), "new")
    assert twice.funnel.index("newer") == twice.funnel.index("new") + 1


@pytest.mark.parametrize("after", ["read", "copies", "encode", "nowhere", ""])
def test_places_without_documents_are_refused(after: str) -> None:
    with pytest.raises(ValueError, match=f"^after: '{after}' given, url, too-long, quality is allowed$"):
        LANE.insert(make("new"), after)


@pytest.mark.parametrize(("new", "what"), [(make("url"), "stage 'url'"), (make("new", section="tokens"), "section")])
def test_what_is_taken_is_refused(new: Stage[Any], what: str) -> None:
    with pytest.raises(ValueError, match=f"^lane small: {what}.* declared twice$"):
        LANE.insert(new, "url")


def test_every_place_takes_a_stage() -> None:
    for after in WEB.places():
        longer = WEB.insert(make("new-one"), after)
        assert longer.funnel.index("new-one") == WEB.funnel.index(after) + 1
        assert longer.notes == WEB.notes
    emits = {stage.name: stage.output for stage in WEB.stages}
    assert {emits[after] for after in WEB.places()} == {Document}


def test_a_name_stands_for_one_declaration() -> None:
    """Pages, golden outputs and reasons are by name, whatever the lane."""
    lanes = [find_lane(name) for name in lane_names()]
    parts = [part for lane in lanes for part in (*lane.stages, lane.parts, lane.writer)]
    assert len({part.name for part in parts}) == len(set(parts))


def test_defaults_of_a_lane_are_sections_of_its_recipes() -> None:
    for lane in map(find_lane, lane_names()):
        fields = recipe_class(lane).model_fields
        assert lane.defaults.keys() <= fields.keys()
        assert all(fields[name].default == value for name, value in lane.defaults.items())
        assert replace(lane, defaults={}) != lane or not lane.defaults
