"""Language identification: how fast, how right, and which thresholds are fair.

    .venv/bin/python benchmarks/language.py speed PROSE.jsonl.gz      # microseconds per document, kernel and fastText
    .venv/bin/python benchmarks/language.py thresholds LABELLED.jsonl.gz    # THRESHOLDS of language_data.py
    .venv/bin/python benchmarks/language.py accuracy LABELLED.jsonl.gz      # the table of docs/benchmarks/languages.md

Lines of LABELLED have `text` and `lang`, an ISO 639-3 code, and may have `lang_macro`, that of its macrolanguage.

The threshold of a language is the highest multiple of 0.05, up to the 0.65 of FineWeb, from which on 95 % of the texts
that are rightly labelled as it are kept. Where fewer than two in three texts that pass are of that language or a
relative, among languages that the model knows and each of them equally frequent, it is the lowest multiple above at
which they are (again up to 0.65). Languages with fewer than 10 rightly labelled texts get the median of the thresholds
below 0.65. Held out: five folds by a hash of the text, thresholds from four of them, the share kept in the fifth.
"""

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refinery.transforms.core.document import hash64
from refinery.transforms.filter.fasttext_model import OriginalModel, load_model
from refinery.transforms.filter.language import LanguageParams, bundled_model, identify, model_line, read_labels
from refinery.transforms.filter.language_data import THRESHOLDS, UNIVERSAL

KEPT, PRECISION, FEWEST, FOLDS = 0.95, 2 / 3, 10, 5
STEPS = [step * 5 / 100 for step in range(2, 14)]  # 0.1 to 0.65

# Label of lid.176 and the ISO 639-3 code (of the macrolanguage, where texts are labelled so).
_PAIRS = """
af afr als gsw am amh an arg ar ara arz arz as asm ast ast av ava az aze azb azb ba bak bar bar bcl bcl be bel
bg bul bh bho bn ben bo bod bpy bpy br bre bs bos bxr bua ca cat cbk cbk ce che ceb ceb ckb ckb co cos cs ces cv chv cy
cym da dan de deu diq zza dsb dsb dty dty dv div el ell eml eml en eng eo epo es spa et est eu eus fa fas fi fin fr fra
frr frr fy fry ga gle gd gla gl glg gn grn gom kok gu guj gv glv he heb hi hin hif hif hr hrv hsb hsb ht hat hu hun hy
hye ia ina id ind ie ile ilo ilo io ido is isl it ita ja jpn jbo jbo jv jav ka kat kk kaz km khm kn kan ko kor krc krc
ku kur kv kom kw cor ky kir la lat lb ltz lez lez li lim lmo lmo lo lao lrc lrc lt lit lv lav mai mai mg mlg mhr mhr
min min mk mkd ml mal mn mon mr mar mrj mrj ms msa mt mlt mwl mwl my mya myv myv mzn mzn nah nah nap nap nds nds ne nep
new new nl nld nn nno no nor oc oci or ori os oss pa pan pam pam pfl pfl pl pol pms pms pnb pnb ps pus pt por qu que rm
roh ro ron ru rus rue rue sa san sah sah sc srd scn scn sco sco sd snd sh hbs si sin sk slk sl slv so som sq sqi sr srp
su sun sv swe sw swa ta tam te tel tg tgk th tha tk tuk tl fil tr tur tt tat tyv tyv ug uig uk ukr ur urd uz uzb vec
vec vep vep vi vie vls vls vo vol wa wln war war wuu wuu xal xal xmf xmf yi yid yo yor yue yue zh zho"""
ISO = _PAIRS.split()
CODES = dict(zip(ISO[1::2], ISO[::2], strict=True))


@dataclass(frozen=True)
class Text:
    """A labelled text and what the model says of it."""

    fold: int
    lang: str
    code: str  # as the model would label it, "" where it does not know the language
    label: str
    alone: float  # probability of the label
    score: float  # of the label and its relatives
    members: frozenset[str]  # the label and its relatives

    @property
    def right(self) -> bool:
        """Whether the label is that of the text's language."""
        return self.label == self.code


