"""Tokens later: what `refinery tokenize` makes of a corpus of texts is what one run with the tokenizer makes."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.format.entries import FileEntry
from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.publish_manifest import describe_file, seal_listed, whole_payload
from refinery.loader.format.sealed import seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.published.deduplicated import check_deduplicated, read_deduplicated
from refinery.transforms.write import write_shards
from tests.pipelines.code_runs import make_code_inputs
from tests.pipelines.inputs import run
from tests.pipelines.run.tokenizing.text_runs import TEXTS, published, refine, tokenize
from tests.sampling import one_commit_in_four


def plain(prefix: Path, name: str = "manifest.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((prefix / name).read_text())
    return found


def check_same(tokens: Path, direct: Path) -> None:
    """Every published file is that of the run, and the lineage is all that the manifest has beside."""
    assert published(tokens) == published(direct)
    found, expected = plain(tokens), plain(direct)
    assert found.pop("tokenized_from")
    for each in (found, expected):
        del each["sha256"], each["files"]
    assert found == expected


def test_it_is_the_run_with_the_tokenizer(inputs: Path, texts: Path, direct: Path, tmp_path: Path) -> None:
    """Two domains with several shards, validation, copies, cut lines, redacted addresses, columns, rejects."""
    tokenize(texts, inputs, tmp_path / "tokens")
    check_same(tmp_path / "tokens", direct)
    manifest = plain(tmp_path / "tokens")
    assert {shard.split for shard in read_manifest(open_store(str(direct))).shards} == {"train", "validation"}
    rows = [row for path in direct.rglob("*.provenance.parquet") for row in pq.read_table(path).to_pylist()]
    assert any("text_id" in row["meta"] for row in rows) and any(row["pii"] for row in rows)
    text_manifest = plain(texts)
    assert manifest["tokenized_from"] == {
        "name": "small",
        "version": 1,
        "manifest_sha256": _sha256(texts / "manifest.json"),
    }
    assert text_manifest["deduplicated"].keys() == {"a", "b"}
    run("verify", tmp_path / "tokens")
    said = run("trace", tmp_path / "tokens", "--url", "https://b.example/35").stdout
    assert "exact-duplicate" in said
    expected = run("trace", direct, "--url", "https://b.example/35").stdout
    assert said == expected.replace(str(direct), str(tmp_path / "tokens"))
    said = run("inspect", tmp_path / "tokens").stdout
    assert "clean: done, reused from version 1 of the texts small" in said


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_of_lines_by_worker_processes(inputs: Path, lines: Path, direct: Path, tmp_path: Path) -> None:
    tokenize(lines, inputs, tmp_path / "tokens", "--workers", 2)
    check_same(tmp_path / "tokens", direct)


@one_commit_in_four
def test_of_lines_compressed_by_gzip(inputs: Path, direct: Path, tmp_path: Path) -> None:
    texts = refine(inputs, tmp_path / "texts", "--set", "tokenizer=null", "--set", "writer=text-jsonl-gzip")
    tokenize(texts, inputs, tmp_path / "tokens")
    check_same(tmp_path / "tokens", direct)


@pytest.mark.parametrize(
    "settings",
    [
        ["shards.validation=0", "shards.seed=7", "shards.target_bytes=4000", "tokenizer.eos=null"],
        ["sources.a.target=300", "tokenizer.bos=<s>", "packed.length=64", "shards.target_bytes=1000"],
    ],
)
def test_with_settings_of_this_step(settings: list[str], inputs: Path, texts: Path, tmp_path: Path) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    tokenize(texts, inputs, tmp_path / "tokens", *given)
    check_same(tmp_path / "tokens", refine(inputs, tmp_path / "direct", *given))
    run("verify", tmp_path / "tokens")


@one_commit_in_four
def test_of_source_code_with_packed_rows(tmp_path: Path) -> None:
    """Chunks of files become columns of the packed rows."""
    inputs = make_code_inputs(tmp_path / "inputs")
    texts = refine(inputs, tmp_path / "texts", *TEXTS, "--set", "packed=null", "--set", "chunk=null")
    more = ["--bos", "<s>", "--eos", "</s>", "--set", "packed.length=512", "--set", "chunk.budget=256"]
    tokenize(texts, inputs, tmp_path / "tokens", *more)
    direct = refine(inputs, tmp_path / "direct")
    check_same(tmp_path / "tokens", direct)
    assert [stage["name"] for stage in plain(texts)["stages"]][-2:] == ["pii", "text"]
    assert plain(direct)["packed"] and [stage["name"] for stage in plain(direct)["stages"]][-2:] == ["chunk", "encode"]


OWN_STAGE = '''"""Texts in capitals, with a column of the stage's own."""

from dataclasses import replace

from refinery.transforms.core.document import Document
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Stage


class CapitalsParams(Params):
    """Nothing to choose."""


