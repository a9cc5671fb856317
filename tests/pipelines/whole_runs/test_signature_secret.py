"""A run with a secret for its signatures: the same bytes wherever the secret is, and the secret in none of them."""

from pathlib import Path

from refinery.transforms.core.resources import key_id
from tests.pipelines.inputs import corpus_bytes, refine
from tests.sampling import one_commit_in_four

PHRASE = "correct horse battery staple"
ID = key_id(PHRASE.encode(), "signature")


@one_commit_in_four
def test_the_secret_decides_and_is_published_nowhere(small: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(PHRASE)
    chosen = ["--set", f"signature.key_id={ID}", "--workers", "0"]
    said = refine(small, tmp_path / "a", *chosen, "--set", "signature.key=env:KEY", environment={"KEY": PHRASE})
    other = [*chosen[2:], "--set", f"signature.key={tmp_path}/key"]
    refused = refine(small, tmp_path / "b", *other, "--dry-run", check=False)
    assert refused.returncode and f"signature.key_id: none given, the secret's is '{ID}'" in refused.stderr
    again = refine(small, tmp_path / "b", *other, *chosen[:2])

    other_recipe = ("work", "_run.json", "manifest.json", "manifests")
    first, second = (corpus_bytes(tmp_path / name, other_recipe) for name in ("a", "b"))
    assert first == second and len(first) > 5
    for place in (tmp_path / "a", tmp_path / "b"):
        assert not [path for path in place.rglob("*") if path.is_file() and PHRASE.encode() in path.read_bytes()]
    assert PHRASE not in said.stdout + said.stderr + again.stdout + again.stderr
    taken = refine(small, tmp_path / "c", *chosen, *other[2:], "--reuse", tmp_path / "a", "--dry-run")
    assert "reused" in taken.stdout + taken.stderr  # where the secret is decides nothing
