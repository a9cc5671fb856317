"""The recipe of a view: corpora, the view's domains, and how they are mixed. docs/mixing.md explains every key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from refinery.loader.format.manifest import check_domain
from refinery.loader.format.view import MOST_CORPORA, MOST_TURNS, View
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.pipelines.corpus.mix.curve import factors_of
from refinery.pipelines.recipe.params import parse
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml, override
from refinery.transforms.core.params import Params, Positive

Times = Annotated[float, Field(ge=0, le=MOST_TURNS)]
MOST_BINS = 200


class BinParams(Params):
    """Documents of one range of a column, from the bin before on."""

    below: float | None = None
    """end of the range, exclusive; null for the last bin"""
    times: Times
    """how often such a document is delivered; 0: never, 2.5: half of them twice, half three times"""


class UpsampleParams(Params):
    """How often documents are delivered, by the value of a column such as quality or copies."""

    LATER: ClassVar[tuple[str, ...]] = ("quantiles", "by", "curve")

    column: str
    """a column of numbers of the provenance"""
    bins: tuple[BinParams, ...] = ()
    """ranges in ascending order; or `quantiles` and `curve`"""
    quantiles: Annotated[int, Field(ge=2, le=MOST_BINS)] | None = None
    """number of bins of equal weight, over the documents that `where` and `per_host` select"""
    by: Literal["tokens", "documents"] = "tokens"
    """unit of the weight of such a bin"""
    curve: str = ""
    """a formula of the quantile q, from 0 to 1: how often documents of such a bin are delivered"""
    missing: Times = 1.0
    """how often a document without a value is delivered"""

    @model_validator(mode="after")
    def _check(self) -> "UpsampleParams":
        if (self.quantiles is None) == (not self.bins):
            raise ValueError("bins: give either bins, or quantiles and a curve")
        if self.quantiles is None:
            if self.curve:
                raise ValueError("curve: one given with bins, it needs quantiles")
            self._check_ends()
            return self
        try:
            self.factors()
        except ValueError as error:
            raise ValueError(f"curve: {error}") from None
        return self

    def factors(self) -> list[float]:
        """How often documents of each bin are delivered, the last: those without a value."""
        if self.quantiles is None:
            return [*(each.times for each in self.bins), self.missing]
        return [*factors_of(self.curve, self.quantiles, MOST_TURNS), self.missing]

    def _check_ends(self) -> None:
        ends = [each.below for each in self.bins]
        if not 1 <= len(ends) <= MOST_BINS or ends[-1] is not None or None in ends[:-1]:
            raise ValueError(f"bins: 1 to {MOST_BINS} bins are allowed, the last without `below`, the others with it")
        known = [end for end in ends if end is not None]
        if known != sorted(set(known)):
            raise ValueError(f"bins: ends {known} given, ascending ones are allowed")


class CapParams(Params):
    """The most of one host. Which documents stay is decided by a hash of the id."""

    documents: Positive | None = None
    """maximum documents of a host"""
    tokens: Positive | None = None
    """maximum tokens of a host"""

    @model_validator(mode="after")
    def _check(self) -> "CapParams":
        if (self.documents is None) == (self.tokens is None):
            raise ValueError("documents: give either documents or tokens")
        return self


class MixDomainParams(Params):
    """A domain of the view."""

    name: str
    """of the domain in batches, weights and counts"""
    parts: tuple[str, ...]
    """where its documents are from: CORPUS/DOMAIN, or CORPUS for all of its domains"""
    where: str = ""
    """a rule over columns of the provenance that documents must meet (docs/labels.md); empty: all documents"""
    per_host: CapParams | None = None
    """maximum per host, of the documents that meet the rule"""
    times: Times = 1.0
    """how often a document is delivered"""
    upsample: UpsampleParams | None = None
    """factors of `times` by the value of a column"""
    tokens: Positive | None = None
    """tokens of an epoch; documents are left out or repeated to reach it, in the proportions of `times` and
    `upsample`"""
    most_times: Annotated[float, Field(gt=0, le=MOST_TURNS)] = 4.0
    """with `tokens`: maximum times that a document is delivered"""

    @model_validator(mode="after")
    def _check(self) -> "MixDomainParams":
        try:
            check_domain(self.name)
        except ValueError as error:
            raise ValueError(f"name: {error}") from None
        if not self.parts:
            raise ValueError("parts: none given, CORPUS or CORPUS/DOMAIN is allowed")
        return self


class StageParams(Params):
    """Weights of domains for some time."""

    weights: Mapping[str, float]
    """by domain, in any scale"""
    tokens: Positive | None = None
    """duration; null: the rest"""


class MixingParams(Params):
    """How the loader mixes the domains: the keys are those of MixParams (docs/loader.md)."""

    weights: Mapping[str, float] | None = None
    """weights by domain, in any scale; instead of `stages`"""
    stages: tuple[StageParams, ...] = ()
    """weights that change with time"""
    repeats: Positive | None = None
    """maximum epochs of a domain"""
    on_limit: Literal["stop", "error", "renormalise", "repeat"] = "stop"
    """what happens at that limit"""
    block: Positive = 1024
    """positions in a mix block: the resolution of weights"""
    count: Literal["samples", "tokens"] = "samples"
    """what weights are shares of"""
    even: bool = False
    """domains alternate evenly instead of at random"""

    @model_validator(mode="after")
    def _check(self) -> "MixingParams":
        if (self.weights is None) == (not self.stages):
            raise ValueError("weights: give either weights or stages")
        self.checked()
        return self

    def checked(self) -> MixParams:
        """As the loader takes it. Raises ValueError."""
        return MixParams(
            [MixStage(stage.weights, stage.tokens) for stage in self.all_stages],
            repeats=self.repeats, on_limit=self.on_limit, block=self.block, count=self.count, even=self.even,
        )  # fmt: skip

    @property
    def all_stages(self) -> tuple[StageParams, ...]:
        return self.stages or (StageParams(weights=self.weights or {}),)

    def published(self) -> dict[str, Any]:
        """As in a view's manifest."""
        stages = [{"weights": dict(stage.weights), "tokens": stage.tokens} for stage in self.all_stages]
        rest = {key: getattr(self, key) for key in ("repeats", "on_limit", "block", "count", "even")}
        return {"stages": stages, **rest}


