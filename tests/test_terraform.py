"""terraform/ without Terraform: checkov, and what must hold in every file whatever a plan says.

`make terraform-test` (tests/terraform) runs `terraform validate` and `terraform test`.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.runners.dataflow.job_records import JobSpec
from refinery.pipelines.runners.dataflow.launch_flags import DEFAULTS, LABEL, fill_in
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.per_document import PerDocument
from tests.beam import make_document

ROOT = Path(__file__).parents[1]
TERRAFORM = ROOT / "terraform"
MODULES = ("storage", "identity", "network", "registry", "monitoring", "cdn", "launcher", "perimeter")
AUDIT = ROOT / ".venv" / "audit" / "bin"
PARSE = "import hcl2, json, sys; print(json.dumps({name: hcl2.load(open(name)) for name in sys.argv[1:]}))"

CREATE_AND_READ = {"roles/storage.objectCreator", "roles/storage.objectViewer"}
SECRET_OR_PUBLIC = re.compile(r"allUsers|allAuthenticatedUsers|google_service_account_key|private_key")

needs_audit = pytest.mark.skipif("REFINERY_AUDIT" not in os.environ, reason="`make audit` runs it")


def run_audit(*command: str) -> subprocess.CompletedProcess[str]:
    """A tool of the audit environment, offline: nothing may be looked up anywhere."""
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "HTTP", "HTTPS")}
    environment = {**os.environ, **nowhere, "LOG_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}
    program, *arguments = command
    return subprocess.run([AUDIT / program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def parsed() -> dict[str, dict[str, Any]]:
    """Every file of terraform/ as data; an attribute is a list of one value, as is a block."""
    names = [str(path.relative_to(ROOT)) for form in ("*.tf", "*.tftest.hcl") for path in sorted(TERRAFORM.rglob(form))]
    done = run_audit("python", "-c", PARSE, *names)
    assert done.returncode == 0, done.stderr
    files: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return files


def blocks(parsed: dict[str, dict[str, Any]], kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(file, name, body) of every variable or output; (file, "type.name", body) of every resource."""
    for file, content in parsed.items():
        for block in content.get(kind, []):
            for name, body in block.items():
                if kind == "resource":
                    yield from ((file, f"{name}.{inner}", value) for inner, value in body.items())
                else:
                    yield file, name, body


def local(parsed: dict[str, dict[str, Any]], file: str, name: str) -> Any:
    return next(block[name][0] for block in parsed[file]["locals"] if name in block)


@needs_audit
def test_checkov_finds_nothing() -> None:
    done = run_audit(
        *("checkov", "--directory", "terraform", "--framework", "terraform"),
        *("--skip-download", "--compact", "--quiet", "--output", "json"),
    )
    report = json.loads(done.stdout)
    failed = [f"{c['check_id']} {c['resource']}: {c['check_name']}" for c in report["results"]["failed_checks"]]
    assert not failed
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] >= 50  # it did look
    assert done.returncode == 0


def test_checks_are_skipped_in_place_and_with_a_reason() -> None:
    lines = [line for path in TERRAFORM.rglob("*.tf") for line in path.read_text().splitlines() if "checkov:" in line]
    assert lines
    assert not [line for line in lines if not re.search(r"# checkov:skip=CKV2?_GCP_\d+: \w.{20,}", line)]
    assert not list(TERRAFORM.rglob(".checkov*"))


@needs_audit
def test_modules_and_pins(parsed: dict[str, dict[str, Any]]) -> None:
    assert set(MODULES) < {path.name for path in (TERRAFORM / "modules").iterdir()}
    folders = {TERRAFORM, *(TERRAFORM / "modules").iterdir()}
    for folder in folders:
        settings = parsed[str((folder / "versions.tf").relative_to(ROOT))]["terraform"][0]
        assert settings["required_version"] == [">= 1.11.0"]
        assert settings["required_providers"][0]["google"][0] == {"source": "hashicorp/google", "version": "~> 7.0"}
        for name in ("main.tf", "variables.tf", "outputs.tf"):
            assert (folder / name).exists(), f"{folder.name}/{name}"


