"""Every command on a finished corpus works on one of texts, or says in a line why not; a forged shard is one error."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

import refinery.corpus
from refinery.loader import TokenStream
from refinery.loader.errors import NoTokens
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.write.text_writers import TEXT_WRITERS
from tests.fork_server import fork_server
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import text_of
from tests.pipelines.text_corpora import LINE_FORGERIES, PARQUET_FORGERIES, first_shard, text_corpus
from tests.sampling import sampled

MEMORY = 400 << 20  # bytes: as of forged corpora of tokens
URL = "https://a.example/3"


@pytest.fixture(scope="module", params=sampled("writers of texts whose corpora are looked at", list(TEXT_WRITERS), 2))
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_corpus(tmp_path_factory, request.param)


# Words of a command -> what it prints.
LOOKS = {
    "verify {corpus} --workers 1": "read back 10 documents",
    "inspect {corpus}": "texts         written by text",
    "sample {corpus} -n 3": "as published: read from its shard",
    "show {corpus} --url {url}": text_of(3),
    "show {corpus} --id {id}": text_of(3),
    "trace {corpus} --url {url}": "in the corpus: ",
    "trace {corpus} --text {text}": "in the corpus: ",
    "trace {corpus} --text tail3 --search-texts 1G": "in the corpus: ",
    "card {corpus}": "10 documents, 1,",
    "report {corpus} --output {out}/r.html": "open it in a browser",
    "audit {corpus} --sample 1": "10  agree: in the corpus",
    "compare {corpus} {corpus}": "The texts are the same, byte for byte.",
}


@pytest.mark.parametrize("command", LOOKS)
def test_what_looks_at_it(command: str, corpus: Path, tmp_path: Path) -> None:
    """None of them says a word of tokens."""
    (id_,) = {found.row["id"].hex() for found in refinery.corpus.open(corpus).find(url=URL)}
    places = {"corpus": corpus, "url": URL, "id": id_, "out": tmp_path}
    words = [word.format(**places, text=text_of(3)) if word != "{text}" else text_of(3) for word in command.split()]
    done = run(*words)
    assert LOOKS[command] in done.stdout, done.stdout
    assert not re.search(r"\d tokens|^tokens|\| tokens|token_", done.stdout, re.M)


def test_the_report_has_no_tokens(corpus: Path) -> None:
    text = (corpus / "report.html").read_text()
    assert "<th>tokens" not in text and "of all tokens" not in text


REFUSED = [
    "export {corpus} --format torch --output {out}/x",
    "export {corpus} --to megatron --output {out}/x",
    "blend {corpus}",
    "mix {out}/mix.yaml --output {out}/x",
    "plan --from {corpus}",
    "shards {corpus} --node a",
    "show {corpus} --id {id} --tokens",
    "trace {corpus} --token {shard}:1",
]


@pytest.mark.parametrize("command", REFUSED)
def test_what_needs_tokens_says_what_to_do(
    command: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    corpus = text_corpus(tmp_path_factory, "text")
    domain = {"name": "x", "parts": ["a"]}
    (tmp_path / "mix.yaml").write_text(
        yaml.safe_dump({"name": "v", "corpora": {"a": str(corpus)}, "domains": [domain]})
    )
    shard = first_shard(corpus).relative_to(corpus).as_posix().partition(".")[0]
    done = run(*command.format(corpus=corpus, out=tmp_path, id="0" * 32, shard=shard).split(), check=False)
    assert done.returncode == ExitCode.USAGE
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith("run `refinery tokenize PREFIX --tokenizer … --output …`"), line
    assert not (tmp_path / "x").exists()


def test_so_does_the_loader(corpus: Path) -> None:
    with pytest.raises(NoTokens, match=r"run `refinery tokenize PREFIX --tokenizer … --output …`$"):
        TokenStream(str(corpus), sequence_length=8, batch_size=1, seed=1)


def test_an_export_has_nothing_to_do(corpus: Path, tmp_path: Path) -> None:
    done = run("export", corpus, "--format", "parquet", "--output", tmp_path / "x", check=False)
    assert done.returncode == ExitCode.USAGE and "its shards are texts already (" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not (tmp_path / "x").exists()


def test_beside_a_corpus_of_tokens_and_of_other_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Documents are joined by their ids; what only one of them counts is left out."""
    one, other, tokens = (text_corpus(tmp_path_factory, writer) for writer in ("text", "text-jsonl", ""))
    for there, told in ((other, "in files of another kind"), (tokens, "in files of another kind")):
        done = run("compare", one, there)
        assert done.stdout.startswith(f"The documents are the same, but {told}."), done.stdout
        assert re.search(r"the same                   10 documents, [\d.]+ kB\n", done.stdout)
    assert json.loads(run("compare", one, tokens, "--json").stdout)["differ"] is False


