"""Copies of pages in other scripts: the markup is the page's own, the words are of the script, few are left out."""

import re

import numpy as np
import pytest

from refinery.pipelines.training.extractor.gold import GoldPage
from refinery.pipelines.training.extractor.scripts import SCRIPTS, in_other_script, rewriter
from refinery.pipelines.training.extractor.train import COPY_WEIGHT, make_examples
from refinery.transforms.extract.blocks.page import Column

HTML = """<title>Two, Three</title><nav class=menu><a href="/home.html">Home</a> | <a href=/b>About us</a></nav>
<script>var home = "<p>";</script><h1>Two, Three</h1><!-- no. -->
<p>They said it, too; &amp; then <b>went home</b>. Was it 12:45? Nobody knew.</p>"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_is_of_the_script(name: str) -> None:
    rewrite = rewriter(SCRIPTS[name])
    said = rewrite("They said it, too; then went home. Was it 12:45? Nobody knew it.")
    assert (
        not re.search("[A-Za-z]", said)
        and "12" in said
        and said == rewrite("They said it, too; then went home. Was it 12:45? Nobody knew it.")
    )
    assert (" " in said) == SCRIPTS[name].spaces
    assert rewrite("Home") == rewrite("Home") != rewrite("About") and rewrite(" 12 ") == " 12 "


def copies() -> list[str]:
    made = (in_other_script(HTML, str(number)) for number in range(200))
    return [html for html in made if html is not None]


def test_half_of_the_pages_are_copied_and_their_markup_stays() -> None:
    assert 70 < len(copies()) < 130 and len(set(copies())) == len(SCRIPTS)
    for html in copies():
        tags = r"<script>.*?</script>|<[^>]*>|&amp;"
        assert re.findall(tags, html) == re.findall(tags, HTML)
        assert not re.search("[A-Za-z]", re.sub(tags, "", html))


def test_a_copy_has_the_targets_of_its_page_and_teaches_the_lexicon_nothing() -> None:
    gold = "They said it, too; & then went home."
    pages = [GoldPage(str(number), f"https://x{number}.org", HTML, "article", gold, (), ()) for number in range(40)]
    examples = [make_examples(page) for page in pages]
    assert {len(each) for each in examples} == {1, 2}
    for own, *others in examples:
        for other in others:
            assert (own.targets == other.targets).all() and (own.weights * COPY_WEIGHT == other.weights).all()
            assert (other.words.main == -1).all() and own.has_gold and not other.has_gold
            blocks = [its.parsed.blocks for its in (own, other)]
            assert (blocks[0][:, Column.HEADING] == blocks[1][:, Column.HEADING]).all()
            assert np.abs(blocks[0][-1, Column.WORDS] - blocks[1][-1, Column.WORDS]) < 12
            assert blocks[1][1, Column.WHOLE] in other.parsed.arrays.titles.astype(np.int32)
