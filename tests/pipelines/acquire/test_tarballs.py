"""Tarballs of strangers, beside Python's tarfile for the honest ones."""

import bz2
import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.acquire import tarballs
from refinery.pipelines.acquire.tar_headers import TarReader
from refinery.pipelines.acquire.tree_files import RepositoryError
from tests.pipelines.acquire.repositories import (
    MIT,
    acquire,
    everything,
    git,
    needs_git,
    records,
    report,
    repository_of,
    texts,
)

COMMIT = "c" * 40


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, link
    return info, data


def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as made:
        for info, data in members:
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def files_of(data: bytes) -> list[tuple[bytes, str, bytes]]:
    reader = TarReader(io.BytesIO(data), len(data))
    return [(m.path, m.kind, data[m.offset : m.offset + m.size] if not m.kind else b"") for m in reader]


NAMES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1, max_size=300)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
MEMBERS = st.lists(st.tuples(NAMES, KINDS, st.binary(max_size=1500)), max_size=6)
FORMS = st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])


@given(MEMBERS, FORMS)
def test_the_same_members_as_tarfile(drawn: list[tuple[str, bytes, bytes]], form: int) -> None:
    data = tar_of(*(member(n, d if k == b"0" else b"", k, "t" * (k in b"12")) for n, k, d in drawn), form=form)
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as expected:
        theirs = [
            (m.name.rstrip("/"), m.isdir(), m.isreg(), m.isreg() and expected.extractfile(m).read())  # type: ignore[union-attr]
            for m in expected
        ]
    ours = files_of(data)
    assert [(p.decode().rstrip("/"), k == "folder", k == "", k == "" and d) for p, k, d in ours] == theirs


@given(st.binary(max_size=3000), st.integers(0, 10_000), MEMBERS)
def test_damage_is_an_error_and_nothing_worse(noise: bytes, at: int, drawn: list[tuple[str, bytes, bytes]]) -> None:
    data = bytearray(tar_of(*(member(n, d) for n, _, d in drawn)))
    data[at % len(data) : at % len(data) + len(noise)] = noise
    try:
        found = files_of(bytes(data))
    except RepositoryError:
        return
    assert all(len(path) <= 4097 for path, _, _ in found)


def long_header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