class MixRecipe(Params):
    """A view's recipe."""

    name: str
    """of the view"""
    seed: int = 1
    """seed of the hashes that decide which documents are kept"""
    corpora: Mapping[str, str]
    """locations of the corpora, by the names that `parts` use"""
    domains: tuple[MixDomainParams, ...]
    """the view's domains"""
    mixing: MixingParams | None = None
    """weights for the loader; null: an epoch delivers every domain as often as planned"""

    @model_validator(mode="after")
    def _check(self) -> "MixRecipe":
        if not 1 <= len(self.corpora) <= MOST_CORPORA:
            raise ValueError(f"corpora: {len(self.corpora)} given, 1 to {MOST_CORPORA} are allowed")
        for name in self.corpora:
            if not name or "/" in name:
                raise ValueError(f"corpora: the name {name!r:.80} given, one without / is allowed")
        names = [domain.name for domain in self.domains]
        if not names or len(set(names)) < len(names):
            raise ValueError("domains: one or more with unique names are allowed")
        if self.mixing is not None:
            known = {name for stage in self.mixing.all_stages for name in stage.weights}
            if unknown := sorted(known - set(names)):
                raise ValueError(f"mixing: the domain {unknown[0]!r:.80} given, {', '.join(names):.200} are allowed")
        return self


def recipe_of_view(view: View, corpora: Mapping[str, str]) -> MixRecipe:
    """The recipe that a view was made of, over other versions of its corpora. corpora: name -> where, of each."""
    return parse(MixRecipe, {**view.recipe, "corpora": dict(corpora)}, "recipe")


def load_mix(path: str, settings: tuple[str, ...] | list[str] = ()) -> MixRecipe:
    """A view's recipe from a YAML file, with `--set` settings. Raises RecipeError, one line a problem."""
    file = Path(path)
    if not file.is_file():
        raise RecipeError(f"{path}: no such recipe file; docs/mixing.md has an example")
    data: Any = load_yaml(file.read_bytes(), path)
    if isinstance(data, dict) and "sources" in data and "domains" not in data:
        raise RecipeError(f"{path} is the recipe of a corpus, not of a view: `refinery refine {path} --output PREFIX`")
    for setting in settings:
        data = override(data, setting)
    return parse(MixRecipe, data)
