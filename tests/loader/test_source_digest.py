"""The digest of the loader's sources: one for the same code wherever it is, another one for any change."""

import shutil
from pathlib import Path

import pytest

from refinery.loader import source_digest
from refinery.loader.source_digest import SOURCES, digest_of, loader_build

ROOT = Path(source_digest.__file__).parent


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The loader's sources elsewhere, without what compilers and interpreters put beside them."""

    def others(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if not (Path(folder, name).is_dir() or name.endswith(SOURCES))]

    return Path(shutil.copytree(ROOT, tmp_path / "elsewhere", ignore=others))


def test_it_is_that_of_the_sources_alone(copied: Path) -> None:
    assert digest_of(copied) == digest_of(ROOT) == loader_build() and len(loader_build()) == 16
    (copied / "native" / "rows.so").write_bytes(b"compiled")
    (copied / "notes.txt").write_text("a note")
    assert digest_of(copied) == loader_build()


@pytest.mark.parametrize("name", ["stream/stream.py", "native/rows.c", "native/rows.pyi"])
def test_any_change_is_another_build(copied: Path, name: str) -> None:
    path = copied / name
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    assert digest_of(copied) != loader_build()
    path.write_bytes(before)
    assert digest_of(copied) == loader_build()
    path.rename(path.with_name(f"other{path.suffix}"))
    assert digest_of(copied) != loader_build()
    path.with_name(f"other{path.suffix}").unlink()
    assert digest_of(copied) != loader_build()


def test_a_byte_that_moves_to_the_next_file(tmp_path: Path) -> None:
    for folder, one, other in (("a", "xy", "z"), ("b", "x", "yz")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(one)
        (tmp_path / folder / "b.py").write_text(other)
    assert digest_of(tmp_path / "a") != digest_of(tmp_path / "b")


def test_sources_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = loader_build()
    monkeypatch.setattr(source_digest, "digest_of", lambda folder: pytest.fail("read again"))
    assert loader_build() == found