def read(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def texts_of(path: Path) -> list[Text]:
    """All labelled texts, as the stage sees them."""
    model, params = read_labels(load_model(bundled_model())), LanguageParams(threshold=0.0)
    found = []
    for row in read(path):
        code = CODES.get(row["lang"], CODES.get(row.get("lang_macro", ""), ""))
        line = model_line(row["text"], params.max_chars)
        best = identify(line, model, 0.0)
        if best is not None:
            fold = hash64("fold", 1, row["text"]) % FOLDS
            found.append(Text(fold, row["lang"], code, best.code, best.alone, best.score, frozenset(best.members)))
    return found


def least_kept(texts: Iterable[Text]) -> Mapping[str, float]:
    """The threshold of each label, from these texts."""
    texts = list(texts)
    sizes = Counter(text.lang for text in texts)
    found: dict[str, float] = {}
    for label in sorted({text.code for text in texts} - {""}):
        labelled = [text for text in texts if text.label == label and text.code]
        right = [text.score for text in labelled if text.right]
        if len(right) < FEWEST:
            continue

        def precision(step: float, labelled: Sequence[Text] = labelled) -> float:
            passing = [(1 / sizes[text.lang], text.code in text.members) for text in labelled if text.score >= step]
            total = sum(weight for weight, _ in passing)
            return sum(weight for weight, good in passing if good) / total if total else 1.0

        fair = [step for step in STEPS if sum(score >= step for score in right) >= KEPT * len(right)]
        threshold = max(fair, default=STEPS[0])
        precise = [step for step in STEPS if step >= threshold and precision(step) >= PRECISION]
        found[label] = min(precise, default=UNIVERSAL)
    return found


def completed(found: Mapping[str, float]) -> dict[str, float]:
    """`found`, and for all other labels of the model the median of those below UNIVERSAL."""
    middle = statistics.median_low(sorted(step for step in found.values() if step < UNIVERSAL))
    return {code: found.get(code, middle) for code in sorted(ISO[::2])}


def thresholds(path: Path) -> None:
    """Print the table, labels by threshold."""
    texts = texts_of(path)
    found = least_kept(texts)
    table = completed(found)
    for step in sorted(set(table.values())):
        print(f'{step:.2f}: "{" ".join(code for code in table if table[code] == step)}",')
    print(f"not measured: {' '.join(sorted(set(table) - set(found)))}")


def share(values: Iterable[bool]) -> str:
    """Per cent, for the table."""
    values = list(values)
    return f"{100 * sum(values) / len(values):.0f}" if values else ""


def accuracy(path: Path) -> None:
    """Print the table by language: every number but n in per cent."""
    texts = texts_of(path)
    sizes = Counter(text.lang for text in texts)
    folds = [completed(least_kept(text for text in texts if text.fold != fold)) for fold in range(FOLDS)]
    total: dict[str, list[bool]] = {"before": [], "now": [], "held out": []}
    print("| language | texts | rightly labelled | kept at 0.65 | threshold | kept | held out | precision |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for code in sorted({text.code for text in texts} - {""}):
        own = [text for text in texts if text.code == code]
        right = [text for text in own if text.right]
        kept = [text.score >= THRESHOLDS[code] for text in right]
        held = [text.score >= folds[text.fold][code] for text in right]
        for name, values in zip(total, ([text.alone >= UNIVERSAL for text in right], kept, held), strict=True):
            total[name] += values
        passing = [text for text in texts if text.label == code and text.code and text.score >= THRESHOLDS[code]]
        weight = sum(1 / sizes[text.lang] for text in passing)
        good = sum(1 / sizes[text.lang] for text in passing if text.code in text.members)
        print(
            f"| {code} | {len(own)} | {share(text.right for text in own)} "
            f"| {share(text.alone >= UNIVERSAL for text in right)} | {THRESHOLDS[code]:.2f} | {share(kept)} "
            f"| {share(held)} | {100 * good / weight if weight else 0:.0f} |"
        )
    known = sum(bool(text.code) for text in texts)
    print(f"\nall {known} texts: " + ", ".join(f"{name} {share(values)} %" for name, values in total.items()))


def speed(path: Path, documents: int = 1_500, rounds: int = 5) -> None:
    """Print microseconds per document of 1,000 characters: medians of interleaved rounds, process time."""
    texts = [row["text"] for row in read(path) if len(row["text"]) >= 1_000][:documents]
    lines = [model_line(text, 1_000) for text in texts]
    kernel, original = load_model(bundled_model()), OriginalModel(bundled_model())
    known = read_labels(kernel)
    runs: dict[str, Callable[[str], object]] = {
        "fastText": lambda line: original.predict(line, 1, 0.65),
        "kernel": lambda line: kernel.predict(line, 1, 0.65),
        "kernel, line and relatives": lambda text: identify(model_line(text, 1_000), known, 0.65),
    }
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            for line in lines:
                run(line)
            taken[name].append((time.process_time() - start) / len(lines) * 1e6)
    print(f"{len(lines)} documents: " + ", ".join(f"{name} {statistics.median(taken[name]):.1f} µs" for name in runs))
    different = sum(
        kernel.predict(line, k, least) != original.predict(line, k, least)
        for line in lines
        for k, least in ((1, 0.65), (-1, 0.0))
    )
    print(f"different answers: {different}; labels: {len(kernel.labels)}")


def main(arguments: Sequence[str]) -> None:
    """One of the three tables."""
    tables = {"speed": speed, "thresholds": thresholds, "accuracy": accuracy}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=tables)
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    tables[given.table](given.file)


if __name__ == "__main__":
    main(sys.argv[1:])
