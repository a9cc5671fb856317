"""Sixty mistakes that people make, each with the one line that leads on: the table of test_typical_mistakes.py."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.pipelines.small_runs import OFF


class Mistake(NamedTuple):
    """words: behind `refinery`. says: a pattern that the whole line must match. code: the exit code."""

    words: str
    says: str
    code: int = 2


HELP = "; `refinery( [a-z-]+)* --help` has examples"
DRY = "--workers 0 --output new --dry-run"
# A folder of its own for all of them: `in/` has two inputs and a tokenizer, `corpus` is finished.
COMMANDS = [
    # the command itself
    Mistake("", f"the following arguments are required: COMMAND{HELP}"),
    Mistake("refin my.yaml", f"'refin' is not a command; did you mean refine\\?{HELP}"),
    Mistake("my.yaml --output new", f"'my.yaml' given where a command is expected: `refinery refine my.yaml`{HELP}"),
    Mistake("corpus", f"'corpus' given where a command is expected: `refinery inspect corpus`{HELP}"),
    Mistake("acquire gti", f"commoncrawl \\| git: 'gti' given; did you mean git\\?{HELP}"),
    Mistake("completion bsh", f"shell: 'bsh' given; did you mean bash\\?{HELP}"),
    # flags
    Mistake("refine my.yaml", f"the following arguments are required: --output{HELP}"),
    Mistake("refine my.yaml --ouput new", f"unknown flag --ouput; did you mean --output\\?{HELP}"),
    Mistake("refine my.yaml --output new --dryrun", "unknown flag --dryrun; did you mean --dry-run\\?"),
    Mistake("refine my.yaml --output new --workers two", f"--workers: 'two' given, a number such as 64, .*{HELP}"),
    Mistake("refine my.yaml --output new --workers -1", "--workers: -1 given, 0 or more is allowed"),
    Mistake(
        "refine my.yaml --output new --runner dataflw", "--runner: 'dataflw' given, did you mean DataflowRunner\\?"
    ),
    Mistake(
        "refine my.yaml --output new --runner DataflowRunner", "--output: 'new' given, gs://BUCKET/… is allowed: .*"
    ),
    Mistake(
        "refine my.yaml --output new --input in/a.jsonl in/b.jsonl",
        "'in/b.jsonl' belongs to no flag; quote a pattern: .*",
    ),
    Mistake(
        "refine my.yaml --output new --set near_dup.treshold=0.8",
        "near_dup.treshold: unknown key, did you mean threshold\\?",
    ),
    Mistake(
        "refine my.yaml --output new --set near_dup.threshold",
        "--set near_dup.threshold: not understood, KEY.KEY=VALUE is allowed",
    ),
    Mistake(
        "refine my.yaml --output new --set near_dup.threshold=80",
        "near_dup.threshold: 80 given, a number above 0 and up to 1 is allowed",
    ),
    Mistake(
        "refine my.yaml --output new --set sources.t.cap=9", "--set sources: t given, s, an index below 1 is allowed"
    ),
    Mistake(
        "refine my.yaml --output new --set run.wave_bytes=100B",
        "run.wave_bytes: '100B' given, 100 bytes or 100 billion\\? write 100 bytes or 100 GB",
    ),
    Mistake("sample corpus -n many", f"-n: 'many' given, a number such as 64, 10k, .*{HELP}"),
    Mistake("sample corpus -n 0", "-n: 0 given, 1 to 10,000 is allowed"),
    Mistake("audit corpus --sample some", f"--sample: 'some' given, a share such as 0.05 or 5% is expected{HELP}"),
    Mistake(
        "plan --tokens lots", "--tokens: 'lots' given, a number such as 64, 10k, 100B \\(billion\\) or 2e9 is expected"
    ),
    Mistake("plan --raw 100B", "--raw: '100B' given, 100 bytes or 100 billion\\? write 100 bytes or 100 GB"),
    Mistake("plan --preset lasy", "preset: 'lasy' given, .*; did you mean lazy\\?"),
    Mistake("plan --retention qualty=0.2", "retention: no stage 'qualty'; .*; did you mean quality\\?"),
    Mistake("stages heuristic", "stages: 'heuristic' given, .*; did you mean heuristics\\?"),
    # places
    Mistake("refine nope.yaml --output new", "nope.yaml: no such recipe file; .*"),
    Mistake(
        "refine corpus --output new",
        "corpus is a folder, a recipe is a YAML file: `refinery refine RECIPE --output PREFIX`",
    ),
    Mistake(
        "refine view.yaml --output new", "view.yaml is the recipe of a view: `refinery mix view.yaml --output VIEW`"
    ),
    Mistake(
        "mix my.yaml --output view",
        "my.yaml is the recipe of a corpus, not of a view: `refinery refine my.yaml --output PREFIX`",
    ),
    Mistake(
        "refine my.yaml --workers 0 --output notes.txt",
        "notes.txt is a file, not a folder. Choose another --output; .*",
        1,
    ),
    Mistake(
        "refine my.yaml --workers 0 --output foreign",
        "foreign holds 'thesis.txt' but no run of Refinery; choose a new or empty folder",
        1,
    ),
    Mistake(
        "refine other.yaml --workers 0 --output corpus",
        "corpus belongs to another run and stays as it is: .* Choose another --output; .*",
        1,
    ),
    Mistake("refine my.yaml --output gs:/bucket/corpus", "gs:/bucket/corpus given; did you mean gs://bucket/corpus\\?"),
    Mistake(
        "refine my.yaml --output gcs://bucket/corpus", "gcs://bucket/corpus given; did you mean gs://bucket/corpus\\?"
    ),
    Mistake(
        "refine my.yaml --workers 0 --output hf://datasets/a/b",
        "location: 'hf://...' given, a local folder, .* is allowed",
    ),
    Mistake("verify nope", "nope is not a corpus: manifest.json is missing; nope is not there; a location is .*"),
    Mistake("verify my.yaml", "my.yaml is not a corpus: manifest.json is missing; my.yaml is a file"),
    Mistake(
        "verify corpus/train",
        "corpus/train is not a corpus: manifest.json is missing; .* _run.json, .* name the folder that holds them",
    ),
    Mistake("verify corpus corpus", "unknown argument: corpus; --help lists what this command takes"),
    Mistake(
        "trace my.yaml --url https://a.example/1",
        "my.yaml is not a corpus: manifest.json is missing; my.yaml is a file.*",
    ),
    Mistake("trace corpus", "nothing to trace: give --url, --id, --origin, --token, --text or --urls"),
    Mistake("show corpus", "nothing to show: give --url, --id, --origin or --token; `refinery sample` draws documents"),
    Mistake("report nope", "nope is not a corpus: manifest.json is missing; nope is not there; .*"),
    Mistake("status corpus", "corpus: this is a corpus, not an export; run `refinery inspect`"),
    Mistake(
        "sample corpus --stage exact-duplicate",
        "'exact-duplicate': no document was dropped at this stage; did you mean exact-duplicates\\?",
    ),
    Mistake(
        "sample corpus --reason emty", "'emty': no stage dropped a document for this reason; did you mean empty\\?"
    ),
    Mistake("export corpus --format parqet --output e", "--format: 'parqet' given, did you mean parquet\\?"),
    Mistake(
        "export corpus --format jsonl --compression gz --output e",
        f"--compression: 'gz' given; did you mean gzip\\?{HELP}",
    ),
    Mistake("export corpus --format jsonl --fields txt --output e", "--fields: 'txt' given, did you mean text\\?"),
    Mistake(
        "export corpus --format jsonl --output corpus/e",
        "--output: corpus/e given, which is inside the corpus; name another place",
    ),
    Mistake(
        "export corpus --format jsonl --output foreign --workers 0",
        "foreign holds thesis.txt, no export; choose another --output",
        1,
    ),
    Mistake(
        "train-tokenizer my.yaml --workers 0 --output tokens.txt",
        "output: 'tokens.txt' given, a name ending in .json or .model is allowed",
    ),
    Mistake(
        "train-tokenizer my.yaml --workers 0 --output in/tokenizer.json",
        "output: in/tokenizer.json exists; .*give --overwrite to replace it",
    ),
    Mistake(
        "train-perplexity --input 'nope/*' --output p.model",
        "source input: paths: 'nope/\\*' given, no file matches it; relative paths start in .*",
    ),
    Mistake("remove corpus --output new", "remove: what is to go\\? .*"),
    Mistake("try my.yaml", f"one of the arguments --text --url --origin is required{HELP}"),
    Mistake(
        "try my.yaml --text nope.txt", ".*No such file or directory: 'nope.txt'; correct the name, or make the file", 1
    ),
]


def files(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A recipe with other keys of its source."""
    return lambda recipe: {**recipe, "sources": [{"name": "s", **changes}]}


