"""What packages offer by name: `from refinery.transforms import URL`, and nothing else is imported."""

import subprocess
import sys
from types import ModuleType

import pytest

from refinery import loader, pipelines, transforms

OFFERED = [(package, name) for package in (loader, pipelines, transforms) for name in package.__all__]


@pytest.mark.parametrize(("package", "name"), OFFERED, ids=lambda value: getattr(value, "__name__", value))
def test_every_name_is_there(package: ModuleType, name: str) -> None:
    assert getattr(package, name) is not None and name in dir(package)


def test_a_name_is_what_its_module_has() -> None:
    from refinery.transforms.filter.url import URL

    assert transforms.URL is URL and loader.TokenStream.__module__ == "refinery.loader.stream.stream"


@pytest.mark.parametrize("package", [loader, pipelines, transforms], ids=lambda package: package.__name__)
def test_another_name_is_none(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018


def test_a_name_imports_what_it_needs_and_no_other_stage() -> None:
    script = "import sys\nfrom refinery.transforms import URL\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "refinery.transforms.filter.url" in loaded
    assert not loaded & {"refinery.transforms.filter.quality", "refinery.transforms.tokenize.encode", "tokenizers"}
