"""docker/build.sh with stand-ins for docker and gcloud, which write down how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REGISTRY = "europe-west4-docker.pkg.dev/example/refinery"
DOCKER = """#!/bin/sh
echo docker "$@" >> "$CALLS"
case "$*" in *imagetools*) echo "$DIGEST" ;; esac
"""
GCLOUD = """#!/bin/sh
echo gcloud "$@" >> "$CALLS"
case "$*" in *" scan "*) echo scans/1 ;; *list-vulnerabilities*) printf "$FOUND" ;; esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The script, the Dockerfile, and the stand-ins in bin/."""
    (tmp_path / "docker").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "docker" / "build.sh", tmp_path / "docker")
    shutil.copy(ROOT / "Dockerfile", tmp_path)
    for name, text in (("docker", DOCKER), ("gcloud", GCLOUD)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def build(
    folder: Path, *arguments: str, digest: str = "sha256:" + "a1" * 32, found: str = ""
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "CALLS": str(calls), "DIGEST": digest, "FOUND": found}
    command = [str(folder / "docker" / "build.sh"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done, calls.read_text().splitlines() if calls.exists() else []


def test_bases_are_pinned_once_and_both_images_are_scanned_and_pushed(folder: Path) -> None:
    done, calls = build(folder, REGISTRY, "1.2", found="HIGH,True,CVE-1\\nCRITICAL,False,CVE-2\\n")
    assert done.returncode == 0, done.stderr
    pinned = (folder / "docker" / "bases.txt").read_text().splitlines()
    names = [line.split("=", 1)[1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:4] == "ARG "]
    assert pinned == [f"{name}@sha256:{'a1' * 32}" for name in names] and len(names) == 3
    built = [call for call in calls if " build " in call]
    assert [call.split("--target ")[1].split()[0] for call in built] == ["worker", "launcher"]
    for kind, call in zip(("worker", "launcher"), built, strict=True):
        assert f"--load --tag {REGISTRY}/{kind}:1.2 ." in call
        assert all(f"={base}" in call for base in pinned)
        assert f"gcloud artifacts sbom export --uri={REGISTRY}/{kind}:1.2" in calls
        assert f"{REGISTRY}/{kind}:1.2: 2 known vulnerabilities" in done.stdout
    # Both are scanned before one is pushed.
    order = [word for call in calls for word in ("scan", "push", "sbom") if f" {word} " in call]
    assert order == ["scan", "scan", "push", "sbom", "push", "sbom"]
    assert [call for call in calls if " push " in call] == [
        f"docker push {REGISTRY}/{kind}:1.2" for kind in ("worker", "launcher")
    ]
    # The second build asks no registry for digests.
    done, calls = build(folder, REGISTRY, "1.3", digest="sha256:" + "b2" * 32)
    assert done.returncode == 0 and not [call for call in calls if "imagetools" in call]
    assert (folder / "docker" / "bases.txt").read_text().splitlines() == pinned
    assert all("b2b2" not in call for call in calls)


def test_a_critical_vulnerability_with_a_fix_is_an_error(folder: Path) -> None:
    done, calls = build(folder, REGISTRY, "1", found="CRITICAL,True,CVE-2026-1\\n")
    assert done.returncode == 1
    assert "CVE-2026-1" in done.stderr and "nothing was pushed" in done.stderr
    assert not [call for call in calls if " push " in call or "--push" in call or " sbom " in call]


@pytest.mark.parametrize("digest", ["", "sha256:short", "error: no such host"])
def test_what_is_no_digest_is_not_built_on(folder: Path, digest: str) -> None:
    done, calls = build(folder, REGISTRY, "1", digest=digest)
    assert done.returncode == 1 and "no digest of" in done.stderr
    assert not [call for call in calls if " build " in call]
    assert (folder / "docker" / "bases.txt").read_text() == ""


def test_usage(folder: Path) -> None:
    done, calls = build(folder, REGISTRY)
    assert (done.returncode, calls) == (2, []) and "usage" in done.stderr
