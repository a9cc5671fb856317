"""The commands in the comments of the funnels' recipes, as they stand there: from a crawl to a fake Cloud Storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.recipe_commands import RECIPES, commands_of
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.fork_server import fork_server
from tests.pipelines.small_runs import check_corpus
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR
from tests.transforms.filter.fasttext_files import train_labelled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

BUCKET = "corpora"
GERMAN = "Die alte Bahn fuhr den Fluss entlang, und die Leute im Tal nutzten sie für viele Jahre, als das Land arm war."
ENGLISH = "The old railway ran along the river, and people of the valley used it when the country was poor."
KEPT = {"web": 60, "fineweb": 60, "fineweb2": 10, "dclm": 30, "dolma3": 30}  # documents at least; few are German


@pytest.fixture(scope="module")
def named(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the recipes and their commands name in the bucket."""
    language = tmp_path_factory.mktemp("models") / "language.bin"
    train_labelled(language, {"eng_Latn": [ENGLISH], "deu_Latn": [GERMAN]})
    models = dict.fromkeys(
        ("openhermes_reddit_eli5_vs_rw.bin", "dolma3-quality.bin"), (inputs / "quality.bin").read_bytes()
    )
    folders = ("crawl", "crawl-data/CC-MAIN-2026-01/segments/1/warc")
    pages = {path.name: path.read_bytes() for path in (inputs / "input").glob("*.warc.gz")}
    crawl = {f"{folder}/{name}": data for folder in folders for name, data in pages.items()}
    tokenizer = {"tokenizer/tokenizer.json": (inputs / "tokenizer.json").read_bytes()}
    return {"glotlid.bin": language.read_bytes(), **models, **crawl, **tokenizer}


@pytest.fixture
def bucket(named: dict[str, bytes]) -> Iterator[FakeGcs]:
    with fake_gcs(BUCKET) as server:
        for name, data in named.items():
            server.put(BUCKET, name, data)
        yield server


@pytest.mark.parametrize("name", KEPT)
def test_a_funnels_command_runs(name: str, bucket: FakeGcs, inputs: Path, tmp_path: Path) -> None:
    """As someone types it who puts a name in place of BUCKET, in the command and in the recipe."""
    text = (RECIPES / f"{name}.yaml").read_text()
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / f"{name}.yaml").write_text(text.replace("BUCKET", BUCKET))
    (tmp_path / "crawl").symlink_to(inputs / "input")
    (words,) = commands_of(RECIPES / f"{name}.yaml")
    arguments = [word.replace("BUCKET", BUCKET) for word in words[1:]]
    done = fork_server().run(*arguments, folder=tmp_path, environment=bucket.environment)
    assert done.code == 0, done.err
    manifest = check_corpus(bucket.read(BUCKET, "corpus/"))
    assert sum(shard.documents for shard in manifest.shards) >= KEPT[name]