@needs_audit
def test_variables_and_outputs_say_what_they_are(parsed: dict[str, dict[str, Any]]) -> None:
    variables = list(blocks(parsed, "variable"))
    assert len(variables) > 50
    for file, name, body in variables:
        assert body.get("type"), f"{file}: {name} has no type"
        assert len(body.get("description", [""])[0]) > 10, f"{file}: {name} has no description"
    for file, name, body in blocks(parsed, "output"):
        assert len(body.get("description", [""])[0]) > 10, f"{file}: {name} has no description"


@needs_audit
def test_what_people_set_is_validated(parsed: dict[str, dict[str, Any]]) -> None:
    """Each message names its variable."""
    root = {name: body for file, name, body in blocks(parsed, "variable") if file == "terraform/variables.tf"}
    assert [name for name, body in root.items() if "validation" not in body] == []
    for name, body in root.items():
        for validation in body.get("validation", []):
            assert validation["error_message"][0].startswith((f"{name}:", f"{name}.")), name


@needs_audit
def test_buckets(parsed: dict[str, dict[str, Any]]) -> None:
    found = {name: body for _, name, body in blocks(parsed, "resource") if name.startswith("google_storage_bucket.")}
    assert set(found) == {"google_storage_bucket.this", "google_storage_bucket.public"}
    for name, body in found.items():
        assert body["uniform_bucket_level_access"] == [True], name
        assert body["force_destroy"] == [False], name
        assert body["encryption"][0]["default_kms_key_name"], name
        assert body["soft_delete_policy"] and body["versioning"], name
        assert "AbortIncompleteMultipartUpload" in json.dumps(body["lifecycle_rule"]), name
    assert found["google_storage_bucket.this"]["lifecycle"][0]["prevent_destroy"] == [True]
    # Copies: it goes with public_domain, once it is empty.
    assert "prevent_destroy" not in json.dumps(found["google_storage_bucket.public"])
    assert all(body["public_access_prevention"] == ["enforced"] for body in found.values())
    purposes = local(parsed, "terraform/modules/storage/main.tf", "buckets")
    assert set(purposes) == {"raw", "staging", "work", "corpus", "rejects"}
    # Files that live for hours are not kept for a week after; what expires is never under retention.
    kept = [name for name, facts in purposes.items() if facts["soft_delete"] == 0 and facts["versioned"] is False]
    assert kept == ["staging", "work", "rejects"]
    # Not both: a deleted object would be billed once as an old version, and then again until it cannot be restored.
    assert [name for name, facts in purposes.items() if facts["versioned"]] == ["raw"]
    assert purposes["raw"]["soft_delete"] == 0
    assert not [name for name, facts in purposes.items() if facts["expire"] != 0 and facts["retention"] != 0]


@needs_audit
def test_nobody_can_delete_from_the_corpus(parsed: dict[str, dict[str, Any]]) -> None:
    identity = "terraform/modules/identity/main.tf"
    roles = local(parsed, identity, "bucket_roles")
    assert set(roles) == {"launcher", "worker", "reader"}
    for account, buckets in roles.items():
        assert set(buckets["corpus"]) <= CREATE_AND_READ, account
    assert set(roles["worker"]["work"]) <= CREATE_AND_READ
    assert roles["reader"] == {"corpus": ["roles/storage.objectViewer"]}
    assert local(parsed, identity, "project_roles") == {
        "launcher": [
            "roles/dataflow.developer",
            "roles/monitoring.metricWriter",
            "roles/serviceusage.serviceUsageConsumer",
        ],
        "reader": ["roles/serviceusage.serviceUsageConsumer"],
        "worker": ["roles/dataflow.worker"],
    }
    granting = {name: file for file, name, _ in blocks(parsed, "resource") if "_iam_" in name}
    buckets = {name for name in granting if name.startswith("google_storage_bucket_iam")}
    assert {granting[name] for name in buckets} == {identity, "terraform/modules/cdn/main.tf"}
    assert [name for name in granting if "google_project_iam_" in name] == [
        "google_project_iam_member.ci_scans",
        "google_project_iam_member.ci_writes_bills_of_materials",  # on one bucket: its condition
        "google_project_iam_member.this",
        "google_project_iam_member.on_call",
        "google_project_iam_audit_config.storage",
    ]
    # A binding or a policy would take away what others granted.
    assert not [name for name in granting if "_iam_binding" in name or "_iam_policy" in name]


