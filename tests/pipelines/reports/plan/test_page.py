"""The page as text: nothing is loaded, nothing from outside is markup. In a browser: test_page_browser.py."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from refinery.pipelines.reports.plan.inputs import INPUTS
from refinery.pipelines.reports.plan.page import plan_page
from refinery.pipelines.reports.plan.presets import PRESETS
from refinery.pipelines.reports.plan.scenario import scenario

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028"


class Tags(HTMLParser):
    """Every tag with its attributes, in order; texts of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.texts.append((self.tags[-1][0], data))


def hostile_page() -> str:
    kept = {**PRESETS["reference"].retentions, HOSTILE: 0.5}
    return plan_page(scenario({}, kept), kept, HOSTILE)


def test_the_policy_allows_this_script_and_style_and_nothing_else() -> None:
    page = Tags(plan_page(scenario({})))
    policy = next(attrs["content"] for tag, attrs in page.tags if tag == "meta" and "http-equiv" in attrs)
    assert policy is not None
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    for kind in ("style", "script"):
        data = 1 if kind == "script" else 0  # the first script is JSON, which nothing runs
        texts = [text for tag, text in page.texts if tag == kind][data:]
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert f"{kind}-src " + " ".join(f"'sha256-{digest}'" for digest in digests) in policy


def test_nothing_is_loaded_and_no_attribute_is_a_script() -> None:
    for page in (plan_page(scenario({})), hostile_page()):
        tags = Tags(page).tags
        assert not {tag for tag, _ in tags} & {"img", "link", "iframe", "object", "embed", "base", "form", "svg", "a"}
        names = {name for _, attrs in tags for name in attrs}
        assert not [name for name in names if name.startswith("on") or name in ("src", "href", "style", "action")]


def test_hostile_names_and_notes_are_text() -> None:
    page = Tags(hostile_page())
    assert [tag for tag, _ in page.tags].count("script") == 2
    data = json.loads(next(text for tag, text in page.texts if tag == "script"))
    assert HOSTILE in data["stages"]
    assert not re.search(r"[<>&\u2028]", next(text for tag, text in page.texts if tag == "script"))


def test_everything_has_a_label() -> None:
    tags = Tags(plan_page(scenario({}))).tags
    labels = {attrs.get("for") for tag, attrs in tags if tag == "label"}
    fields = [attrs for tag, attrs in tags if tag == "input"]
    assert all(attrs.get("aria-label") or attrs.get("id") in labels for attrs in fields)
    assert {f"in-{each.name}" for each in INPUTS} <= {attrs.get("id") for attrs in fields}


def test_the_same_plan_makes_the_same_page() -> None:
    assert plan_page(scenario({})) == plan_page(scenario({}))
