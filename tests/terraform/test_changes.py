"""Changes of variables after an apply, in Terraform's order. The provider is the stand-in, so nothing is made."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.terraform.engine import Copy
    from tests.terraform.standin import Done

pytestmark = pytest.mark.skipif(find_spec("msgpack") is None, reason="`make terraform-test` runs it")

CHANNEL = "google_monitoring_notification_channel"
POLICY = "google_monitoring_alert_policy"
CERTIFICATE = "google_compute_managed_ssl_certificate"
PROXY = "google_compute_target_https_proxy"
BASE: dict[str, Any] = {
    "project_id": "example-project",
    "region": "europe-west4",
    "alert_emails": ["a@example.org", "b@example.org"],
    "public_domain": "data.example.org",
}


def apply(copy: "Copy", **changed: Any) -> list["Done"]:
    """What `terraform apply` with the base's variables, changed in these, does."""
    (copy.folder / "terraform.tfvars.json").write_text(json.dumps({**BASE, **changed}))
    copy.done.clear()
    done = copy.run("apply", "-auto-approve", "-input=false", "-no-color", "-parallelism=1")
    assert done.returncode == 0, done.stdout + done.stderr
    return list(copy.done)


def test_what_is_changed_and_taken_back(tmp_path: Path) -> None:
    from tests.terraform.engine import ready

    with ready(tmp_path, standin=True) as copy:
        made = apply(copy)
        assert {step.action for step in made} == {"create"} and len(made) > 80
        assert apply(copy) == []

        # The channel is destroyed after the policies that used it were updated.
        steps = apply(copy, alert_emails=["a@example.org"])
        kinds = [(step.action, step.kind) for step in steps]
        assert kinds == [*[("update", POLICY)] * 7, ("destroy", CHANNEL)]

        # Another domain: another certificate, then the proxy, then the old certificate goes. Nothing else changes.
        steps = apply(copy, public_domain="other.example.org")
        kinds = [(step.action, step.kind) for step in steps if step.kind in (CERTIFICATE, PROXY)]
        assert kinds == [("create", CERTIFICATE), ("update", PROXY), ("destroy", CERTIFICATE)]
        assert "google_storage_bucket" not in {step.kind for step in steps}

        # No domain: the bucket goes, too; Google refuses that unless it is empty.
        steps = apply(copy, public_domain=None)
        gone = [step for step in steps if step.kind == "google_storage_bucket"]
        assert [(step.action, step.name) for step in gone] == [("destroy", "example-project-refinery-public")]
        assert {step.action for step in steps} == {"destroy"}

        # The key, and with it all that it encrypts, is never replaced.
        (copy.folder / "terraform.tfvars.json").write_text(json.dumps({**BASE, "name": "other", "public_domain": None}))
        done = copy.run("apply", "-auto-approve", "-input=false", "-no-color")
        assert done.returncode == 1 and "prevent_destroy" in done.stderr + done.stdout