def capitals(doc: Document, params: CapitalsParams) -> Document:
    """The text in capitals."""
    return replace(doc, text=doc.text.upper(), meta={**doc.meta, "letters": len(doc.text)})


CAPITALS = Stage(
    name="capitals",
    version=1,
    summary="Write texts in capitals.",
    params=CapitalsParams,
    judge=capitals,
    notes=(Note("letters", int, "letters of the text", column=True),),
)
'''


@one_commit_in_four
def test_a_recipe_with_a_stage_of_its_own_is_named(inputs: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(inputs, tmp_path / "mine")
    (mine / "capitals.py").write_text(OWN_STAGE)
    recipe = yaml.safe_load((mine / "recipe.yaml").read_text())
    recipe["stages"] = [{"use": "capitals:CAPITALS", "after": "pii"}]
    (mine / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    texts = refine(mine, tmp_path / "texts", *TEXTS)
    said = tokenize(texts, inputs, tmp_path / "tokens", check=False)
    assert "name the recipe's file with --recipe" in said
    tokenize(texts, inputs, tmp_path / "tokens", "--recipe", mine / "recipe.yaml")
    check_same(tmp_path / "tokens", refine(mine, tmp_path / "direct"))
    assert "letters" in [column["name"] for column in plain(tmp_path / "tokens")["columns"]]
    said = tokenize(texts, inputs, tmp_path / "x", "--recipe", inputs / "recipe.yaml", check=False)
    assert "stages [] given, " in said and "expected by the corpus" in said


def test_a_stopped_command_goes_on(
    inputs: Path, texts: Path, direct: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops at the third shard, then before the manifest, and then it ends."""
    output = tmp_path / "tokens"
    words = ["tokenize", str(texts), "--tokenizer", str(inputs / "tokenizer.json"), "--output", str(output)]
    words += ["--workers", "0", "--quiet"]
    written = []
    write_shard = write_shards.write_shard

    def stop(key: bytes, *more: Any, **options: Any) -> Any:
        written.append(key)
        if len(written) > 2:
            raise OSError("stopped")
        return write_shard(key, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(write_shards, "write_shard", stop)
        assert execute(words) != 0
    assert not (output / "manifest.json").exists() and list(output.rglob("*.bin"))
    with monkeypatch.context() as patch:
        patch.setattr("refinery.pipelines.run.publish.make_manifest", lambda payload: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            execute(words)
    assert not (output / "manifest.json").exists()
    assert execute(words) == 0
    check_same(output, direct)
    assert "nothing to do" in tokenize(texts, inputs, output)


def newer(texts: Path, folder: Path) -> Path:
    """The corpus again with another manifest, as after a takedown."""
    shutil.copytree(texts, folder)
    payload = {**unseal((folder / "manifest.json").read_bytes(), ""), "note": 1}
    (folder / "manifest.json").write_bytes(seal(payload))
    return folder


def test_another_version_of_the_texts_goes_elsewhere(inputs: Path, texts: Path, tmp_path: Path) -> None:
    tokenize(texts, inputs, tmp_path / "tokens")
    said = tokenize(newer(texts, tmp_path / "newer"), inputs, tmp_path / "tokens", check=False)
    assert "of version 1 of the texts small" in said and "with another --output" in said
    said = run("refine", inputs / "recipe.yaml", "--output", tmp_path / "tokens", "--workers", 0, check=False).stderr
    assert "it was made by `refinery tokenize` of version 1 of the texts small" in said
    said = run(
        "retokenize", tmp_path / "tokens", "--tokenizer", inputs / "tokenizer.json", "--output", tmp_path / "x",
        check=False,
    ).stderr  # fmt: skip
    assert "`refinery tokenize` made it of the texts small: run that on them" in said


def test_after_a_takedown_of_the_texts(inputs: Path, texts: Path, direct: Path, tmp_path: Path) -> None:
    """The new version's tokens are those that a takedown of the tokens leaves: a duplicate that came back, too."""
    rows = [row for path in texts.glob("train/web/*.parquet") for row in pq.read_table(path).to_pylist()]
    ids = [row["id"].hex() for row in rows if row["copies"] > 1][:2] + [row["id"].hex() for row in rows][-2:]
    (tmp_path / "ids").write_text("\n".join(ids) + "\n")
    for corpus, name in ((texts, "texts"), (direct, "direct")):
        run("remove", corpus, "--documents", tmp_path / "ids", "--output", tmp_path / name, "--copies", "keep")
    tokenize(tmp_path / "texts", inputs, tmp_path / "tokens")
    left_out = ("statistics.json", "takedowns")
    expected = {name: sha for name, sha in published(tmp_path / "direct").items() if not name.startswith(left_out)}
    assert {name: sha for name, sha in published(tmp_path / "tokens").items() if name not in left_out} == expected
    manifest = plain(tmp_path / "tokens")
    assert manifest["tokenized_from"]["version"] == 2 and "takedowns" not in manifest
    assert [stage["name"] for stage in manifest["stages"]][-2:] == ["takedown-of-texts", "encode"]
    run("verify", tmp_path / "tokens")
    said = run("trace", tmp_path / "tokens", "--id", ids[-1], check=False).stdout
    assert "not found" in said and "trace it in version 2 of the texts small" in said
    assert plain(tmp_path / "texts")["deduplicated"] == plain(texts)["deduplicated"]
    run("verify", tmp_path / "texts")
    assert f"{manifest['totals']['documents']} documents" in (tmp_path / "texts" / "README.md").read_text()


def test_a_damaged_shard_is_one_error(inputs: Path, texts: Path, tmp_path: Path) -> None:
    shutil.copytree(texts, tmp_path / "texts")
    shard = sorted((tmp_path / "texts" / "train").rglob("*.parquet"))[0]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    said = tokenize(tmp_path / "texts", inputs, tmp_path / "tokens", "--quiet", check=False)
    assert said.count("\n") == 1 and shard.name in said and "crc32c" in said
    assert not (tmp_path / "tokens" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "pii.action=drop"], "--set pii: given, tokenizer, shards, packed, failures, run and sources.NAME"),
        (["--set", "sources.a.paths=[x]"], "everything else decided the texts"),
        (["--eos", "<|nowhere|>"], "tokenizer.eos: '<|nowhere|>' given, which is not a token of it"),
    ],
)
def test_what_decided_the_texts_stays(more: list[str], message: str, inputs: Path, texts: Path, tmp_path: Path) -> None:
    assert message in tokenize(texts, inputs, tmp_path / "x", *more, check=False)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("key", ["shards", "stages", "environment"])
def test_a_forged_record_of_the_run_is_one_error(key: str, inputs: Path, texts: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(texts, tmp_path / "texts")
    run_record = unseal((folder / "_run.json").read_bytes(), "")
    del (run_record["recipe"] if key == "shards" else run_record)[key]
    (folder / "_run.json").write_bytes(seal(run_record))
    payload = whole_payload(open_store(str(folder)))
    record = describe_file(replace(file_of(payload), **checksums(folder / "_run.json")._asdict()))
    files = [record if file["path"] == "_run.json" else file for file in payload["files"]]
    sealed, listings = seal_listed({**payload, "files": files})
    for path, data in {**listings, "manifest.json": sealed}.items():
        (folder / path).write_bytes(data)
    said = tokenize(folder, inputs, tmp_path / "x", check=False)
    assert "_run.json: its fields are not as a run writes them" in said and said.count("\n") == 1


def file_of(payload: dict[str, Any]) -> FileEntry:
    return FileEntry(**next(file for file in payload["files"] if file["path"] == "_run.json"))


def test_tokens_are_no_texts(inputs: Path, texts: Path, direct: Path, tmp_path: Path) -> None:
    assert "a corpus of tokens, a corpus of texts is expected" in tokenize(direct, inputs, tmp_path / "x", check=False)
    words = ["retokenize", texts, "--tokenizer", inputs / "tokenizer.json", "--output", tmp_path / "x"]
    assert "a corpus of texts: `refinery tokenize`" in run(*words, check=False).stderr


@pytest.mark.parametrize("key", ["packed.length=64", "sources.a.target=9", "tokenizer.path=x"])
def test_a_recipe_of_texts_says_where_tokens_belong(key: str, inputs: Path, tmp_path: Path) -> None:
    words = ["refine", inputs / "recipe.yaml", "--output", tmp_path / "x", *TEXTS, "--set", key]
    said = run(*words, check=False).stderr
    assert "given beside `writer: text`" in said and "`refinery tokenize` takes it later" in said


def test_verify_holds_the_shards_to_what_was_kept(texts: Path) -> None:
    manifest = read_manifest(open_store(str(texts)))
    assert list(check_deduplicated(manifest)) == []
    kept = read_deduplicated(manifest)
    funnel = [row for row in manifest.funnel if row["stage"] == "exact-duplicates"]
    assert kept == {row["source"]: row["kept"] for row in funnel}


@pytest.mark.parametrize(("source", "bytes_"), [("a", 1), ("z", 5)])
def test_verify_finds_what_was_not_kept(source: str, bytes_: int, texts: Path, tmp_path: Path) -> None:
    shutil.copytree(texts, tmp_path / "texts")
    payload = unseal((texts / "manifest.json").read_bytes(), "")
    payload["deduplicated"][source] = {"documents": 3, "bytes": bytes_}
    (tmp_path / "texts" / "manifest.json").write_bytes(seal(payload))
    said = run("verify", tmp_path / "texts", check=False).stdout
    assert "manifest.json: deduplicated is" in said and "expected from the funnel" in said
