"""What every declared stage makes of fixed inputs, as a digest for its version: `python -m tests.golden` writes them.

A stage whose output changes needs a new version in its declaration, since fingerprints name versions, not code. The
inputs are made here and do not pass through other stages, so that a change of one stage shows in that stage alone.
"""

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson

from refinery.pipelines.recipe.load_recipe import with_writer
from refinery.pipelines.recipe.recipe import DEFAULT_LANE, find_lane, lane_names
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop, RawDocument
from refinery.transforms.core.lane import Lane
from refinery.transforms.core.params import is_optional
from refinery.transforms.core.stage import Note, Sink, Stage
from refinery.transforms.dedup.cut_lines import CUT_LINES, hash_lines
from refinery.transforms.dedup.cut_substrings import CUT_SUBSTRINGS
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures
from refinery.transforms.dedup.stages import URL_DUPLICATES, UrlDupParams
from refinery.transforms.filter.quality import classifier_text
from refinery.transforms.filter.rules.keep import bind_notes
from refinery.transforms.read.plan import SourceParams
from refinery.transforms.read.sources import plan_sources, read_task
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.shards import ShardsJob, provenance_columns
from refinery.transforms.write.shuffle import ShardParams, shard_counts
from refinery.transforms.write.text_writers import TEXT_WRITERS
from tests.beam import run_and_collect
from tests.golden_inputs import ODD, demo_crawl, documents, pages, raw_documents
from tests.transforms.code.source_files import source_files
from tests.transforms.dedup_oracle import SOURCES
from tests.transforms.dedup_parts import decide
from tests.transforms.filter.fasttext_files import train_labelled
from tests.transforms.rights import rights_files
from tests.transforms.tokenize.chat import golden_chats
from tests.transforms.tokenizer_files import all_pairs, byte_level_spec, sentencepiece_model, write

FILE = Path(__file__).parent / "golden.json"

Output = Any


def source_text_outputs(stage: Stage[Any]) -> Iterator[Output]:
    """Texts and undecoded bytes, with both kinds of line ends, and what is no text."""
    contents = [text.replace("\n", "\r\n").encode(("utf-8", "utf-16")[i % 2]) for i, text in enumerate(ODD)]
    contents += [*ODD, b"\x89PNG\0\0", "a\0b", "\ufeffint a;\rint b;\r\n"]
    raw = [RawDocument(content, False, "", "u", "s", f"f@{i}", i) for i, content in enumerate(contents)]
    return judged(stage, raw, stage.params(), stage.params(line_feeds=False))


def chunk_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    tokenizer = write(folder / "tokenizer.json", byte_level_spec(all_pairs("abcde rst")))
    variants = ({}, {"budget": 64}, {"budget": 256, "emit": "chunks"})
    return judged(stage, source_files(), *(stage.params(tokenizer=tokenizer, **each) for each in variants))


def plain(answer: Output) -> Any:
    """An answer of a stage as JSON."""
    if isinstance(answer, Drop):
        return ["drop", answer.reason]
    if isinstance(answer, Answer):  # a number is in meta, too
        inner = plain(answer.result)
        return inner if answer.series else ["finding", list(answer.found), inner]
    if isinstance(answer, Document):
        return ["document", answer.id.hex(), answer.text, answer.url, answer.origin, dict(answer.meta)]
    if isinstance(answer, EncodedDocument):
        return ["tokens", answer.id.hex(), answer.tokens.tolist(), answer.tokens.dtype.str, answer.text_bytes]
    if isinstance(answer, np.ndarray):
        return [answer.dtype.str, answer.tolist()]
    return answer


def digest(answers: Iterable[Output]) -> str:
    found = hashlib.sha256()
    for answer in answers:
        found.update(orjson.dumps(plain(answer), option=orjson.OPT_SORT_KEYS) + b"\n")
    return found.hexdigest()


def judged(stage: Stage[Any], inputs: Iterable[Any], *variants: Any) -> Iterator[Output]:
    """What a stage that judges single documents says, for its defaults and these other parameters."""
    assert stage.judge is not None and stage.params is not None
    docs = list(inputs)
    for params in variants:
        resource = (stage.prepare(params),) if stage.prepare else ()
        for doc in docs:
            yield from answers_to(stage, doc, resource, params)


def answers_to(stage: Stage[Any], doc: Any, resource: tuple[Any, ...], params: Any) -> list[Output]:
    """What it makes of one document: several of one that it splits."""
    assert stage.judge is not None
    try:
        answer = stage.judge(doc, *resource, params=params)
        return list(answer) if stage.splits and not isinstance(answer, Drop) else [answer]
    except Exception as error:  # noqa: BLE001 - a dead letter is an answer, too
        return [["dead", type(error).__name__]]


