"""A flag that a page names exists."""

from pathlib import Path

import pytest

from tests.docs.blocks import ELSEWHERE, PAGES
from tests.docs.flags import FLAG, OTHERS, of_beam, of_programs, own

ALL_PAGES = [*PAGES, *ELSEWHERE]


@pytest.mark.parametrize("path", ALL_PAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_flags_that_pages_name_exist(path: Path) -> None:
    known = own() | of_programs() | of_beam() | {flag for flags in OTHERS.values() for flag in flags}
    assert set(FLAG.findall(path.read_text())) - known == set()


def test_flags_of_other_programs_are_in_use_and_theirs_alone() -> None:
    named = {flag for path in ALL_PAGES for flag in FLAG.findall(path.read_text())}
    others = {flag for flags in OTHERS.values() for flag in flags}
    assert others - named == set()
    assert others & own() == set()


def test_the_flags_of_beam() -> None:
    assert {"--region", "--sdk_container_image", "--setup_file", "--runner"} <= of_beam()
    assert "--no_such_flag" not in of_beam()