def test_the_description_of_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Listings of shards, which have that ending, too, are none of them."""
    described = json.loads(run("card", text_corpus(tmp_path_factory, "text"), "--format", "croissant").stdout)
    sets = {each["@id"]: each for each in described["distribution"] if each["@type"] == "cr:FileSet"}
    assert sets["provenance"]["includes"] == ["train/*/*.parquet", "validation/*/*.parquet"]
    (rows,) = (each for each in described["recordSet"] if each["@id"] == "provenance-rows")
    assert rows["field"][0]["name"] == "text" and rows["field"][0]["dataType"] == "sc:Text"


READING = {  # commands that read the texts of the forged shard
    "verify": "verify {corpus} --workers 1",
    "sample": "sample {corpus} -n 90",
    "show": "show {corpus} --id {id}",
    "search": "trace {corpus} --text tail --search-texts 1G",
    "audit": "audit {corpus} --sample 1",
    "remove": "remove {corpus} --documents {out}/ids.txt --output {out}/x --workers 0",
}
OF_FACTS = {  # and those that read what is beside them, where both are one file
    "trace": "trace {corpus} --url https://a.example/3 --no-replay",
    "compare": "compare {corpus} {honest} --replay 0",
}
FITTING = ("row", "show")  # a row that is there is one of a text and its id
CELLS = [
    *(("text", name, command) for name in PARQUET_FORGERIES for command in READING if (name, command) != FITTING),
    *(("text", name, command) for name in ("type", "column") for command in OF_FACTS),
    *((writer, name, command) for writer in list(TEXT_WRITERS)[1:] for name in LINE_FORGERIES for command in READING),
]


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Path]]:
    made: dict[tuple[str, str], Path] = {}

    def make(writer: str, name: str) -> Path:
        if (writer, name) not in made:
            root = made[writer, name] = tmp_path_factory.mktemp(f"{writer}-{name}") / "corpus"
            shutil.copytree(text_corpus(tmp_path_factory, writer), root)
            shutil.rmtree(root / "work")  # else texts are searched there
            (PARQUET_FORGERIES if writer == "text" else LINE_FORGERIES)[name](root)
        return made[writer, name]

    yield make


@pytest.mark.parametrize(
    ("writer", "name", "command"), sampled("forged shards of texts x tools", CELLS, 8, lambda cell: cell)
)
def test_a_forged_shard_is_one_error(
    writer: str,
    name: str,
    command: str,
    forged: Callable[[str, str], Path],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> None:
    honest, root = text_corpus(tmp_path_factory, writer), forged(writer, name)
    file = first_shard(honest).relative_to(honest).as_posix()
    found = [
        (batch.column("shard")[row].as_py(), batch.column("document")[row].as_py(), batch.column("id")[row].as_py())
        for batch in refinery.corpus.open(honest).documents(["id", "shard", "document"])
        for row in range(len(batch))
    ]
    id_ = next(id_.hex() for shard, document, id_ in found if file.startswith(f"{shard}.") and document == 1)
    (tmp_path / "ids.txt").write_text(f"{id_}\n")
    places = {"corpus": root, "honest": honest, "id": id_, "out": tmp_path}
    done = fork_server().run(*({**READING, **OF_FACTS}[command].format(**places).split()))
    told = done.out + done.err
    assert file.partition(".")[0] in told and "Traceback" not in told, told
    assert done.code == (ExitCode.FAILED if command == "verify" else ExitCode.USAGE), told
    assert done.peak < MEMORY
    assert not (tmp_path / "x" / "manifest.json").exists()
