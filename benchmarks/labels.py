"""What labels and rules cost, and whether a model with GlotLID's kind of labels works.

    python -m benchmarks.labels cost PROSE.jsonl.gz EDU.bin DCLM.bin       milliseconds per MB of text, by stage
    python -m benchmarks.labels scripts LABELLED.jsonl.gz                  a small model of four fifths of these

The first takes documents with `text`, in memory up to 20 MB, and two models of `refinery train-quality`. Stages are run
in turn, five rounds each, in process time, which other work on the machine hardly changes. The second takes texts with
`text` and `lang` (ISO 639-3); it is a check of the wiring, not a measure of GlotLID.
"""

import gzip
import json
import statistics
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import floret
import pyarrow as pa

from refinery.pipelines.training.fasttext_training import as_fasttext, silent
from refinery.transforms.core.document import Document, document_id, hash64, text_bytes
from refinery.transforms.core.languages.codes import CODES
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.filter.heuristics import HEURISTICS
from refinery.transforms.filter.heuristics_rules import FIGURES, HeuristicsParams
from refinery.transforms.filter.labels import LABELS, LabelModelParams, LabelsParams
from refinery.transforms.filter.language import LanguageParams, identify, load_language, model_line
from refinery.transforms.filter.quality import QUALITY, ClassifierParams, QualityParams
from refinery.transforms.filter.rules.expression import compile_rule
from refinery.transforms.filter.rules.keep import KEEP, DrawParams, KeepParams, bind_notes

SCRIPTS = {"LATIN": "Latn", "CYRILLIC": "Cyrl", "ARABIC": "Arab", "DEVANAGARI": "Deva", "CJK": "Hani", "HEBREW": "Hebr"}
RULE = "edu > 0.3 or (dclm > 0.02 and language == 'en') or lot"
NOTES = (Note("edu", float, ""), Note("dclm", float, ""), Note("language", str, ""))
TYPES = {"edu": "float", "dclm": "float", "language": "string"}
COLUMNS = pa.schema({"edu": pa.float32(), "dclm": pa.float32(), "language": pa.string()})


