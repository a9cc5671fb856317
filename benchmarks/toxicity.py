"""Toxicity: what the lists and the classifier catch, what they wrongly catch, words in disguise, MB/s.

    PYTHONPATH=. .venv/bin/python benchmarks/toxicity.py lists LABELLED.jsonl.gz
    PYTHONPATH=. .venv/bin/python benchmarks/toxicity.py classifier LABELLED.jsonl.gz PROSE.jsonl.gz
    PYTHONPATH=. .venv/bin/python benchmarks/toxicity.py disguises
    PYTHONPATH=. .venv/bin/python benchmarks/toxicity.py speed PROSE.jsonl.gz

Lines of LABELLED have `text`, `label` (toxic or ok), `kind` (data set) and `detail` (functional case); lines of PROSE
`text`. Pages are 200 random joins of 20 texts of a group. The classifier is held out by functional case: five folds of
whole cases, so no template of a case is in training and in test; clean sentences of prose are added to training.
"""

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from refinery.pipelines.training.train_toxicity import TrainToxicityParams, toxicity_lines, train_model
from refinery.transforms.core.document import hash64
from refinery.transforms.filter.fasttext_model import open_model
from refinery.transforms.filter.toxic.words import GROUP_NAMES
from refinery.transforms.filter.toxic_sentences import sentences, toxic_line, toxic_share
from refinery.transforms.filter.toxicity import Tables, ToxicityParams, load_lexicon, measure_toxicity

PAGE, PAGES, FOLDS = 20, 200, 5
LISTED = """
asshole blowjob bullshit cumshot cunt fuck fucked fucker fucking gangbang milf motherfucker porn porno shit slut sluts
whore whores
"""
WORDS = LISTED.split()
CYRILLIC = str.maketrans("aceopxyiskh", "асеорхуіѕкһ")
DISGUISES: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "spaces": " ".join,
    "dots": ".".join,
    "hyphens": "-".join,
    "underscores": "_".join,
    "stars between": "*".join,
    "digits": lambda word: word.translate(str.maketrans("aeiost", "431057")),
    "signs": lambda word: word.translate(str.maketrans("aios", "@!0$")),
    "look-alike letters": lambda word: word.translate(CYRILLIC),
    "accents": lambda word: word.translate(str.maketrans("uio", "üíó")),
    "full width": lambda word: "".join(chr(ord(letter) + 0xFEE0) for letter in word),
    "mathematical letters": lambda word: "".join(chr(ord(letter) - 97 + 0x1D41A) for letter in word),
    "second letter five times": lambda word: word[0] + 5 * word[1] + word[2:],
    "all letters twice": lambda word: "".join(2 * letter for letter in word),
    "stars for letters": lambda word: word[0] + "*" * (len(word) - 2) + word[-1],
    "zero-width spaces": "\u200b".join,
    "struck through": lambda word: "".join(f"{letter}\u0336" for letter in word),
}


