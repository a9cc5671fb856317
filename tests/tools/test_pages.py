"""What tools/pages.py makes of marks: several stages under headings, and links that start at the page."""

import re

import pytest

from tools.pages import DOCS, make, render, section_page


def test_several_stages_have_a_heading_each_and_one_has_none() -> None:
    text = make("reasons", "url, language")
    assert re.findall(r"^#+ .*$", text, re.MULTILINE) == ["## url", "## language"]
    assert "| `blocked-domain` |" in text and "| `language-score` |" in text
    assert make("reasons", "url").startswith("| reason |")


def test_a_stage_or_a_section_that_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no lane has a stage nobody"):
        make("reasons", "url, nobody")
    with pytest.raises(ValueError, match="is needed on one page"):
        section_page("nobody")


def test_links_of_a_table_start_at_its_page() -> None:
    mark = "<!-- keys: language -->\n<!-- end -->\n"
    assert "[languages.md](languages.md)" in render(mark, DOCS / "one.md")
    assert "[languages.md](../languages.md)" in render(mark, DOCS / "folder" / "one.md")


def test_the_top_level_links_every_section_to_its_page() -> None:
    text = render("<!-- keys -->\n<!-- end -->\n", DOCS / "recipes" / "keys.md")
    links = dict(re.findall(r"section \[(\w+)\]\(([\w.-]+)#\w+\)", text))
    assert links["near_dup"] == "deduplication.md" and links["sources"] == "sources.md"
    assert all(f"## {name}" in (DOCS / "recipes" / page).read_text() for name, page in links.items())
