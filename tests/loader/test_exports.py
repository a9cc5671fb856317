"""The names that `refinery.loader` exports, each imported on first access."""

import pytest

from refinery import loader


@pytest.mark.parametrize("name", loader.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(loader, name).__name__ == name


def test_the_list_is_complete() -> None:
    assert loader.__all__ == sorted(loader._MODULES)


def test_other_names() -> None:
    with pytest.raises(AttributeError, match=r"module 'refinery\.loader' has no attribute 'Nothing'"):
        loader.Nothing  # noqa: B018
