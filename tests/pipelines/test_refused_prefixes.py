"""A damaged, unfinished, foreign or forged prefix is refused by every command that reads a finished corpus: in one
line, the same for all, and with one exit code. Damage inside files is in test_forged_files.py."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import MANIFEST, RUN, seal
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.corpus_factory import build_corpus, edit_manifest
from tests.fork_server import ForkServer
from tests.pipelines.forged_corpora import break_the_seal
from tests.pipelines.small_runs import command
from tests.sampling import sampled

Make = Callable[[Path], None]

COMMANDS = {
    "verify": "verify {bad}",
    "export": "export {bad} --format jsonl --output {out} --workers 0",
    "sample": "sample {bad}",
    "sample of a stage": "sample {bad} --stage read",
    "trace a page": "trace {bad} --url {url}",
    "trace an id": "trace {bad} --id {id}",
    "trace an origin": "trace {bad} --origin {origin}",
    "show an id": "show {bad} --id {id}",
    "show a token": "show {bad} --token train/s/shard-00000-of-00001:3",
    "report": "report {bad} --output {out}.html",
    "compare": "compare {bad} {good} --replay 0",
    "compare with": "compare {good} {bad} --replay 0",
    "card": "card {bad}",
    "audit": "audit {bad} --sample 1",
}
TEXTS = ("sample", "show an id", "show a token", "export", "audit")  # commands that read texts or tokens
ROWS = (*TEXTS, "trace a page", "trace an id", "trace an origin", "compare", "compare with")


def sealed(edit: Callable[[dict[str, Any]], object]) -> Make:
    """Another manifest, whose seal is right."""

    def make(root: Path) -> None:
        payload = json.loads((root / MANIFEST).read_bytes())
        del payload["sha256"]
        edit(payload)
        (root / MANIFEST).write_bytes(seal(payload))

    return make


def listed(edit: Callable[[dict[str, Any]], object]) -> Make:
    """Other rows in the listings, whose checksums are right."""
    return lambda root: edit_manifest(root, edit)


def without(pattern: str) -> Make:
    def make(root: Path) -> None:
        for path in root.glob(pattern):
            path.unlink() if path.is_file() else shutil.rmtree(path)

    return make


def in_progress(root: Path) -> None:
    """A run of which another command has nearly finished phase 3."""
    for name in (MANIFEST, LISTINGS, "lookup", "removals", "work/shards.json"):
        without(name)(root)
    (root / "work/at_work").mkdir(exist_ok=True)
    lease = {"schema_version": 1, "kind": "refinery-lease", "id": "0" * 16, "host": "h", "process": 1}
    (root / "work/at_work" / f"{'0' * 16}-00000000.json").write_bytes(seal(lease))


def of_another_run(root: Path) -> None:
    """manifest.json and its listings are of another corpus."""
    other = build_corpus(root.parent / "other", {("train", "web"): [["elsewhere"]]}, fingerprint="77" * 32)
    shutil.rmtree(root / LISTINGS)
    shutil.copytree(other / LISTINGS, root / LISTINGS)
    (root / MANIFEST).write_bytes((other / MANIFEST).read_bytes())


def nothing(root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()


def a_file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("no corpus")


ESCAPES = "../../etc/passwd"
SHARD = "train/s/shard-00000-of-00001"
PATH = "a relative path without '', '.', '..' and '.tmp-*' is allowed"
# What was done to a corpus -> what all commands, or these, say of it.
PREFIXES: Mapping[str, tuple[Make, str, tuple[str, ...]]] = {
    "no folder": (shutil.rmtree, "{bad} is not a corpus: manifest.json is missing; {bad} is not there; ", ()),
    "a file": (a_file, "{bad} is not a corpus: manifest.json is missing; {bad} is a file", ()),
    "an empty folder": (nothing, "{bad} is not a corpus: manifest.json is missing; it is written last, and _run", ()),
    "no manifest": (without(MANIFEST), "manifest.json is missing; it is written last, so the run has not finished", ()),
    "a run in progress": (in_progress, "manifest.json is missing; it is written last, so the run has not finished", ()),
    "another seal": (break_the_seal, "{bad}/manifest.json: the contents have sha256 ", ()),
    "no JSON": (lambda root: (root / MANIFEST).write_bytes(b"\0"), "{bad}/manifest.json: ", ()),
    "a later version": (
        sealed(lambda plain: plain.update(schema_version=99)),
        "{bad}/manifest.json: schema version 99 found, this reader supports version 1 and 2",
        (),
    ),
    "another kind": (sealed(lambda plain: plain.update(kind="other")), "{bad}/manifest.json: kind 'other' found, ", ()),
    "an absolute listing": (
        sealed(lambda plain: plain["domains"][0]["listings"][0].update(path="/etc/passwd")),
        f"{{bad}}/manifest.json: domains[0]: listings[0]: path: name: '/etc/passwd' given, {PATH}",
        (),
    ),
    "a listing elsewhere": (
        sealed(lambda plain: plain["files"][0].update(path=ESCAPES)),
        f"{{bad}}/manifest.json: files[0]: path: name: '{ESCAPES}' given, {PATH}",
        (),
    ),
    "a file elsewhere": (
        listed(lambda plain: plain["files"][-1].update(path=ESCAPES)),
        f"path is '{ESCAPES}', a relative path that stores take expected",
        (),
    ),
    "a shard elsewhere": (
        listed(lambda plain: plain["shards"][0]["files"]["bin"].update(path="/etc/passwd")),
        "path is '/etc/passwd', a relative path that stores take expected",
        (),
    ),
    "no listing of files": (
        without("manifests/files"),
        "{bad}/manifests/files/part-00000-of-00001.parquet: missing",
        (),
    ),
    "no _run.json": (without(RUN), "{bad}/_run.json: missing, ", ()),
    "another _run.json": (
        lambda root: (root / RUN).write_bytes(seal({"schema_version": 1})),
        "{bad}/_run.json: size ",
        (),
    ),
    "a manifest of another run": (of_another_run, "{bad}/_run.json: ", ()),
    "no tokens": (without(f"{SHARD}.bin"), f"{{bad}}/{SHARD}.bin: missing", TEXTS),
    "no provenance": (
        without(f"{SHARD}.provenance.parquet"),
        f"{{bad}}/{SHARD}.provenance.parquet: missing",
        ROWS,
    ),
}


@pytest.fixture(scope="module")
def good(small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("good") / "corpus"
    assert forks.run(*command(small, prefix)).code == 0
    return prefix


def said_at_the_door(bad: Path, message: str) -> str:
    """The whole line."""
    with pytest.raises(FormatError) as caught:
        Corpus(str(bad)).load_with_run()
    assert message in str(caught.value)
    return str(caught.value)


CELLS = [(name, prefix) for prefix, (_, _, some) in PREFIXES.items() for name in some or COMMANDS]


@pytest.mark.parametrize(("name", "prefix"), sampled("commands x damaged prefixes", CELLS, 20, lambda cell: cell))
def test_every_command_refuses_it(
    name: str, prefix: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "bad", tmp_path / "out"
    shutil.copytree(good, bad)
    make, message, some = PREFIXES[prefix]
    row = pq.read_table(good / f"{SHARD}.provenance.parquet").slice(1, 1).to_pylist()[0]
    make(bad)
    places = {"bad": bad, "good": good, "out": out, "url": row["url"], "id": row["id"].hex(), "origin": row["origin"]}
    code = execute([word.format(**places) for word in COMMANDS[name].split()])
    said = capsys.readouterr()
    expected = message.format(bad=bad)
    if not some:
        expected = said_at_the_door(bad, expected)
    if name == "verify":  # its verdict names the files below the prefix, and is 1 where there is something to check
        own = expected.removeprefix(f"{bad}/")
        lines = [line for line in (said.out + said.err).splitlines() if own in line or expected in line]
        assert lines and code == (ExitCode.USAGE if prefix in NOTHING else ExitCode.FAILED), said.out + said.err
        return
    lines = [line for line in said.err.splitlines() if line.startswith("refinery: ")]
    assert len(lines) == 1 and expected in lines[0], said.out + said.err
    assert code == ExitCode.USAGE
    assert not (out / MANIFEST).exists() and not Path(f"{out}.html").exists()


NOTHING = ("no folder", "a file", "an empty folder")
