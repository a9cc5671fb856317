"""Bins of equal weight and curves of upsampling: against fractions in plain Python, and formulas that cannot be."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.mix.candidates import CANDIDATE, Table
from refinery.pipelines.corpus.mix.curve import PARTS, factors_of
from refinery.pipelines.corpus.mix.quantiles import bins_by, cuts_of
from refinery.pipelines.corpus.mix.recipe import UpsampleParams
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.params import ParamsError
from tests.mix_factory import mix_corpus, write_recipe

VALUES = (-math.inf, -1e300, -2.5, -0.0, 0.0, 5e-324, 1e-9, 0.1, 0.5, math.nextafter(0.5, 1), 1.0, 2.0**60, math.inf)


def table_of(rows: list[tuple[float, int]]) -> Table:
    found = np.zeros(len(rows), CANDIDATE)
    found["value"], found["tokens"] = [value for value, _ in rows], [tokens for _, tokens in rows]
    return found


@given(st.integers(0, 2**32), st.integers(2, 200), st.sampled_from(["tokens", "documents"]))
def test_bins_are_where_the_middle_of_a_value_is(seed: int, quantiles: int, by: str) -> None:
    """Whatever the order, the tables, ties, values that are neighbours, missing or infinite; weights up to 2^50."""
    chance = random.Random(seed)
    some = [*VALUES, math.nan, *(chance.random() for _ in range(chance.choice((0, 30))))]
    most = chance.choice((1, 1000, 2**50))
    rows = [(chance.choice(some), chance.randint(1, most)) for _ in range(chance.choice((0, 1, 2, 50, 300)))]
    at = chance.randint(0, len(rows))
    cuts = cuts_of(lambda: iter([table_of(rows[at:]), table_of(rows[:at])]), quantiles, by)
    found = bins_by(cuts, table_of(rows)["value"].astype(np.float64)).tolist()
    weighed = [(value, tokens if by == "tokens" else 1) for value, tokens in rows if value == value]
    total = sum(weight for _, weight in weighed)
    for (value, _), its in zip(rows, found, strict=True):
        if value != value:
            assert its == quantiles
            continue
        below = sum(weight for other, weight in weighed if other < value)
        equal = sum(weight for other, weight in weighed if other == value)
        assert its == math.floor(quantiles * Fraction(2 * below + equal, 2 * total))


def test_bins_of_values_that_differ_have_equal_weight() -> None:
    rows = [(i / 1000, 7) for i in range(1000)]
    random.Random(1).shuffle(rows)
    cuts = cuts_of(lambda: iter([table_of(rows)]), 20, "documents")
    bins = bins_by(cuts, table_of(rows)["value"].astype(np.float64))
    assert np.bincount(bins).tolist() == [50] * 20


@pytest.mark.parametrize(
    ("curve", "value"),
    [
        ("1", lambda q: 1.0),
        ("2 * q", lambda q: 2 * q),
        ("power(max(q - 0.4, 0), 2.5) * exp(1.5 * q)", lambda q: max(q - 0.4, 0) ** 2.5 * math.exp(1.5 * q)),
        ("min(7, 1 / q)", lambda q: min(7, 1 / q)),
        ("power(q - q, 0) + power(0, 2)", lambda q: 1.0),
    ],
)
@pytest.mark.parametrize("quantiles", [2, 20])
def test_a_bin_has_the_mean_of_the_curve(curve: str, value: Any, quantiles: int) -> None:
    found = factors_of(curve, quantiles, 1000)
    for number, factor in enumerate(found):
        middles = [(number + (i + 0.5) / PARTS) / quantiles for i in range(PARTS)]
        assert factor == pytest.approx(sum(map(value, middles)) / PARTS, rel=1e-12)


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        ("", "a number is needed"),
        ("q >", "something is missing"),
        ("q > 0.5", "a condition given, a number is needed"),
        ("x", "x is not a column"),
        ("__import__('os')", "is not a function"),
        ("q ** 2", "not understood"),
        ("q.real", "not understood"),
        ("power(q)", "power of 1 given, it takes 2"),
        ("power(q, q > 1)", "a condition given"),
        ("sqrt(q)", "sqrt is not a function"),
        ("1 - 2 * q", "is -0.0"),
        ("2000 * q", "numbers from 0 to 1000 are allowed"),
        ("1 / (q - q)", "is not a number at q"),
        ("power(q - 1, 0.5)", "is not a number at q"),
        ("power(0, 0 - 1)", "is not a number"),
        ("exp(1e308)", "is not a number"),
        ("power(1e308, 1e308)", "is not a number"),
        ("exp(exp(exp(exp(exp(10)))))", "is not a number"),
        ("(" * 60 + "q" + ")" * 60 + "+ -" * 60 + "q", "nested deeper"),
        ("q" * 10_001, "10,001 characters"),
        (" + ".join(["exp(q)"] * 9), "has 9 calls of power and exp, at most 8"),
    ],
)
def test_curves_that_cannot_be(curve: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){said}"):
        factors_of(curve, 20, 1000)
    with pytest.raises(ParamsError, match=r"^curve: "):
        UpsampleParams(column="quality", quantiles=20, curve=curve)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "bins: give either bins, or quantiles and a curve"),
        ({"quantiles": 4, "bins": ({"times": 1},), "curve": "q"}, "bins: give either"),
        ({"bins": ({"times": 1},), "curve": "q"}, "curve: one given with bins"),
        ({"quantiles": 1, "curve": "q"}, "quantiles: 1 given"),
        ({"quantiles": 201, "curve": "q"}, "quantiles: 201 given"),
        ({"quantiles": 4, "curve": "q", "by": "bytes"}, "by: 'bytes' .* is allowed"),
    ],
)
def test_parameters_that_cannot_be(given_: dict[str, Any], said: str) -> None:
    with pytest.raises(ParamsError, match=said):
        UpsampleParams(column="quality", **given_)


def test_the_plan_is_told(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    a = mix_corpus(tmp_path / "a", 9, {("train", "web"): [60]})
    upsample = {"column": "quality", "quantiles": 4, "curve": "4 * q", "missing": 0}
    recipe = write_recipe(tmp_path / "r.yaml", {"a": a}, [{"name": "d", "parts": ["a"], "upsample": upsample}])
    assert execute(["mix", str(recipe), "--dry-run"]) is ExitCode.DONE
    told = capsys.readouterr().out
    assert execute(["mix", str(recipe), "--output", str(tmp_path / "v")]) is ExitCode.DONE
    assert told.splitlines() == capsys.readouterr().out.splitlines()[: len(told.splitlines())]
    assert execute(["inspect", str(tmp_path / "v")]) is ExitCode.DONE
    assert told in capsys.readouterr().out
    lines = told.splitlines()
    assert lines[0] == "bins of d:" and lines[1].split() == [
        "bin",
        "from",
        "to",
        "documents",
        "tokens",
        "each",
        "delivered",
    ]
    assert [line.split()[-2] for line in lines[2:7]] == ["0.5", "1.5", "2.5", "3.5", "0"]
    assert lines[6].split()[0] == "missing"
