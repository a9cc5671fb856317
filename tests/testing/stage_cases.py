"""Each stage of ours with texts that it keeps and drops, and the models and lists that it is tried with."""

import atexit
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, train_perplexity
from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.core.spans.marks import Marks, notes_of
from refinery.transforms.dedup.cut_lines import CUT_LINES
from refinery.transforms.dedup.cut_substrings import CUT_SUBSTRINGS
from refinery.transforms.filter.rules.keep import KeepParams, bind_notes
from refinery.transforms.tokenize.chat.conversations import ChatParams
from refinery.transforms.tokenize.encode_marked import MarkedParams
from tests.golden_inputs import documents
from tests.transforms.filter.fasttext_files import train_labelled
from tests.transforms.tokenize.chat.chats import TURNS, make_tokenizer
from tests.transforms.tokenizer_files import all_pairs, byte_level_spec, write

PROSE = "The harbour was built before the war, and most of the ships that used it carried grain. "
PAGE = max((doc.text for doc in documents() if " the " in doc.text[:2000] and doc.url), key=len)
GERMAN = "Der Hafen wurde vor dem Krieg gebaut, und die meisten Schiffe, die ihn nutzten, hatten Getreide geladen. "
ITEM = "Which of the three captains left the harbour of the northern island before the storm of that winter came"
C_FILE = "/* Copyright */\n#include <stdio.h>\n\n" + "".join(
    f"int value_{at}(int a)\n{{\n    return a * {at * 37 % 101} + {at};\n}}\n\n" for at in range(9)
)

Make = Callable[[Document], Any]


def same(doc: Document) -> Any:
    return doc


def page(doc: Document) -> RawDocument:
    """HTML of one paragraph: bytes, as a crawl has them."""
    html = f"<html><body><p>{doc.text}</p></body></html>".encode("utf-8", "surrogatepass")
    return RawDocument(html, True, "utf-8", doc.url, doc.source, doc.origin, doc.position)


def raw(doc: Document) -> RawDocument:
    return RawDocument(doc.text, False, "", doc.url, doc.source, doc.origin, doc.position, {"path": "a.c"})


def noted(**meta: Any) -> Make:
    return lambda doc: replace(doc, meta={**doc.meta, **meta})


def at_spans(doc: Document) -> Document:
    """With a span to cut where the text is long enough."""
    end = min(len(doc.text), 40)
    return replace(doc, meta={**doc.meta, CUT_SUBSTRINGS: f"2-{end}"}) if end > 2 else doc


def at_host(doc: Document) -> Document:
    """Of another host where the text says so."""
    return replace(doc, url="https://refused.example/a") if "refused" in doc.text else doc


def licensed(doc: Document) -> Document:
    return replace(doc, meta={**doc.meta, "license": "CC-BY-NC-4.0" if "NC" in doc.text else "CC-BY-4.0"})


def conversation(doc: Document) -> RawDocument:
    """A question, and the text as its answer; as a text as it is, where JSON cannot say it."""
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": doc.text}]
    return RawDocument(json.dumps({"messages": messages}), False, "", doc.url, doc.source, doc.origin, doc.position)


def spanned(doc: Document) -> Document:
    """With a span that is trained, behind the second character."""
    trained = ((2, len(doc.text)),) if len(doc.text) > 2 else ()
    return replace(doc, meta={**doc.meta, **notes_of(doc.text, Marks(trained))})


@dataclass(frozen=True)
class Case:
    """examples: of `StageTests`. given: parameters, or a function that makes them with the files that they name. make:
    the document that the stage gets."""

    examples: Mapping[str, str]
    given: Mapping[str, Any] | Callable[[], Any] = field(default_factory=dict)
    make: Make = same
    unlimited: Sequence[str] = ()