def read_outputs(folder: Path) -> Iterator[Output]:
    demo_crawl.write_all(folder, 60, 3)
    crawl = SourceParams(name="crawl", paths=("crawl-*.warc.gz",), format="warc")
    notes = SourceParams(name="notes", paths=("notes.jsonl.gz",), sample=0.5, meta_fields=("title",))
    rows = 'id,text,url\n1,"a ""quoted"" text,\nof two lines",https://a.example\n2,short\n3,last,\n'
    (folder / "rows.csv").write_text(rows)
    (folder / "rows.tsv").write_text(rows.replace(",", "\t"))
    (folder / "plain.txt").write_text("One paragraph\nof two lines.\n\nAnother.\n")
    forms = ({"created": "2024"}, {})  # Dolma's and datatrove's
    lines = ({"id": "7", "text": "text", **form, "metadata": {"url": "u", "date": "2023"}} for form in forms)
    (folder / "forms.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    others = [SourceParams(name="others", paths=("rows.csv", "rows.tsv", "forms.jsonl", "plain.txt"), id_field="id")]
    others += [SourceParams(name=unit, paths=("plain.txt",), unit=unit) for unit in ("paragraph", "line")]
    with contextlib.chdir(folder):  # a sample is chosen by the hash of a path
        for task in plan_sources((crawl, notes, *others)):
            for record in read_task(task):
                fields = {name: getattr(record, name) for name in record.__slots__}
                if isinstance(fields.get("content"), bytes):
                    fields["content"] = hashlib.sha256(fields["content"]).hexdigest()
                fields["data"] = len(fields.get("data", b""))
                yield type(record).__name__, {**fields, "meta": dict(fields.get("meta", {}))}


def extract_outputs(stage: Stage[Any]) -> Iterator[Output]:
    raw = list(raw_documents())
    yield from judged(stage, [*raw, *rights_files.pages()], stage.params())
    yield from judged(stage, raw, stage.params(output="markdown", list_bullets=False))
    yield from judged(stage, raw[::10], stage.params(engine="trafilatura", seconds=60.0))


def encode_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    bpe = write(folder / "tokenizer.json", byte_level_spec(all_pairs("abcde rst")))
    (folder / "pieces.model").write_bytes(sentencepiece_model())
    yield from judged(stage, documents(), stage.params(path=bpe))
    yield from judged(stage, documents()[::5], stage.params(path=str(folder / "pieces.model"), bos="auto"))


def quality_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    from refinery.pipelines.training.train_quality import TrainQualityParams, train_quality

    texts = list({classifier_text(doc.text, 10_000): doc.text for doc in documents() if len(doc.text) > 200}.values())
    train_quality(texts[::2], texts[1::2], str(folder / "quality.bin"), TrainQualityParams(epochs=2))
    model = str(folder / "quality.bin")
    several = ({"name": "a", "model": model, "bins": (0.4, 0.5)}, {"name": "b", "model": model, "normalise": False})
    yield from judged(
        stage,
        documents(),
        stage.params(model=model, threshold=0.45),
        stage.params(classifiers=several, keep="any"),
        stage.params(name="a", model=model, rule="pareto", alpha=2),
    )


def labels_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    """A classifier of four labels, once of texts as they are and of sure answers alone."""
    texts = [doc.text for doc in documents() if len(doc.text) > 200][:40]
    model = folder / "labels.bin"
    train_labelled(model, {f"label-{i}": texts[i::4] for i in range(4)}, repeat=2)
    models = (
        {"name": "a", "model": str(model)},
        {"name": "b", "model": str(model), "normalise": False, "min_score": 0.6},
    )
    yield from judged(stage, documents(), stage.params(models=models))


def keep_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    """Rules over lengths, thresholds by language and draws; documents are in turn of three languages and none."""
    (folder / "lengths.csv").write_text("language,least\nen,700\nde,300\n")
    languages = ("en", "de", "fr", "")
    docs = [
        replace(doc, meta={**doc.meta, "language": languages[i % 4], "edu": i % 11 / 10})
        for i, doc in enumerate(documents())
    ]
    params = stage.params(
        rule="text_bytes >= least or edu > 0.7 and language != 'de' or lot or some",
        thresholds={"least": {"file": str(folder / "lengths.csv")}},
        draws={"lot": {"score": "edu", "alpha": 2}, "some": {"share": 0.1}},
    )
    yield from judged(stage, docs, bind_notes(params, (Note("language", str, ""), Note("edu", float, ""))))


def perplexity_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, train_perplexity

    model = str(folder / "model.ngrams")
    train_perplexity([doc.text for doc in documents()[::2]], model, TrainPerplexityParams())
    yield from judged(stage, documents(), stage.params(models={"*": model}, lowest=5.0))


def url_outputs(stage: Stage[Any]) -> Iterator[Output]:
    """With the built-in words, and with lists that name some of the pages' hosts."""
    hosts = sorted({page.url.split("/")[2] for page in pages()})
    listed = stage.params(
        blocked_domains=(hosts[0], f"*.{hosts[1]}", "example"), blocked_patterns=("(?i)/[a-c][^/]*$",), soft_limit=1
    )
    sub = replace(documents()[0], url="https://deep.below.blocked.co.uk/page")
    names = stage.params(blocked_domains=("below.blocked.co.uk", hosts[2]))
    return judged(stage, [*documents(), sub], stage.params(), listed, names)


def heuristics_outputs(stage: Stage[Any]) -> Iterator[Output]:
    """With all sets of rules, and with each alone."""
    sets = [name for name, each in stage.params.model_fields.items() if is_optional(each.annotation)]
    alone = [stage.params(**{name: name == chosen or None for name in sets}) for chosen in sets]
    return judged(stage, documents(), stage.params(), *alone)


def decontaminate_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    """Dropped and cut, for items out of the middle of some pages, short questions, and symbols."""
    texts = [doc.text for doc in documents() if len(doc.text) > 600][::3]
    items = [{"id": i, "question": text[200:400], "answer": text[450:500]} for i, text in enumerate(texts)]
    items += [{"question": " ".join(text.split()[3:12])} for text in texts[::2]] + [{"question": "[ ( { < > } ) ] ="}]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    odd = [replace(documents()[0], text=text) for text in ("see [({<>})]= here", "漢字かな " * 40)]
    files = ({"path": str(folder / "items.jsonl")},)
    variants = ({}, {"action": "cut"}, {"action": "cut", "margin": 20, "min_chars": 10, "max_items": 1})
    return judged(stage, [*documents(), *odd], *(stage.params(benchmarks=files, **each) for each in variants))


def opt_out_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    table = {"tables": (rights_files.write_table(folder),)}
    variants = ({"as_of": "2026-02-01"}, {"hosts": ("free.example",), "every_agent": False, "ignore": ("page",)})
    return judged(stage, rights_files.documents(), *(stage.params(**table, **each) for each in ({}, *variants)))


def lines_outputs(stage: Stage[Any]) -> Iterator[Output]:
    cut = [
        Document(doc.id, doc.text, doc.url, doc.source, doc.origin, doc.position, {CUT_LINES: "0,2"})
        for doc in documents()
        if doc.text.count("\n") > 3
    ]
    return judged(stage, cut, stage.params(), stage.params(min_chars=0))


def substrings_outputs(stage: Stage[Any]) -> Iterator[Output]:
    cut = [
        Document(
            doc.id, doc.text, doc.url, doc.source, doc.origin, doc.position, {CUT_SUBSTRINGS: "3-40,45-90", **more}
        )
        for doc in documents()
        for more in ({}, {CUT_LINES: "0"})
        if len(doc.text) > 90
    ]
    return judged(stage, cut, stage.params(), stage.params(min_chars=0), stage.params(action="drop"))


def dedup_outputs(stage: Stage[Any], folder: Path) -> Iterator[Output]:
    """Verdicts of the whole of phase 2, as far as they are this stage's."""
    near = NearParams(verify="exact" if stage.name.startswith("near-") else "signature")
    docs = [doc for doc in documents() if doc.text]
    params = DedupParams(True, near, {"*": near})
    if stage is URL_DUPLICATES:
        params = replace(params, urls=UrlDupParams())
        later = {"date": "2024-02-03T04:05:06Z"}
        docs += [replace(d, url=f"{d.url}?utm_id=1", origin=f"{d.origin}+", meta=later) for d in docs[::2] if d.url]
    reason = stage.reasons[0].name
    for origin, row in sorted(decide(folder / "parts", docs, params).items()):
        if row["reason"] in ("", reason):
            yield origin, row["reason"], row["copies"], row["kept_id"] and row["kept_id"].hex(), row["similarity"]


def parts_outputs() -> Iterator[Output]:
    """Signatures, hashes of lines and ranks."""
    texts = [doc.text for doc in documents()]
    for params in (SignatureParams(), SignatureParams(unit="character", ngram=9, permutations=20, seed=5)):
        yield from compute_signatures(texts, params)
    yield from hash_lines(texts).to_pylist()
    for prefer in ("longest", "newest", "first"):
        yield from (rank_key(doc, 3, RankParams(prefer=prefer)).hex() for doc in documents())  # type: ignore[arg-type]


def writer_outputs(lane: Lane, folder: Path) -> Iterator[Output]:
    """Every published byte of a small corpus."""
    params = ShardParams(target_bytes=100_000, validation=0.1)
    counts = shard_counts({"web": {"documents": 150, "bytes": 400_000}}, params)
    columns = provenance_columns((*lane.fields, *(note for note in lane.notes if note.column)))
    dtype, most, kind = ("uint16", 5000, np.uint16) if lane.writer.counts_tokens else ("", None, np.uint8)
    job = ShardsJob(params, counts, dict.fromkeys(SOURCES, "web"), dtype, columns, str(folder), writer=lane.writer)
    docs = [
        EncodedDocument(
            id=doc.id,
            tokens=np.frombuffer(doc.text.encode()[:most] or b"x", np.uint8).astype(kind),
            source=doc.source,
            url=doc.url,
            origin=doc.origin,
            text_bytes=len(doc.text.encode()),
            meta={"language": "en", "language_score": 0.5, "copies": 1, "copy_sources": doc.source, "pii": 2},
        )
        for doc in documents()
    ]

    def build(pipeline: Any) -> list[Any]:
        import apache_beam as beam

        from refinery.transforms.write.write_shards import write_corpus

        made = pipeline | beam.Create(docs)
        made.element_type = EncodedDocument
        return [write_corpus(made, job)]

    run_and_collect(build)
    for path in sorted(folder.rglob("shard-*")):
        yield path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()


def outputs(lane: Lane, part: Stage[Any] | Sink, folder: Path) -> Iterator[Output]:
    """What a declared part makes of the fixed inputs. A stage without an entry judges documents with its defaults."""
    special: Mapping[str, Callable[[Any], Iterator[Output]]] = {
        "read": lambda _: read_outputs(folder),
        "extract": extract_outputs,
        "encode": lambda stage: encode_outputs(stage, folder),
        "chat": lambda stage: golden_chats.chat_outputs(stage, folder),
        "encode-masked": lambda stage: golden_chats.encode_masked_outputs(stage, folder),
        "quality": lambda stage: quality_outputs(stage, folder),
        "keep": lambda stage: keep_outputs(stage, folder),
        "labels": lambda stage: labels_outputs(stage, folder),
        "perplexity": lambda stage: perplexity_outputs(stage, folder),
        "heuristics": heuristics_outputs,
        "url": url_outputs,
        "lines": lines_outputs,
        "source-text": source_text_outputs,
        "chunk": lambda stage: chunk_outputs(stage, folder),
        "code-heuristics": lambda stage: judged(stage, source_files(), stage.params()),
        "license": lambda stage: judged(stage, source_files(), stage.params(), stage.params(weak_copyleft=False)),
        "decontaminate": lambda stage: decontaminate_outputs(stage, folder),
        "substrings": substrings_outputs,
        "opt-out": lambda stage: opt_out_outputs(stage, folder),
        "page-license": lambda stage: judged(
            stage, rights_files.documents(), stage.params(allow=("CC-BY",)), stage.params(undeclared="drop")
        ),
        **{stage.name: lambda stage: dedup_outputs(stage, folder) for stage in lane.dedup},
        lane.parts.name: lambda _: parts_outputs(),
        lane.writer.name: lambda _: writer_outputs(lane, folder),
    }
    if part.name in special:
        return special[part.name](part)
    assert isinstance(part, Stage) and part.params is not None
    return judged(part, documents(), part.params())


def parts() -> dict[str, tuple[Lane, Stage[Any] | Sink]]:
    """Name -> lane and declaration of every stage, and of what ends a phase."""
    lanes = [find_lane(name) for name in lane_names()]
    own = {part.name: (lane, part) for lane in lanes for part in (*lane.stages, lane.parts, lane.writer)}
    web = find_lane(DEFAULT_LANE)
    return own | {name: (with_writer(web, {"writer": name})[0], each) for name, each in TEXT_WRITERS.items()}


def inputs() -> str:
    """A digest of the fixed inputs: where they change, every digest may."""
    raw = [[doc.content if isinstance(doc.content, str) else doc.content.hex(), doc.origin] for doc in raw_documents()]
    return digest([*documents(), *raw, *source_files()])


def golden(name: str) -> dict[str, Any]:
    """The version of a part, and the digest of its outputs."""
    lane, part = parts()[name]
    with TemporaryDirectory(prefix="golden-") as folder:
        return {"version": part.version, "sha256": digest(outputs(lane, part, Path(folder)))}


def main() -> None:
    """Write the digests of new parts and new versions; refuse where the output changed and the version did not."""
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    after: dict[str, Any] = {"inputs": inputs(), **{name: golden(name) for name in sorted(parts())}}
    same = before.get("inputs") == after["inputs"]
    stale = [name for name in parts() if same and name in before and is_unversioned(before[name], after[name])]
    if stale:
        sys.exit(f"the output of {', '.join(stale)} changed: raise the version in the declaration, then run this again")
    FILE.write_text(json.dumps(after, indent=1) + "\n")


def is_unversioned(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the output changed without the version."""
    return bool(before["version"] == after["version"] and before["sha256"] != after["sha256"])


if __name__ == "__main__":
    main()