def keys(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A recipe with other sections."""
    return lambda recipe: {**recipe, **changes}


PLAIN = 'name: x\nsources:\n  - {name: s, paths: ["in/a.jsonl"]}\ntokenizer: {path: in/tokenizer.json}\n'
# What is wrong in a recipe: its bytes, or what is made of a good one -> the line of `refine --dry-run`.
RECIPES: list[tuple[bytes | Callable[[dict[str, Any]], Any], str]] = [
    (b"", "wrong.yaml is empty; docs/recipes.md has a recipe to begin with"),
    (b"name: x\nsources:\n\t- {name: s}\n", ".*line 3, column 1: .*; indent with spaces, not with tabs"),
    (
        PLAIN.replace("tokenizer:", "   tokenizer:").encode(),
        ".*line 4, column 4: .*; give the line the indentation of .*",
    ),
    (PLAIN.encode("utf-16"), "wrong.yaml: it is UTF-16; save it as UTF-8"),
    (b"name: caf\xe9\n", "wrong.yaml: byte 9 is not UTF-8; save it as UTF-8"),
    (
        PLAIN.replace('["in/a.jsonl"]', "[*.jsonl]").encode(),
        ".*line 3, .*; put a pattern that begins with \\* in quotes",
    ),
    (PLAIN.replace("name: x", "name: a: b").encode(), ".*line 1, .*; put a value that has ': ' in it in quotes, .*"),
    (
        files(paths="in/a.jsonl"),
        "sources\\[0\\].paths: 'in/a.jsonl' .* a list of texts is allowed: \\[\"in/a.jsonl\"\\]",
    ),
    (keys(sources={"name": "s"}), "sources: a mapping of 1 key given, .* \\(begin each element with `- `\\)"),
    (keys(tokenizer="in/tokenizer.json"), 'tokenizer: .* is allowed: {path: "in/tokenizer.json"}'),
    (
        keys(tokenizer={"path": "vocab.json"}),
        "tokenizer.path: 'vocab.json' .*only a vocabulary.*; name the tokenizer.json .*",
    ),
    (keys(tokenizer={"path": "nope.json"}), "tokenizer.path: 'nope.json' .*; refinery train-tokenizer learns one"),
    (keys(tokeniser={"path": "x"}), "tokeniser: unknown key, did you mean tokenizer\\?"),
    (keys(language={"languages": ["english"]}), "language.languages: english given; did you mean en\\?"),
    (keys(lane="wbe"), "lane: 'wbe' given, chat, code, web or module:NAME is allowed; did you mean web\\?"),
    (keys(exact_dup="yes"), "exact_dup: 'yes' \\(text\\) given, on or off is allowed"),
    (
        files(paths=["nope/*.jsonl"]),
        "source s: paths: 'nope/\\*.jsonl' given, no file matches it; relative paths start in .*",
    ),
    (files(paths=["gs:/bucket/a.jsonl"]), ".* no file matches it; did you mean gs://bucket/a.jsonl\\?"),
    (files(paths=["in/a.jsonl"], format="jsnol"), "sources\\[0\\].format: .*; did you mean jsonl\\?"),
    (files(paths=["paper.pdf"]), "source s: format: paper.pdf has an unknown ending, allowed are .*; or name a format"),
    (files(paths=["paper.jsonl"]), "source s: paper.jsonl is not JSON Lines: it looks like a PDF document.*"),
    (files(paths=["list.json"]), "source s: list.json is a JSON array, one JSON object a line is needed .*"),
    (files(paths=["utf16.jsonl"]), "source s: utf16.jsonl .* text in UTF-16, UTF-8 is needed: `iconv .*"),
    (files(paths=["empty.jsonl"]), "source s: empty.jsonl is empty \\(0 bytes\\).*"),
    (files(paths=["texts.jsonl"]), "source s: text_field: 'text' given, .*; did you mean texts\\?"),
]


def make_workspace(folder: Path, inputs: Path, corpus: Path) -> None:
    """What the commands find in the working directory."""
    shutil.copytree(inputs, folder / "in")
    shutil.copytree(corpus, folder / "corpus")
    recipe = good_recipe()
    (folder / "my.yaml").write_text(yaml.safe_dump(recipe))
    (folder / "other.yaml").write_text(yaml.safe_dump({**recipe, "near_dup": True}))
    (folder / "view.yaml").write_text("name: v\ncorpora: {a: corpus}\ndomains: [{name: d, parts: [a]}]\n")
    (folder / "notes.txt").write_text("notes")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "thesis.txt").write_text("mine")
    (folder / "vocab.json").write_text(json.dumps({"a": 0, "b": 1}))
    (folder / "paper.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "paper.jsonl").write_bytes(b"%PDF-1.4\n")
    (folder / "list.json").write_text('[{"text": "a"}]')
    (folder / "utf16.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    (folder / "empty.jsonl").write_text("")
    (folder / "texts.jsonl").write_text('{"texts": "a b"}\n')
    (folder / "plain.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n'))


def good_recipe() -> dict[str, Any]:
    """The recipe of the corpus, with paths that are relative to the working directory."""
    return {
        "name": "small",
        "sources": [{"name": "s", "paths": ["in/[ab].jsonl"]}],
        "tokenizer": {"path": "in/tokenizer.json"},
        "rejects": {"rate": 0.0},
        "shards": {"validation": 0.0},
        **OFF,
    }