def read(path: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def documents(path: str, most: int = 20 << 20) -> list[Document]:
    """Documents of about so many bytes, spread over the file."""
    rows = sorted(read(path), key=lambda row: hash64("labels", row["text"]))
    found: list[Document] = []
    size = 0
    for row in rows:
        if size < most:
            size += text_bytes(row["text"])
            meta = {"language": "en"}
            found.append(Document(document_id(row["text"]), row["text"], "", "s", f"o@{len(found)}", len(found), meta))
    return found


def judge_of(stage: Stage[Any], params: Any) -> Callable[[Document], Any]:
    """The stage with these parameters."""
    resource = (stage.prepare(params),) if stage.prepare else ()
    judge: Any = stage.judge
    return lambda doc: judge(doc, *resource, params=params)


def cost(path: str, first: str, second: str, rounds: int = 5) -> None:
    """Print a table of milliseconds per MB and microseconds per document."""
    docs = documents(path)
    size = sum(text_bytes(doc.text) for doc in docs) / 1e6
    edu = ClassifierParams(name="edu", model=first, rule="note")
    classifiers = (edu, edu.replace(name="dclm", model=second))
    topic = LabelsParams(models=(LabelModelParams(name="topic", model=first),))
    two = judge_of(QUALITY, QualityParams(classifiers=classifiers))
    off = HeuristicsParams(basic=None, gopher=None, c4=None, fineweb=None)
    rule = KeepParams(rule=RULE, draws={"lot": DrawParams(score="edu")})
    scored = [two(doc) for doc in docs]
    runs: dict[str, tuple[Callable[[Document], Any], list[Document]]] = {
        "quality, one classifier": (judge_of(QUALITY, QualityParams(model=first, rule="note")), docs),
        "quality, two classifiers": (two, docs),
        "labels, one model": (
            judge_of(LABELS, topic),
            docs,
        ),
        "heuristics, repetition alone": (judge_of(HEURISTICS, off), docs),
        "the same with all figures as columns": (judge_of(HEURISTICS, off.replace(columns=tuple(FIGURES))), docs),
        "keep, three comparisons and a draw": (judge_of(KEEP, bind_notes(rule, NOTES)), scored),
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (judge, inputs) in runs.items():
            start = time.process_time()
            for doc in inputs:
                judge(doc)
            taken[name].append(time.process_time() - start)
    print(f"{len(docs):,} documents, {size:.1f} MB\n\n| what | ms per MB | µs per document |\n| --- | --- | --- |")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"| {name} | {1e3 * median / size:.2f} | {1e6 * median / len(docs):.0f} |")
    judge = runs["keep, three comparisons and a draw"][0]
    kept = sum(isinstance(judge(doc), Document) for doc in scored)
    table = pa.Table.from_pylist([dict(doc.meta) for doc in scored], schema=COLUMNS)
    many = pa.concat_tables([table] * (200_000 // len(scored) + 1))
    compiled = compile_rule(RULE.removesuffix(" or lot"), TYPES)
    start = time.process_time()
    compiled.mask(many)
    rate = len(many) / (time.process_time() - start)
    print(f"\n{kept} of {len(scored)} kept; Rule.mask: {rate:,.0f} rows per second")


def script_of(text: str) -> str:
    """The script of most letters, as GlotLID's labels name it; "Zzzz" for one that is none of these."""
    names = Counter(unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha())
    known = {
        "LATIN": "Latn",
        "CYRILLIC": "Cyrl",
        "ARABIC": "Arab",
        "DEVANAGARI": "Deva",
        "CJK": "Hani",
        "HEBREW": "Hebr",
    }
    return known.get(names.most_common(1)[0][0] if names else "", "Zzzz")


def scripts(path: str, folds: int = 5) -> None:
    """Train on four of five folds of the texts with 10 or more of their language, judge the fifth by the stage."""
    rows = list(read(path))
    counts = Counter(row["lang"] for row in rows)
    rows = [row for row in rows if counts[row["lang"]] >= 10]
    held = [hash64("fold", 1, row["text"]) % folds == 0 for row in rows]
    label = [f"{row['lang']}_{script_of(row['text'])}" for row in rows]
    with TemporaryDirectory() as folder:
        lines = [f"__label__{label[i]} {model_line(row['text'], 1000)}" for i, row in enumerate(rows) if not held[i]]
        (Path(folder) / "train.txt").write_text("".join(lines), encoding="utf-8")
        with silent():
            options = {"dim": 32, "epoch": 25, "lr": 0.5, "minn": 2, "maxn": 5, "bucket": 200_000, "minCount": 1}
            found = floret.train_supervised(f"{folder}/train.txt", thread=1, seed=1, verbose=0, **options)
            found.save_model(f"{folder}/model")
        (Path(folder) / "scripts.bin").write_bytes(as_fasttext((Path(folder) / "model").read_bytes()))
        known = load_language(LanguageParams(model=f"{folder}/scripts.bin", threshold=0.0))
    right = scripted = 0
    tested = [i for i in range(len(rows)) if held[i]]
    for i in tested:
        best = identify(model_line(rows[i]["text"], 1000), known, 0.0)
        lang, script = label[i].split("_")
        right += best is not None and best.code == CODES.get(lang, lang)
        scripted += best is not None and best.script == script
    codes = {code for code, _ in known.labels.values()}
    print(f"{len(known.labels)} labels, {len(codes)} codes; of {len(tested)} held-out texts")
    print(f"{right / len(tested):.1%} have the code of their language, {scripted / len(tested):.1%} the script")


def main(arguments: Sequence[str]) -> None:
    """One of the two."""
    if arguments[0] == "cost":
        cost(arguments[1], arguments[2], arguments[3])
    else:
        scripts(arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
