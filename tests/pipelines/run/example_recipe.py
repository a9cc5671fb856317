"""Parameters of every type, as a recipe of its own."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.core.params import Params


class NearDup(Params):
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.75
    bands: int = 14


class Source(Params):
    name: str
    paths: tuple[str, ...]
    format: Literal["auto", "warc", "off"] = "auto"
    sample: float = 1.0
    cap: int | None = None


class Limits(Params):
    bytes: int = 10
    ratio: float | None = 0.5


class Recipe(Params):
    name: str
    sources: tuple[Source, ...] = ()
    limits: Limits = Limits(bytes=7)
    near_dup: NearDup | None = NearDup()
    quality: NearDup | None = None
    exact_dup: bool = True
    thresholds: Mapping[str, float] = {}
    by_source: Mapping[str, NearDup | None] = {}
    nested: tuple[tuple[int, ...], ...] = ()
    verbose: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name == "bad":
            raise ValueError("this recipe cannot be")
        return self


def read(text: str) -> Recipe:
    return parse(Recipe, load_yaml(text, "r.yaml"))
