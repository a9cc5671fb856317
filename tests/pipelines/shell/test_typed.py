"""Arguments written again: what a command's parser makes of them is what it made of the first ones."""

from argparse import ArgumentParser

import pytest

from refinery.pipelines.cli import refine
from refinery.pipelines.shell.typed import typed


def parsed(words: list[str]) -> dict[str, object]:
    parser = ArgumentParser()
    refine.arguments(parser)
    return vars(parser.parse_args(words))


@pytest.mark.parametrize(
    "words",
    [
        ["r.yaml", "--output", "out"],
        ["r.yaml", "--output", "out", "--input", "a b/*.gz", "--input", "$(touch x)", "--set", "a.b=c d"],
        ["r.yaml", "--output", "out", "--quiet", "--discard-work", "--workers", "3", "--track", "mlflow"],
        ["--output=-x", "--set=--a=1", "r.yaml", "--work", "s3://bucket/w"],
    ],
)
def test_words_mean_the_same_again(words: list[str]) -> None:
    parser = ArgumentParser()
    refine.arguments(parser)
    again = typed(parser.parse_args(words), refine.arguments)
    assert parsed(again) == parsed(words)
    assert again[0] == "r.yaml"


def test_defaults_and_what_is_left_out_are_not_written() -> None:
    parser = ArgumentParser()
    refine.arguments(parser)
    args = parser.parse_args(["r.yaml", "--output", "out", "--scratch", "/local", "--dry-run"])
    assert typed(args, refine.arguments, ("scratch", "dry_run")) == ["r.yaml", "--output", "out"]
