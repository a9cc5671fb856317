"""Tabs of a page: parts of it, one of which is shown. tabs.js makes them; without scripts, and on paper, all are shown.

    panels = [Panel("lost", "What was lost", [section, section]), Panel("run", "The run", [section])]
    el("body", tab_bar(panels), el("main", tab_panels(panels)))

A link to anything inside a panel (`#reasons`) opens the tab.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import own_file


@dataclass(frozen=True)
class Panel:
    """name: its anchor, unique on the page. title: of its tab. children: as of `el`; those that are None are left
    out."""

    name: str
    title: str
    children: Sequence[object] = field(default_factory=tuple)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return all(child is None for child in self.children)


def tab_bar(panels: Iterable[Panel]) -> Html:
    """Links to the panels that are not empty, which tabs.js turns into tabs."""
    links = [
        el("a", panel.title, href=f"#{panel.name}", id=f"tab-{panel.name}", data_panel=panel.name)
        for panel in panels
        if not panel.is_empty
    ]
    return el("nav", el("div", links, class_="tabs"), aria_label="Parts of this page")


def tab_panels(panels: Iterable[Panel]) -> list[Html]:
    """The panels that are not empty."""
    return [el("div", panel.children, id=panel.name, class_="panel") for panel in panels if not panel.is_empty]


def tab_script() -> str:
    """The script that a page with tabs needs, before those that draw charts."""
    return own_file("tabs.js", __package__)
