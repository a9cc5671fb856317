"""Mistakes in terraform/ that Terraform must find with the stand-in for the provider: `make terraform-test`."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from tests.terraform.engine import Copy

needs_terraform = pytest.mark.skipif(find_spec("msgpack") is None, reason="`make terraform-test` runs it")


class Mistake(NamedTuple):
    """In a file of terraform/, old becomes new. says: what the error must contain."""

    file: str
    old: str
    new: str
    says: str


# Found by `terraform validate`, a module's at once: each is in a block of its own on which no other depends.
IN_CODE = (
    Mistake("network/main.tf", "= 65534", "= 65534\n  prior = 1", 'argument named "prior" is not expected'),
    Mistake("network/main.tf", "  dest_range       = local.google_range\n", "", 'argument "dest_range" is required'),
    Mistake(
        "network/main.tf", 'direction   = "INGRESS"', 'direction   = "INWARDS"', "'INWARDS' is none of INGRESS, EGRESS"
    ),
    Mistake("network/main.tf", 'direction          = "EGRESS"', 'direction          = ["EGRESS"]', "string required"),
    Mistake(
        "network/dns.tf", 'visibility  = "private"', 'visibility  = "hidden"', "'hidden' is none of private, public"
    ),
    Mistake("identity/main.tf", "  bucket = var", '  etag = "1"\n  bucket = var', "etag: is set by the service"),
    Mistake(
        "identity/main.tf",
        '"roles/iam.serviceAccountUser"',
        '"iam.serviceAccountUser"',
        "role: 'iam.serviceAccountUser'",
    ),
    Mistake("identity/main.tf", "member             = each.value.member", 'member = "somebody"', "member: 'somebody'"),
    Mistake("encryption/main.tf", 'destroy_scheduled_duration = "2592000s"', "destroy_after = 30", '"destroy_after"'),
    Mistake("registry/main.tf", "immutable_tags = true", 'immutable_tags = "always"', "a bool is required"),
    Mistake("cdn/main.tf", 'cache_mode         = "USE_ORIGIN_HEADERS"', 'cache_mode = "ALL"', "'ALL' is none of"),
    Mistake("monitoring/main.tf", 'combiner              = "OR"', 'combiner = "ANY"', "'ANY' is none of"),
    Mistake("launcher/main.tf", 'egress = "ALL_TRAFFIC"', 'egress = "ALL"', "'ALL' is none of ALL_TRAFFIC"),
    Mistake("perimeter/main.tf", "restricted_services =", "services =", 'argument named "services" is not expected'),
)

# Values that are composed of variables: found by a plan.
IN_VALUES = (
    Mistake("encryption/main.tf", '"${local.rotation_seconds}s"', '"${var.rotation_days}d"', "rotation_period: '90d'"),
    Mistake(
        "identity/main.tf", '"${var.name}-${each.key}"', '"${var.name}_${each.key}"', "account_id: 'corpora_reader'"
    ),
    Mistake("identity/federation.tf", '= "${var.name}-ci"', '= "gcp-${var.name}"', "workload_identity_pool_id: 'gcp-"),
    Mistake("storage/main.tf", '"${var.prefix}-${each.key}"', '"google-${each.key}"', "name: 'google-raw'"),
    Mistake(
        "storage/main.tf", 'with_state                 = "ARCHIVED"', 'with_state = "OLD"', "'OLD' is none of LIVE,"
    ),
    Mistake("network/main.tf", '"${var.name}-workers-in"', '"${var.name} in"', "name: 'corpora in'"),
    Mistake("launcher/main.tf", '"${var.hours * 3600}s"', '"${var.hours}h"', "timeout: '48h'"),
)


def missed(copy: "Copy", mistakes: tuple[Mistake, ...], *command: str) -> list[tuple[Mistake, str]]:
    """Those that `terraform COMMAND` does not find, and what it says instead. Each module has its mistakes at once."""
    found = []
    for module in sorted({mistake.file.partition("/")[0] for mistake in mistakes}):
        here = [mistake for mistake in mistakes if mistake.file.startswith(f"{module}/")]
        kept = {path: path.read_text() for path in (copy.folder / "modules" / module).glob("*.tf")}
        for mistake in here:
            path = copy.folder / "modules" / mistake.file
            assert mistake.old in path.read_text(), mistake
            path.write_text(path.read_text().replace(mistake.old, mistake.new, 1))
        done = copy.run(*command)
        said = " ".join((done.stdout + done.stderr).replace("│", " ").split())
        found += [(mistake, said) for mistake in here if done.returncode != 1 or mistake.says not in said]
        for path, text in kept.items():
            path.write_text(text)
    return found


@needs_terraform
def test_validate_finds_mistakes_in_the_code(tmp_path: Path) -> None:
    from tests.terraform.engine import ready

    with ready(tmp_path, standin=True) as copy:
        assert missed(copy, IN_CODE, "validate", "-no-color") == []
        assert copy.run("validate", "-no-color").returncode == 0  # nothing else is found


@needs_terraform
def test_a_plan_finds_mistakes_in_values(tmp_path: Path) -> None:
    from tests.terraform.engine import UNMOCKED, ready

    with ready(tmp_path, standin=True) as copy:
        plans = copy.folder / UNMOCKED / "plans.tftest.hcl"
        head, *runs = plans.read_text().split('\nrun "')
        everything = next(run for run in runs if run.startswith('all"'))
        plans.write_text(f'{head}\nrun "{everything}')
        command = ("test", "-no-color", f"-test-directory={UNMOCKED}")
        assert copy.run(*command).returncode == 0
        assert missed(copy, IN_VALUES, *command) == []