@needs_audit
def test_no_broad_roles(parsed: dict[str, dict[str, Any]]) -> None:
    named = set(re.findall(r"roles/[\w.]+", json.dumps([c for f, c in parsed.items() if f.endswith(".tf")])))
    assert named == {
        "roles/artifactregistry.reader",
        "roles/artifactregistry.writer",
        "roles/cloudkms.cryptoKeyEncrypterDecrypter",
        "roles/dataflow.developer",
        "roles/dataflow.viewer",
        "roles/dataflow.worker",
        "roles/iam.serviceAccountTokenCreator",
        "roles/iam.serviceAccountUser",
        "roles/iam.workloadIdentityUser",
        "roles/logging.viewer",
        "roles/monitoring.metricWriter",
        "roles/monitoring.viewer",
        "roles/ondemandscanning.admin",
        "roles/run.jobsExecutorWithOverrides",
        "roles/serviceusage.serviceUsageConsumer",
        "roles/storage.admin",
        "roles/storage.legacyBucketReader",
        "roles/storage.legacyObjectReader",
        "roles/storage.objectCreator",
        "roles/storage.objectUser",
        "roles/storage.objectViewer",
    }


@needs_audit
def test_no_job_no_key_nothing_public(parsed: dict[str, dict[str, Any]]) -> None:
    """The plan never owns a job that runs: a finished one would be started again by the next apply."""
    kinds = {name.split(".")[0] for _, name, _ in blocks(parsed, "resource")}
    assert len(kinds) > 25
    assert not [kind for kind in kinds if kind.startswith("google_dataflow") or kind == "google_service_account_key"]
    assert not {"google_compute_router", "google_compute_router_nat", "null_resource", "terraform_data"} & kinds
    for path in TERRAFORM.rglob("*.tf"):
        if path.name != "variables.tf":
            assert not SECRET_OR_PUBLIC.search(path.read_text()), path
    # Cloud CDN signs with an HMAC key and nothing else: the only key there is.
    assert [name for _, name, _ in blocks(parsed, "resource") if "hmac" in name] == ["google_storage_hmac_key.cdn"]
    off = "for_each = var.public_domain == null ? {} : { this = var.public_domain }"
    assert " ".join((TERRAFORM / "main.tf").read_text().split()).count(off) == 1
    root = {name: body for file, name, body in blocks(parsed, "variable") if file == "terraform/variables.tf"}
    assert root["public_domain"]["default"] == [None]


def test_the_perimeter_that_is_tried_is_the_one_that_is_enforced() -> None:
    text = (TERRAFORM / "modules" / "perimeter" / "main.tf").read_text()
    bodies = {name: text.split(f'  dynamic "{name}" {{')[1].split("\n  }\n")[0] for name in ("status", "spec")}
    assert bodies["status"].split("content {")[1:] == bodies["spec"].split("content {")[1:]
    assert len(bodies["spec"]) > 500


@needs_audit
def test_what_others_use_is_replaced_before_it_is_destroyed(parsed: dict[str, dict[str, Any]]) -> None:
    """Google refuses to delete a channel that a policy uses, or a certificate that a proxy uses."""
    found = {name: body for _, name, body in blocks(parsed, "resource")}
    for name in ("google_monitoring_notification_channel.email", "google_compute_managed_ssl_certificate.public"):
        assert found[name]["lifecycle"] == [{"create_before_destroy": [True]}], name
    # Both certificates exist for a while, so their names differ.
    assert "sha256(var.domain)" in found["google_compute_managed_ssl_certificate.public"]["name"][0]


