"""The same bytes, whatever the number of workers, the hash seed, the runner, the cutting of the work, or retries."""

from pathlib import Path

import pytest

from tests.pipelines.inputs import corpus_bytes, refine

VARIANTS = {
    "two workers, other hash seed": (["--workers", 2], 1),
    "in this process": (["--workers", 0], 1),
    "every bundle replayed": (["--workers", 1, "--direct_runner_bundle_repeat=2"], 0),
    "DirectRunner": (["--runner", "DirectRunner"], 0),
    "one wave, small parts": (["--workers", 2, "--set", "run.wave_files=100", "--set", "run.part_bytes=1000"], 0),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_bytes(corpus: Path, inputs: Path, tmp_path: Path, variant: str) -> None:
    arguments, hash_seed = VARIANTS[variant]
    refine(inputs, tmp_path / "out", *arguments, hash_seed=hash_seed)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)