BROKEN = {
    "nothing": (b"", "ends at byte 0, before its end mark"),
    "no tar": (b"x" * 1024, "not a header of a tar file at byte 0"),
    "cut in a file": (tar_of(member("a", b"x" * 2000))[:1500], "in the middle of a file"),
    "cut at a border": (tar_of(member("a", b"x" * 512))[:1024], "before its end mark"),
    "a name of gigabytes": (long_header(b"L", 5 << 30) + bytes(1024), "extension header of 5,368,709,120 bytes"),
    "a pax header without end": (long_header(b"x", 20) + b"99 path=x\n".ljust(512, b"\0") + bytes(1024), "damaged pax"),
    "a pax header of nothing": (long_header(b"x", 20) + b"0 path=x\n".ljust(512, b"\0") + bytes(1024), "damaged pax"),
    "a negative size": (long_header(b"0", 0)[:124] + b"\xff" * 12 + long_header(b"0", 0)[136:], "not a header"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_tarballs_are_errors(broken: str) -> None:
    data, message = BROKEN[broken]
    with pytest.raises(RepositoryError, match=message):
        files_of(data)


def save(path: Path, data: bytes) -> dict[str, str]:
    path.write_bytes(data)
    return {"tarball": str(path), "commit": COMMIT, "name": "a"}


COMPRESSIONS = {
    "a.tar": bytes,
    "a.tar.gz": lambda data: gzip.compress(data, mtime=0),
    "a.tgz": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
    "a.tar.zst": lambda data: zstandard.ZstdCompressor().compress(data),
    "a.tar.xz": lambda data: lzma.compress(data[:700]) + lzma.compress(data[700:]),
    "a.tar.bz2": bz2.compress,
}


def test_compressions_make_the_same_bytes_and_the_top_folder_is_left_out(tmp_path: Path) -> None:
    data = tar_of(member("a-1.0/LICENSE", MIT), member("a-1.0/src", kind=b"5"), member("a-1.0/src/x.c", b"x\n"))
    outputs = []
    for name, compress in COMPRESSIONS.items():
        acquire(tmp_path / f"out-{name}", save(tmp_path / name, compress(data)))  # type: ignore[operator]
        outputs.append(next((tmp_path / f"out-{name}" / "files").iterdir()).read_bytes())
    assert len(set(outputs)) == 1
    found = {record["path"]: record["repo_license"] for record in records(tmp_path / "out-a.tar")}
    assert found == {"LICENSE": "MIT", "src/x.c": "MIT"}
    acquire(tmp_path / "whole", save(tmp_path / "a.tar", data) | {"strip": False})  # type: ignore[dict-item]
    assert sorted(texts(tmp_path / "whole")) == ["a-1.0/LICENSE", "a-1.0/src/x.c"]


def test_every_member_of_a_hostile_tarball_is_taken_or_counted(tmp_path: Path) -> None:
    sparse = member("holes", kind=b"S")
    data = tar_of(
        member("./good", b"good\n"),
        member("/etc/passwd", b"x\n"),
        member("a/../../x", b"x\n"),
        member(".git/hooks/post-checkout", b"x\n"),
        member("dev", kind=tarfile.CHRTYPE),
        member("disk", kind=tarfile.BLKTYPE),
        member("pipe", kind=tarfile.FIFOTYPE),
        member("what", kind=b"Z"),
        member("hard", kind=tarfile.LNKTYPE, link="/etc/shadow"),
        member("soft", kind=tarfile.SYMTYPE, link="../../x"),
        member("good", b"again\n"),
        member("n" * 5000, b"x\n"),
        member("a\nb", b"x\n"),
        sparse,
        member("folder", kind=tarfile.DIRTYPE),
    )
    acquire(tmp_path / "out", save(tmp_path / "a.tar", data))
    assert texts(tmp_path / "out") == {"good": "good\n"}
    assert report(tmp_path / "out")["skipped"] == {
        "hard-link": 1,
        "path-control": 1,
        "path-repeated": 1,
        "path-too-long": 1,
        "path-unsafe": 3,
        "sparse-file": 1,
        "special-file": 4,
        "symlink": 1,
    }


def test_bombs_damage_and_other_tarballs_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tar_of(member("x", b"x\n"))

    def fails(message: str, packed: bytes, **more: str) -> None:
        with pytest.raises(RepositoryError, match=message):
            acquire(tmp_path / "out", save(tmp_path / "a", packed) | more)

    fails("it is damaged", gzip.compress(data)[:-9])
    fails("it is damaged", lzma.compress(data)[:-9])
    fails("it is damaged", lzma.compress(data) + b"junk")
    fails("its sha256 is [0-9a-f]{64}, 0000", data, sha256="0" * 64)
    fails("there is no such file", data, tarball=str(tmp_path))
    monkeypatch.setattr(tarballs, "XZ_MEMORY", 1 << 20)
    fails("it is damaged.*[Mm]emory", lzma.compress(data))
    monkeypatch.setattr(tarballs.unpacked, "__defaults__", (1 << 20,))
    for compress in (gzip.compress, zstandard.ZstdCompressor().compress, bz2.compress):
        fails("it inflates to more than 1 MiB", compress(bytes(3 << 20)))
    assert not (tmp_path / "out").exists()


@needs_git
def test_a_tarball_that_git_made_is_its_commit(tmp_path: Path) -> None:
    """The same records as of the clone; and a commit that it was not made from is refused."""
    made = repository_of(tmp_path / "a", {"LICENSE": MIT, "src/x.c": b"x\n"})
    tarball = tmp_path / "a.tar"
    git(tmp_path / "a", "archive", "--prefix=a-1/", f"--output={tarball}", made)
    acquire(tmp_path / "tar", {"tarball": str(tarball), "commit": made, "name": "a"})
    acquire(tmp_path / "git", {"clone": str(tmp_path / "a"), "commit": made, "name": "a"})
    assert records(tmp_path / "tar") == records(tmp_path / "git")
    assert sorted(everything(tmp_path / "tar").keys()) != sorted(everything(tmp_path / "git").keys())
    with pytest.raises(RepositoryError, match=f"made from commit '{made}', not {COMMIT}"):
        acquire(tmp_path / "other", {"tarball": str(tarball), "commit": COMMIT})