@needs_audit
def test_network_is_closed(parsed: dict[str, dict[str, Any]]) -> None:
    found = {name: body for _, name, body in blocks(parsed, "resource")}
    assert found["google_compute_network.this"]["auto_create_subnetworks"] == [False]
    assert found["google_compute_network.this"]["delete_default_routes_on_create"] == [True]
    assert found["google_compute_subnetwork.workers"]["private_ip_google_access"] == [True]
    opened = [n for n, body in found.items() if n.startswith("google_compute_firewall.") and "source_ranges" in body]
    assert not opened  # workers alone reach workers
    assert found["google_compute_firewall.workers_in"]["target_tags"] == [["${local.worker_tag}"]]
    assert local(parsed, "terraform/modules/network/main.tf", "shuffle_ports") == ["12345-12346"]


@needs_audit
def test_terraform_tests_are_many(parsed: dict[str, dict[str, Any]]) -> None:
    runs = [body for file, _, body in blocks(parsed, "run") if file.endswith(".tftest.hcl")]
    assertions = sum(len(body.get("assert", [])) for body in runs)
    failures = sum(len(expected) for body in runs for expected in body.get("expect_failures", []))
    assert assertions >= 40
    assert failures >= 10
    assert all(body["command"] == ["${plan}"] for body in runs)  # nothing is made, whatever the provider
    mocked = [file for file, content in parsed.items() if file.endswith(".tftest.hcl") and "mock_provider" in content]
    assert len(mocked) == len(list((TERRAFORM / "tests").glob("*.tftest.hcl")))


def launch_command() -> list[str]:
    """The launch command as words, from the assertion that holds outputs.tf to it."""
    text = (TERRAFORM / "tests" / "launch.tftest.hcl").read_text()
    lines = re.search(r'output\.launch_command == join\(" \\\\\\n  ", \[\n(.*?)\n    \]\)', text, re.DOTALL)
    assert lines is not None
    return shlex.split(" ".join(json.loads(line.strip().rstrip(",")) for line in lines[1].splitlines()))


def test_launch_command_is_one_that_we_and_beam_take() -> None:
    args, flags = build_parser().parse_known_args(launch_command()[1:])
    assert (args.command, args.runner, args.recipe) == ("refine", "DataflowRunner", "recipes/web.yaml")
    assert (ROOT / args.recipe).exists()
    assert args.input == ["gs://example-project-refinery-raw/crawl/*.warc.gz"]
    assert args.output.startswith("gs://example-project-refinery-corpus/")
    assert args.work.startswith("gs://example-project-refinery-work/")
    understood = PipelineOptions(flags).get_all_options(drop_default=True)
    names = {flag.removeprefix("--").removeprefix("no_") for flag in flags if flag.startswith("--")}
    assert names == set(understood)
    assert understood["use_public_ips"] is False
    assert understood["max_num_workers"] == int(DEFAULTS["max_num_workers"])
    # Nothing is missing: what is filled in are defaults, and no value is another.
    filled = PipelineOptions(fill_in(flags, output=args.output, work=args.work, environment={}))
    assert {name: filled.get_all_options()[name] for name in understood} == understood


def test_outputs_print_the_flags_that_are_tested() -> None:
    """Each line of local.launch begins as the tested command's line does: neither can change alone."""
    printed = re.findall(r'^    \["(--\w+)', (TERRAFORM / "outputs.tf").read_text(), re.MULTILINE)
    assert printed == [word for word in launch_command() if word.startswith("--")]


