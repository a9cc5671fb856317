"""A damaged or forged corpus is the same error from every tool: one message, that names the file, in little memory."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

import refinery.corpus
from refinery.loader import NodeStream, TokenStream
from refinery.loader.errors import FormatError
from refinery.pipelines.shell.exit_codes import ExitCode
from tests.fork_server import fork_server
from tests.pipelines.corpus.audit.forging import copy_of
from tests.pipelines.forged_corpora import FORGERIES, largest_shard
from tests.sampling import sampled

MEMORY = 400 << 20  # bytes: what commands hold here of sound corpora, 320 MB, and less than a page of 80 MB twice

# What each command is called with, and which forgeries are in files that it then reads.
TABLES = ("page", "footer")
EVERYTHING = ("seal", "listing")
COMMANDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "inspect": ("inspect {corpus}", EVERYTHING),
    "verify": ("verify {corpus} --workers 1", tuple(FORGERIES)),
    "trace a page": ("trace {corpus} --url {url} --no-replay", (*TABLES, *EVERYTHING)),
    "trace an id": ("trace {corpus} --id {id} --no-replay", (*TABLES, *EVERYTHING, "removals")),
    "sample": ("sample {corpus} -n 90", (*TABLES, *EVERYTHING)),
    "show a token": ("show {corpus} --token {shard}:5", (*TABLES, *EVERYTHING)),
    "show an id": ("show {corpus} --id {id}", (*TABLES, *EVERYTHING, "removals")),
    "compare": ("compare {corpus} {honest} --replay 0", (*TABLES, *EVERYTHING, "statistics")),
    "audit": ("audit {corpus} --sample 1", (*TABLES, *EVERYTHING, "removals")),
    "export": ("export {corpus} --format jsonl --output {out}/x --workers 0", (*TABLES, *EVERYTHING, "index")),
    "export tokens": ("export {corpus} --format torch --output {out}/x --workers 0", (*TABLES, *EVERYTHING, "index")),
    "mix": ("mix {recipe} --output {out}/x --workers 0", (*TABLES, *EVERYTHING, "index")),
    "remove": (
        "remove {corpus} --urls {urls} --output {out}/x --workers 0",
        (*TABLES, *EVERYTHING, "index", "removals"),
    ),
    "report": ("report {corpus} --output {out}/x.html", EVERYTHING),
    "card": ("card {corpus}", (*EVERYTHING, "statistics")),
    "blend": ("blend {corpus}", EVERYTHING),
    "shards": ("shards {corpus} --node n", EVERYTHING),
}
# Commands whose 1 says that a corpus is damaged; everywhere else 1 is "not found", "differs" or a failure of the job.
OWN_VERDICT = ("inspect", "verify")

CALLS: Mapping[str, tuple[Callable[[str, Path], object], tuple[str, ...]]] = {
    "documents": (lambda root, out: list(refinery.corpus.open(root).documents(["url"])), (*TABLES, *EVERYTHING)),
    "find": (lambda root, out: refinery.corpus.open(root).find(id=bytes(16)), EVERYTHING),
    "stream": (lambda root, out: _streamed(root), ("index", *EVERYTHING)),
    "node": (lambda root, out: NodeStream(root, node="n", sequence_length=64, batch_size=1), EVERYTHING),
}


def _streamed(root: str) -> None:
    with TokenStream(root, sequence_length=64, batch_size=1, epochs=1, packing="best_fit") as stream:
        next(iter(stream))


@pytest.fixture(scope="module")
def forged(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """The corpus with a forgery of that name, made when it is first asked for."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = copy_of(corpus, tmp_path_factory.mktemp(name) / "corpus")
            FORGERIES[name].make(made[name])
        return made[name]

    yield make


def words(command: str, root: Path, honest: Path, out: Path) -> list[str]:
    """A command about a document of the shard that is forged."""
    path = largest_shard(honest)
    row = pq.read_table(path, columns=["url", "id"]).slice(1, 1).to_pylist()[0]
    (out / "urls.txt").write_text(f"{row['url']}\n")
    domain = {"name": "web", "parts": ["a"], "where": 'url != ""'}
    (out / "view.yaml").write_text(yaml.safe_dump({"name": "half", "corpora": {"a": str(root)}, "domains": [domain]}))
    places = {"corpus": root, "honest": honest, "out": out, "urls": out / "urls.txt", "recipe": out / "view.yaml"}
    shard = path.relative_to(honest).as_posix().removesuffix(".provenance.parquet")
    known = {"url": row["url"], "id": row["id"].hex(), "shard": shard}
    return [word.format(**places, **known) for word in COMMANDS[command][0].split()]


CELLS = [(command, name) for command, (_, names) in COMMANDS.items() for name in names]


@pytest.mark.parametrize(("command", "name"), sampled("tools x forgeries", CELLS, 12, lambda cell: cell))
def test_every_command_says_the_same(
    command: str, name: str, forged: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    root = forged(name)
    done = fork_server().run(*words(command, root, corpus, tmp_path))
    told = done.out + done.err
    assert FORGERIES[name].message(root) in told.replace(f"{root}/", ""), told
    assert done.code == (ExitCode.FAILED if command in OWN_VERDICT else ExitCode.USAGE), told
    assert done.peak < MEMORY
    assert not (tmp_path / "x" / "manifest.json").exists()


CALLED = [(call, name) for call, (_, names) in CALLS.items() for name in names]


@pytest.mark.parametrize(("call", "name"), CALLED)
def test_so_does_the_library(call: str, name: str, forged: Callable[[str], Path], tmp_path: Path) -> None:
    root = forged(name)
    with pytest.raises(FormatError) as caught:
        CALLS[call][0](str(root), tmp_path)
    assert str(caught.value).replace(f"{root}/", "") == FORGERIES[name].message(root)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_message_names_the_file(name: str, forged: Callable[[str], Path]) -> None:
    path, _, said = FORGERIES[name].message(forged(name)).partition(": ")
    assert (forged(name) / path).is_file() and said
