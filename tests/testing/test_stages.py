"""Every stage of ours keeps what `refinery.testing.StageTests` asks, and stages that do not are found."""

from collections.abc import Mapping
from typing import Any

from refinery.pipelines.recipe.load_recipe import all_stages
from refinery.testing import StageTests
from refinery.testing.hostile import SHAPES
from tests.sampling import sampled
from tests.testing.stage_cases import CASES

JUDGING = {stage.name: stage for stage in all_stages() if stage.judge is not None}


def test_every_stage_that_judges_documents_is_tried() -> None:
    assert JUDGING.keys() == CASES.keys()


LONG = sampled(
    "long texts for stages",
    [(stage, shape) for stage in JUDGING for shape in SHAPES],
    2 * len(JUDGING),
    lambda cell: cell,
)


class Ours(StageTests):
    __test__ = False

    def examples(self) -> Mapping[str, str]:
        return CASES[self.stage.name].examples

    def params(self) -> Any:
        given = CASES[self.stage.name].given
        made = given() if callable(given) else given
        return self.stage.params(**made) if isinstance(made, Mapping) and self.stage.params else made

    def document(self, text: str, number: int) -> Any:
        return CASES[self.stage.name].make(super().document(text, number))


for _name, _stage in JUDGING.items():
    _title = "".join(word.capitalize() for word in _name.split("-"))
    globals()[f"Test{_title}"] = type(
        f"Test{_title}",
        (Ours,),
        {"stage": _stage, "unlimited": CASES[_name].unlimited, "__test__": True}
        | {"shapes": [shape for name, shape in LONG if name == _name]},
    )
