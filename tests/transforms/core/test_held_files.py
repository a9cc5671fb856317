"""Files of a recipe, held to the digests of the run: whatever decides what is published has to be what was planned."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from refinery.loader.storage.locks import machine_name
from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, train_perplexity
from refinery.transforms.code.chunk_stage import CHUNK
from refinery.transforms.core import resources
from refinery.transforms.core.document import Document, FailClosed
from refinery.transforms.core.params import Params
from refinery.transforms.core.prepared import FileChanged, prepare_held
from refinery.transforms.core.resources import machine_copy, machine_digest, opened_digest, read_resource
from refinery.transforms.core.stage import Note, Stage, no_files
from refinery.transforms.extract.blocks import model as weights
from refinery.transforms.extract.extract import EXTRACT
from refinery.transforms.filter.decontaminate import DECONTAMINATE
from refinery.transforms.filter.labels import LABELS
from refinery.transforms.filter.language import LANGUAGE
from refinery.transforms.filter.perplexity import PERPLEXITY
from refinery.transforms.filter.quality import QUALITY
from refinery.transforms.filter.rules.keep import KEEP
from refinery.transforms.filter.toxicity import TOXICITY
from refinery.transforms.filter.url import URL
from refinery.transforms.rights.opt_out import OPT_OUT
from refinery.transforms.rights.page_license import PAGE_LICENSE
from refinery.transforms.tokenize.chat.conversations import CONVERSATIONS
from refinery.transforms.tokenize.encode import ENCODE
from refinery.transforms.tokenize.encode_marked import ENCODE_MARKED, MarkedParams
from tests.beam import make_document, run_and_collect
from tests.transforms.filter.fasttext_files import train_labelled
from tests.transforms.rights.rights_files import write_table
from tests.transforms.tokenize.chat.chats import TURNS, make_tokenizer
from tests.transforms.tokenizer_files import all_pairs, byte_level_spec
from tests.transforms.tokenizer_files import write as write_tokenizer

QUESTION = "Which of " + " ".join(f"word{number}" for number in range(30)) + " is it?"
HOSTS = b"one.example\ntwo.example\nthree.example\n"


def model(folder: Path) -> bytes:
    train_labelled(folder / "m.bin", {"hq": ["a good text of words"], "lq": ["buy now cheap"]}, repeat=10)
    return (folder / "m.bin").read_bytes()


def ngrams(folder: Path) -> bytes:
    texts = [f"the miller of village {number} keeps the wheel" for number in range(30)]
    train_perplexity(texts, str(folder / "en.ngrams"), TrainPerplexityParams(), sample=texts[:5])
    return (folder / "en.ngrams").read_bytes()


def table(folder: Path) -> bytes:
    return Path(write_table(folder / "rows")).read_bytes()


def tokenizer(folder: Path) -> bytes:
    return Path(write_tokenizer(folder / "t.json", byte_level_spec(all_pairs("abc")))).read_bytes()


def template(folder: Path) -> bytes:
    make_tokenizer(folder / "chat", TURNS)
    return TURNS.encode()


def beside_tokenizer(path: str) -> dict[str, Any]:
    return {"tokenizer": str(Path(path).parents[1] / "chat" / "tokenizer.json"), "template": path}


def shipped_weights(folder: Path) -> bytes:
    return (files(weights.__package__) / weights.SHIPPED).read_bytes()


def lines(*each: str) -> Callable[[Path], bytes]:
    return lambda folder: "".join(line + "\n" for line in each).encode()


# stage, name of the file, its bytes, the parameters that name it, and a byte of it that can change
HELD: list[tuple[Stage[Any], str, Callable[[Path], bytes], Callable[[str], dict[str, Any]], int]] = [
    (URL, "hosts.txt", lines(*HOSTS.decode().split()), lambda path: {"domain_lists": (path,)}, 2),
    (URL, "urls.txt", lines("https://a.example/x"), lambda path: {"address_lists": (path,)}, -3),
    (URL, "patterns.txt", lines("casino"), lambda path: {"pattern_lists": (path,)}, 2),
    (OPT_OUT, "hosts.txt", lines(*HOSTS.decode().split()), lambda path: {"host_lists": (path,)}, 2),
    (OPT_OUT, "opt-outs.table", table, lambda path: {"tables": (path,)}, 4096),
    (PAGE_LICENSE, "classes.csv", lines("license,class", "CC-BY,free"), lambda path: {"classes": path}, -3),
    (
        KEEP,
        "t.csv",
        lines("language,least", "en,0.5"),
        lambda path: {"rule": "edu > t", "thresholds": {"t": {"file": path, "default": 0}}},
        -2,
    ),
    (DECONTAMINATE, "quiz.txt", lines(QUESTION), lambda path: {"benchmarks": [path]}, 3),
    (
        DECONTAMINATE,
        "quiz.jsonl",
        lines(json.dumps({"question": QUESTION})),
        lambda path: {"benchmarks": [path]},
        30,
    ),
    (TOXICITY, "words.txt", lines("badword"), lambda path: {"word_lists": (path,)}, 2),
    (LANGUAGE, "l.csv", lines("language,language_score", "en,0.5"), lambda path: {"thresholds": path}, -2),
    (LANGUAGE, "lid.bin", model, lambda path: {"model": path}, -5),
    (QUALITY, "q.bin", model, lambda path: {"model": path}, -5),
    (PERPLEXITY, "n.ngrams", ngrams, lambda path: {"models": {"en": path}}, -5),
    (LABELS, "l.bin", model, lambda path: {"models": [{"name": "topic", "model": path}]}, -5),
    (EXTRACT, "w.npy", shipped_weights, lambda path: {"weights": path}, -5),
    (CHUNK, "t.json", tokenizer, lambda path: {"tokenizer": path}, 40),
    (ENCODE, "t.json", tokenizer, lambda path: {"path": path}, 40),
    (replace(ENCODE_MARKED, params=MarkedParams), "t.json", tokenizer, lambda path: {"path": path}, 40),
    (CONVERSATIONS, "t.jinja", template, beside_tokenizer, 40),
]


@pytest.mark.parametrize(("stage", "name", "make", "params", "at"), HELD)
def test_one_flipped_bit_in_a_file_of_the_recipe_ends_the_run(
    stage: Stage[Any], name: str, make: Callable[[Path], bytes], params: Any, at: int, tmp_path: Path
) -> None:
    good = make(tmp_path)
    for folder, data in (("same", good), ("flipped", flipped(good, at))):
        (tmp_path / folder).mkdir()
        path = str(tmp_path / folder / name)
        Path(path).write_bytes(data)
        assert stage.params is not None
        chosen = stage.params(**params(path))
        chosen = chosen if stage.bind is None else stage.bind(chosen, [Note("edu", float, "a score")])
        assert path in stage.files(chosen)
        applied = stage(chosen, None, {path: hashlib.sha256(good).hexdigest(), "other": "of another stage"})
        assert applied.files == ((path, hashlib.sha256(good).hexdigest()),)
        if data == good:
            assert prepare_held(applied.prepare, applied.files) is not None or stage is EXTRACT  # loaded by its judge
        else:
            with pytest.raises(FileChanged, match=f"{name}: other bytes, SHA-256 .* when the run was planned; put the"):
                prepare_held(applied.prepare, applied.files)


def test_every_stage_that_names_files_is_tried() -> None:
    tried = {stage.name for stage, *_ in HELD}
    for lane in map(find_lane, lane_names()):
        stages = (*lane.clean, *lane.shards)
        assert {stage.name for stage in stages if stage.files is not no_files} <= tried


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


class ListParams(Params):
    """A list that its stage opens by itself."""

    path: str = ""


def judge_list(doc: Document, hosts: Sequence[str], params: ListParams) -> Document:
    return doc


def load_list(params: ListParams) -> Sequence[str]:
    with open(params.path) as file:
        return file.read().split()


OWN = Stage(
    name="own",
    version=1,
    summary="A stage of somebody's own.",
    params=ListParams,
    judge=judge_list,
    prepare=load_list,
    files=lambda params: (params.path,),
)


def test_a_run_stops_before_a_document_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(HOSTS)
    digests = {str(path): hashlib.sha256(HOSTS).hexdigest()}
    doc = make_document("Some words.")

    def through(pipeline: Any) -> Any:
        return [pipeline | beam.Create([doc]) | OWN(ListParams(path=str(path)), None, digests)]

    path.write_bytes(flipped(HOSTS, 3))
    with pytest.raises(Exception, match=r"list\.txt: other bytes, SHA-256"):
        run_and_collect(through)
    path.write_bytes(HOSTS)
    assert run_and_collect(through) == [[doc]]


def test_a_file_that_cannot_be_loaded_any_more_is_called_changed(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    path.write_bytes(b"no weights")
    with pytest.raises(FileChanged, match=r"w\.npy: other bytes"):
        prepare_held(partial(weights.load_model, str(path)), ((str(path), hashlib.sha256(b"x").hexdigest()),))
    with pytest.raises(ValueError, match="cannot be loaded"):
        prepare_held(partial(weights.load_model, str(path)), ((str(path), hashlib.sha256(b"no weights").hexdigest()),))
    with pytest.raises(OSError, match="none"):
        prepare_held(None, ((str(tmp_path / "none"), "0" * 64),))
    assert issubclass(FileChanged, FailClosed)


def test_what_was_opened_counts_not_what_the_file_has_become(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(HOSTS)
    assert read_resource(str(path)) == HOSTS
    path.write_bytes(b"")
    assert opened_digest(str(path)) == hashlib.sha256(HOSTS).hexdigest()
    assert opened_digest(str(tmp_path / "never")) == ""


def test_a_large_file_is_hashed_once_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SMALL", 3)
    monkeypatch.setattr(resources.tempfile, "gettempdir", lambda: str(tmp_path))
    path = tmp_path / "table"
    path.write_bytes(HOSTS)
    hashed = []
    digest_of = resources.resource_digest

    def counted(name: str) -> str:
        hashed.append(name)
        return digest_of(name)

    monkeypatch.setattr(resources, "resource_digest", counted)
    digest = hashlib.sha256(HOSTS).hexdigest()
    for _ in range(3):
        assert machine_digest(path) == digest
        assert machine_copy(str(path), 10) == path
        assert opened_digest(str(path)) == digest
    assert len(hashed) == 1
    path.write_bytes(flipped(HOSTS, 3))
    os.utime(path, (1, 1))  # an older time of change is another one, too
    assert machine_digest(path) == hashlib.sha256(flipped(HOSTS, 3)).hexdigest()
    shutil.copy(path, tmp_path / "other")
    machine_digest(tmp_path / "other")
    assert len(hashed) == 3
    stamps = [
        found
        for found in (tmp_path / f"refinery-{os.getuid()}-{machine_name()}").iterdir()
        if found.suffix == ".sha256"
    ]
    for stamp in stamps:  # a stamp that is no digest is none
        stamp.write_text("")
    assert machine_digest(path) == hashlib.sha256(flipped(HOSTS, 3)).hexdigest()