def test_labels_of_the_printed_command_reach_the_job_beside_ours() -> None:
    """terraform prints `--labels KEY=VALUE` for each label; Beam collects them, and adds none away."""
    assert '["--labels", "${key}=${value}"]' in (TERRAFORM / "outputs.tf").read_text()
    flags = [*launch_command()[1:], "--labels", "cost=42", "--labels", "team=data"]
    args, flags = build_parser().parse_known_args(flags)
    filled = fill_in(flags, output=args.output, work=args.work, environment={})
    assert PipelineOptions(filled).get_all_options()["labels"] == ["cost=42", "team=data", LABEL]


def judge(doc: Document) -> Document | Drop:
    if doc.text == "bad":
        raise ValueError(doc.text)
    return Drop("short") if doc.text == "short" else doc


def test_metrics_are_those_that_the_pipeline_emits() -> None:
    """What alerts and charts ask for, against the counters of a run in which every outcome occurs."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    docs = [make_document(text, f"file@{i}") for i, text in enumerate(("good", "short", "bad"))]
    _ = pipeline | beam.Create(docs) | PerDocument("read", judge)
    result = pipeline.run()
    result.wait_until_finish()
    counters = {c.key.metric.name: c for c in result.metrics().query()["counters"] if c.key.metric.namespace == "read"}
    assert {name: c.committed for name, c in counters.items()} == {"in": 3, "kept": 1, "dropped": 1, "dead": 1}
    asked = "".join(path.read_text() for path in (TERRAFORM / "modules" / "monitoring").glob("*.tf"))
    assert set(re.findall(r'metric_name=\\"(\w+)\\"', asked)) == set(counters)
    steps = re.findall(r'ptransform=~\\"(.*?)\\"', asked)
    assert steps and all(re.fullmatch(step, counters["in"].key.step) for step in steps)


def test_alerts_watch_the_jobs_that_we_start() -> None:
    prefix = re.search(r'job_prefix *= "(.*)"', (TERRAFORM / "main.tf").read_text())
    assert prefix is not None
    for recipe in ("web", "Größe 1", "x" * 80):
        assert JobSpec(recipe, "clean", 3, ("fingerprint",), "work", "clean/wave-00003.json").name.startswith(prefix[1])


@needs_audit
def test_every_alert_has_a_runbook_with_flags_that_exist(parsed: dict[str, dict[str, Any]]) -> None:
    alerts = local(parsed, "terraform/modules/monitoring/main.tf", "alerts")
    runbooks = {path.stem: path.read_text() for path in (TERRAFORM / "modules/monitoring/runbooks").glob("*.md")}
    assert (
        set(alerts)
        == set(runbooks)
        == {*("job-failed", "dead-letters", "launcher-died", "no-progress", "no-workers", "worker-memory")}
    )
    ours = {"--input", "--output", "--work", "--set"}
    for name, text in runbooks.items():
        assert text.count("\n1. ") == 1 and "\n2. " in text, name
        flags = set(re.findall(r"--\w+", text)) - ours
        for flag in flags:
            understood = PipelineOptions([f"{flag}=1"]).get_all_options(drop_default=True, retain_unknown_options=False)
            assert len(understood) == 1, f"{name}: {flag}"


@needs_audit
def test_example_sets_variables_that_exist(parsed: dict[str, dict[str, Any]]) -> None:
    given = set(re.findall(r"^(\w+) ", (TERRAFORM / "example.tfvars").read_text(), re.MULTILINE))
    root = {name: body for file, name, body in blocks(parsed, "variable") if file == "terraform/variables.tf"}
    assert {name for name, body in root.items() if "default" not in body} <= given <= set(root)


def test_no_state_and_no_key_is_kept() -> None:
    """In the repository: whoever has applied it has state and variables in this folder, ignored."""
    listed = subprocess.run(["git", "ls-files", "terraform"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    kept = [name.rpartition("/")[2] for name in listed.stdout.splitlines()]
    assert "main.tf" in kept
    assert not [name for name in kept if ".tfstate" in name or name.endswith((".tfplan", ".json", ".pem"))]
    assert {"*.tfstate", "*.tfstate.*", "terraform.tfvars"} <= set((TERRAFORM / ".gitignore").read_text().split())
