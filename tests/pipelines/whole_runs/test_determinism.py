"""The same bytes, whatever the number of workers, the hash seed, the runner, the cutting of the work, or retries."""

from pathlib import Path

import pytest

from tests.pipelines.inputs import corpus_bytes, refine
from tests.sampling import one_commit_in_four, sampled

VARIANTS = {
    "two workers, other hash seed": (["--workers", 2], 1),
    "in this process": (["--workers", 0], 1),
    "every bundle replayed": (["--workers", 1, "--direct_runner_bundle_repeat=2"], 0),
    "DirectRunner": (["--runner", "DirectRunner"], 0),
    "one wave, small parts": (["--workers", 1, "--set", "run.wave_files=100", "--set", "run.part_bytes=1000"], 0),
}


DIRECT = "DirectRunner"  # the one engine of Beam's own that is always at hand: every commit is tried on it


@pytest.mark.parametrize("variant", [DIRECT, *sampled("ways to run", sorted(VARIANTS.keys() - {DIRECT}), 1)])
def test_same_bytes(corpus: Path, inputs: Path, tmp_path: Path, variant: str) -> None:
    arguments, hash_seed = VARIANTS[variant]
    refine(inputs, tmp_path / "out", *arguments, hash_seed=hash_seed)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


@one_commit_in_four
def test_direct_runner_has_nothing_to_compare(small: Path, tmp_path: Path) -> None:
    """Where no two documents share a band, groups stay empty; what follows them has bundles all the same."""
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "nothing like number {n * n}"}}\n' for n in range(3)))
    found = []
    for name, flags in {"here": ["--workers", 0], "direct": ["--runner", "DirectRunner"]}.items():
        on = ["--set", "near_dup.threshold=0.8", "--input", tmp_path / "in.jsonl"]
        refine(small, tmp_path / name, *flags, *on)
        found.append(corpus_bytes(tmp_path / name))
    assert found[0] == found[1]