@cache
def folder() -> Path:
    """Where models and lists of this process are."""
    place = Path(mkdtemp(prefix="stage-cases-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@cache
def classifier() -> str:
    """A model of two labels: whether a text is about a harbour."""
    texts = {
        "hq": [f"{PROSE} {at}" for at in range(20)],
        "lq": [f"buy cheap pills now {at} click here" for at in range(20)],
    }
    train_labelled(folder() / "labels.bin", texts, repeat=5)
    return str(folder() / "labels.bin")


@cache
def language_model() -> str:
    path = str(folder() / "en.ngrams")
    train_perplexity([doc.text for doc in documents()[::2]], path, TrainPerplexityParams())
    return path


@cache
def tokenizer() -> str:
    return str(write(folder() / "tokenizer.json", byte_level_spec(all_pairs("abcde rst"))))


@cache
def items() -> str:
    (folder() / "items.jsonl").write_text(json.dumps({"question": ITEM}) + "\n")
    return str(folder() / "items.jsonl")


@cache
def chat() -> ChatParams:
    return make_tokenizer(folder() / "chat", TURNS)


CASES: Mapping[str, Case] = {
    "extract": Case({PROSE * 5: "", "Too short.": "empty"}, {"min_chars": 40}, page),
    "secrets": Case({PROSE: "", f"key = ghp_{'q7ZbXw91LmPaKs83HdYt' * 2:.36} ": "github-token"}, {"action": "drop"}),
    "url": Case({PROSE: "", "refused": "blocked-host"}, {"blocked_domains": ("refused.example",)}, at_host),
    "language": Case({PROSE * 3: "", GERMAN * 3: "language-not-allowed"}, {"languages": ("en",)}),
    "heuristics": Case(
        {PAGE: "", "two words": "basic-too-few-characters", "a line again\n" * 60: "basic-low-unique-word-ratio"}
    ),
    "opt-out": Case({PROSE: "", "refused": "opt-out-host"}, {"hosts": ("refused.example",)}, at_host),
    "page-license": Case({PROSE: "", "NC": "license-denied"}, {"deny": ("CC-BY-NC",)}, licensed),
    "substrings": Case({PROSE * 9: "", "x" * 60: "too-little-left"}, make=at_spans),
    "lines": Case({f"{PROSE}\n{PROSE * 9}": "", "a\nb\nc": "too-little-left"}, make=noted(**{CUT_LINES: "0"})),
    "perplexity": Case(
        {PAGE: "", "zq xv kj wq " * 200: "perplexity-high"},
        lambda: {"models": {"*": language_model()}, "middle": 80.0},
    ),
    "quality": Case(
        {PROSE * 3: "", "buy cheap pills now click here " * 3: "quality-score"},
        lambda: {"model": classifier(), "label": "__label__hq", "threshold": 0.5},
        unlimited=("seed", "classifiers.seed"),
    ),
    "labels": Case({PROSE: ""}, lambda: {"models": ({"name": "kind", "model": classifier()},)}),
    "toxicity": Case({PROSE * 3: "", "fuck this shit, you motherfucker. " * 9: "toxic-density"}),
    "decontaminate": Case(
        {PROSE * 3: "", f"{PROSE}{ITEM} {PROSE}": "benchmark-overlap"}, lambda: {"benchmarks": ({"path": items()},)}
    ),
    "pii": Case({PROSE: "", "write to anna.berg@mail.example.org now": "pii-email"}, {"action": "drop"}),
    "keep": Case(
        {PROSE * 3: "", "short": "rule-not-met"},
        lambda: bind_notes(KeepParams(rule="text_bytes > 99"), ()),
        unlimited=("thresholds.default", "draws.seed"),
    ),
    "encode": Case({PROSE: "", "": "no-tokens"}, lambda: {"path": tokenizer()}),
    "chat": Case({"a question": "", "": "empty-turn"}, chat, conversation),
    "encode-masked": Case({PROSE: "", "a": "no-token-trained"}, lambda: MarkedParams(path=tokenizer()), spanned),
    "source-text": Case({C_FILE: "", "": "empty", "a\0b": "binary"}, make=raw),
    "license": Case(
        {C_FILE: "", "": "", "# SPDX-License-Identifier: GPL-3.0-only\n": "license-not-allowed"},
        make=noted(repo_license="MIT"),
    ),
    "code-heuristics": Case({C_FILE: "", "": "code-too-small"}, make=noted(path="a.c")),
    "chunk-copies": Case({C_FILE: "", "x" * 60: "too-little-left"}, make=at_spans),
    "chunk": Case({C_FILE * 5: ""}, lambda: {"tokenizer": tokenizer(), "budget": 256}, noted(path="a.c")),
}