def read(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def group_of(row: Mapping[str, str]) -> str:
    """Where a row is counted: counter-speech and quotation, and other innocent cases, apart from what is toxic."""
    if row["label"] == "toxic":
        return f"toxic: {row['kind']}"
    cases = {"counter_quote": "quotation", "counter_ref": "counter-speech", "ident": "groups named", "slur": "slurs"}
    return "ok: " + next((name for case, name in cases.items() if row["detail"].startswith(case)), row["detail"])


def by_group(path: Path) -> Mapping[str, list[str]]:
    """Group -> texts."""
    found = defaultdict(list)
    for row in read(path):
        found[group_of(row)].append(row["text"].strip())
    return dict(sorted(found.items()))


def pages(texts: Sequence[str], count: int = PAGES) -> list[str]:
    """Random joins of a group's texts."""
    chosen = random.Random(1)
    return [" ".join(chosen.sample(texts, min(PAGE, len(texts)))) for _ in range(count)]


def share(values: Sequence[bool]) -> str:
    """Per cent, for the table."""
    return f"{100 * sum(values) / len(values):.1f}"


def dropped(text: str, tables: Tables, min_hits: float) -> bool:
    """Whether the lists drop an English text."""
    hits, density = measure_toxicity(text, tables, "en")
    return hits >= min_hits and density > (tables.params.max_density or 0)


def lists(path: Path) -> None:
    """Print what the lists drop by group, and where they hold the name of a group."""
    tables = load_lexicon(ToxicityParams())
    plain = load_lexicon(ToxicityParams(quoted_weight=1.0))
    least = tables.params.min_hits
    print("| texts | number | single, default | single, `min_hits: 1` | pages of 20 | pages, mentions in full |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, texts in by_group(path).items():
        joined = pages(texts)
        cells = [share([dropped(text, tables, hits) for text in texts]) for hits in (least, 1.0)]
        cells += [share([dropped(text, each, least) for text in joined]) for each in (tables, plain)]
        print(f"| {name} | {len(texts)} | {' | '.join(cells)} |")
    named = [name for name in GROUP_NAMES.split() if measure_toxicity(f"{name} people", tables, "en")[0]]
    print(f"\nnames of groups that count: {named}")


def classifier(path: Path, prose: Path) -> None:
    """Print the held-out classifier by group, each text judged by a model that saw no text of its case."""
    rows = [row for row in read(path) if row["kind"] == "functional_test_handwritten"]
    real = [row["text"] for row in read(path) if row["kind"] == "real_comments"]
    clean = [piece for i, row in enumerate(read(prose)) if i % 40 == 0 for piece in sentences(row["text"])[50:70]]
    seen, unseen = clean[::2], clean[1::2]
    found = defaultdict(list)
    params, sizes = TrainToxicityParams(), []
    threshold, limit = ToxicityParams().threshold, ToxicityParams().max_toxic_share
    with TemporaryDirectory() as folder:
        for fold in range(FOLDS):
            train = [row for row in rows if hash64("case", 1, row["detail"]) % FOLDS != fold]
            toxic = [row["text"] for row in train if row["label"] == "toxic"] + real[fold % 2 :: 2]
            innocent = [row["text"] for row in train if row["label"] == "ok"] + seen
            both = set(map(toxic_line, toxic)) & set(map(toxic_line, innocent))  # labelled both ways: left out
            toxic, innocent = ([text for text in texts if toxic_line(text) not in both] for texts in (toxic, innocent))
            data = train_model(toxicity_lines(toxic, innocent, 1), params)
            sizes.append(len(data))
            (file := Path(folder) / f"{fold}.bin").write_bytes(data)
            model = open_model(file)
            tested = [row for row in rows if hash64("case", 1, row["detail"]) % FOLDS == fold]
            texts = [(group_of(row), row["text"]) for row in tested]
            texts += [("toxic: real_comments", text) for text in real[1 - fold % 2 :: 2 * FOLDS]]
            texts += [("ok: prose", text) for text in unseen[fold::FOLDS]]
            for name, text in texts:
                found[name].append(toxic_share(text, model, threshold) > limit)
    print("| texts | number | taken for toxic, held out |\n| --- | --- | --- |")
    for name, values in sorted(found.items()):
        print(f"| {name} | {len(values)} | {share(values)} |")
    print(f"\nmodel: {max(sizes):,} bytes at most")


def disguises() -> None:
    """Print how many of 19 words are found in each disguise, in a sentence."""
    tables = load_lexicon(ToxicityParams())
    off = load_lexicon(ToxicityParams(obfuscation=False))
    print("| disguise | of 19 found | with `obfuscation: false` |\n| --- | --- | --- |")
    for name, disguise in DISGUISES.items():
        cells = []
        for each in (tables, off):
            hits = [measure_toxicity(f"you are a {disguise(word)} and more", each)[0] for word in WORDS]
            cells.append(str(sum(weight > 0 for weight in hits)))
        print(f"| {name} | {' | '.join(cells)} |")


def speed(path: Path) -> None:
    """Print MB/s on prose, best of three rounds of process time, and how much of it is dropped."""
    texts = [row["text"] for i, row in enumerate(read(path)) if i % 5 == 0]
    size = sum(len(text.encode()) for text in texts) / 1e6
    for language in ("en", ""):
        tables, taken = load_lexicon(ToxicityParams()), []
        for _ in range(3):
            start = time.process_time()
            gone = sum(dropped(text, tables, tables.params.min_hits) for text in texts)
            taken.append(time.process_time() - start)
        print(f"{size:.0f} MB, language {language!r}: {size / min(taken):.0f} MB/s, {gone} of {len(texts)} dropped")


def main(arguments: Sequence[str] | None = None) -> None:
    """One of the tables."""
    tables: Mapping[str, Callable[..., None]] = {
        "lists": lists,
        "classifier": classifier,
        "disguises": disguises,
        "speed": speed,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=tables)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args(arguments)
    tables[given.table](*given.files)


if __name__ == "__main__":
    main()
