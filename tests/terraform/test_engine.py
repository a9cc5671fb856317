"""Which Terraform and which provider are used, and that a real error is not taken for a missing provider."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("msgpack") is None, reason="`make terraform-test` runs it")


@pytest.fixture
def terraform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in Terraform's place; the test writes what it says."""
    program = tmp_path / "terraform"
    monkeypatch.setenv("REFINERY_TERRAFORM", str(program))
    return program


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_the_real_provider_is_used_where_init_installs_it(tmp_path: Path, terraform: Path) -> None:
    from tests.terraform.engine import ready

    selected = '{"provider_selections": {"registry.example/hashicorp/google": "7.45.0"}}'
    write(terraform, f"case $2 in version) echo '{selected}' ;; esac")
    with ready(tmp_path / "place") as copy:
        assert copy.provider == "the real provider, registry.example/hashicorp/google 7.45.0"
        assert copy.environment == {}
    with ready(tmp_path / "other", standin=True) as copy:
        assert copy.provider.startswith("A STAND-IN") and "TF_REATTACH_PROVIDERS" in copy.environment


def test_the_stand_in_is_used_where_the_provider_is_missing(tmp_path: Path, terraform: Path) -> None:
    from tests.terraform.engine import ready

    missing = 'echo "Error: Failed to query available provider packages" >&2; exit 1'
    write(terraform, f'test -n "$TF_REATTACH_PROVIDERS" || {{ {missing}; }}')
    with ready(tmp_path / "place") as copy:
        assert copy.provider.startswith("A STAND-IN with the schema of hashicorp/google 7.")


def test_another_error_of_init_is_an_error(tmp_path: Path, terraform: Path) -> None:
    from tests.terraform.engine import ready

    write(terraform, 'echo "Error: Unreadable module" >&2; exit 1')
    with pytest.raises(RuntimeError, match="Unreadable module"), ready(tmp_path / "place"):
        pass


def test_a_copy_has_no_variables_and_no_state_of_yours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.terraform import engine

    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("main.tf", "terraform.tfvars", "terraform.tfstate", "terraform.tfstate.backup", "a.auto.tfvars"):
        (mine / name).write_text("")
    monkeypatch.setattr(engine, "FOLDER", mine)
    assert os.listdir(engine.copy_to(tmp_path / "copy").folder) == ["main.tf"]
