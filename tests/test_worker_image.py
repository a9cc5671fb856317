"""The images for workers and launcher, as far as files can tell without a Docker engine."""

import fnmatch
import importlib.util
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """(word, rest) of each instruction, lines joined, comments left out."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "ARG":
            continue
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def copied() -> list[str]:
    """What is copied from the project."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY" and not rest.startswith("--from=")]
    return [source for words in copies for source in words[:-1]]


def test_every_instruction_is_known() -> None:
    known = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT"}  # no ADD, which fetches addresses
    assert {word for word, _ in instructions()} == known


def test_versions_are_those_of_the_project() -> None:
    setup = (ROOT / "setup.py").read_text()
    (beam,) = re.findall(r"apache-beam\[gcp\]==([0-9.]+)", setup)
    assert [rest for word, rest in instructions() if word == "ARG"] == [
        f"BEAM=apache/beam_python3.11_sdk:{beam}",
        "PYTHON_BUILD=python:3.11-bookworm",
        "PYTHON=python:3.11-slim-bookworm",
    ]
    bases = [stage[0][1] for stage in stages()]
    assert bases == ["${BEAM} AS beam", "${PYTHON_BUILD} AS build", "${PYTHON} AS launcher", "${PYTHON} AS worker"]


def test_the_launcher_is_the_command_and_its_recipes_and_no_root() -> None:
    launcher = stages()[2]
    assert ("USER", "refinery") in launcher and launcher[-1] == ("ENTRYPOINT", '["refinery"]')
    assert ("COPY", "recipes /home/refinery/recipes") in launcher
    # Both images hold the wheels of the one lock, so a job's workers have the libraries of its launcher.
    assert all(("COPY", "--from=build /build/wheels /tmp/wheels") in stage for stage in stages()[2:])


def test_no_compiler_and_no_download_reach_the_last_stages() -> None:
    *_, launcher, last = stages()
    runs = " ".join(rest for word, rest in launcher + last if word == "RUN")
    assert not re.search(r"apt|gcc|build-essential|curl|wget|git\b|https?:", runs)
    assert [rest.split()[0] for word, rest in last if word == "COPY"] == ["--from=beam", "--from=build", "--from=build"]
    assert last[-1] == ("ENTRYPOINT", '["/opt/apache/beam/boot"]')


def test_pip_takes_nothing_that_is_not_pinned_by_hash() -> None:
    runs = [rest for word, rest in instructions() if word == "RUN"]
    commands = [command for run in runs for command in run.split("&&") if re.search(r"\bpip (install|wheel)", command)]
    assert len(commands) == 8
    for command in commands:
        assert "--no-index" in command or "--require-hashes" in command, command


def test_what_is_copied_is_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    assert set(copied()) == allowed
    for name in copied():
        assert list(ROOT.glob(name)), name
        assert not [rule for rule in rules[1:] if not rule.startswith("!") and fnmatch.fnmatch(name, rule)], name
    assert {"**/*.so", "**/__pycache__"} <= set(rules)  # nothing compiled on another machine


def pins(name: str) -> dict[str, str]:
    """Name -> version of what a requirements file asks for on the image's Python, without hashes."""
    lines = [line.split(" --hash")[0] for line in (ROOT / name).read_text().splitlines() if line[:1] not in ("", "#")]
    found = [Requirement(line) for line in lines]
    here = {"python_version": "3.11"}
    return {
        need.name.lower().replace("_", "-"): str(need.specifier)
        for need in found
        if need.marker is None or need.marker.evaluate(here)
    }


def hashes(name: str) -> list[str]:
    """The SHA-256 of each line; AssertionError for a line without one."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    matches = [re.fullmatch(r"[\w.-]+==\S+ --hash=sha256:([0-9a-f]{64})", line) for line in lines]
    assert all(matches), lines
    return [match[1] for match in matches if match]


@pytest.mark.parametrize(
    ("locked", "plain"),
    [("requirements-worker.txt", "requirements.txt"), ("docker/requirements-build.txt", "requirements-dev.txt")],
)
def test_hashes_stand_for_the_pinned_versions(locked: str, plain: str) -> None:
    found, wanted = pins(locked), pins(plain)
    assert found.items() <= wanted.items()
    digests = hashes(locked)
    assert len(set(digests)) == len(digests) == len(found)
    assert all(len(set(digest)) > 4 for digest in digests)
    if locked == "requirements-worker.txt":
        assert set(found) == set(wanted)
        assert not re.search("torch|://|index", (ROOT / locked).read_text())


def test_the_lock_is_written_from_pips_report() -> None:
    spec = importlib.util.spec_from_file_location("lock", ROOT / "docker" / "lock.py")
    assert spec and spec.loader
    lock = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lock)
    entries = [
        {"metadata": {"name": n, "version": v}, "download_info": {"archive_info": {"hashes": {"sha256": h * 64}}}}
        for n, v, h in (("b", "2", "0"), ("A", "1", "f"))
    ]
    assert lock.locked(entries) == f"A==1 --hash=sha256:{'f' * 64}\nb==2 --hash=sha256:{'0' * 64}\n"
    assert (ROOT / "requirements-worker.txt").read_text().startswith(lock.HEADER)
