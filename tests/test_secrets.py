"""No credential in the repository: detect-secrets over every file of a checkout."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AUDIT = ROOT / ".venv" / "audit" / "bin" / "detect-secrets"

HASH = re.compile(
    r"--hash=sha256:[0-9a-f]{64}$|^ *\"(sha256|inputs)\": \"[0-9a-f]{64}\",?$"
)  # of requirements, of golden outputs

# (file, kind) -> how often: what looks so and is none. Invented credentials that must be refused or hidden, checksums.
HARMLESS = {
    ("benchmarks/datatrove_peer.py", "Secret Keyword"): 1,
    ("benchmarks/funnel.py", "Secret Keyword"): 1,
    ("benchmarks/made_secrets.py", "AWS Access Key"): 1,
    ("benchmarks/made_secrets.py", "Base64 High Entropy String"): 1,
    ("benchmarks/made_secrets.py", "Hex High Entropy String"): 1,
    ("docs/coming-from/datatrove.md", "Secret Keyword"): 1,
    ("docs/coming-from/mosaic-streaming.md", "Secret Keyword"): 1,
    ("docs/format/compatibility.md", "Secret Keyword"): 1,
    ("refinery/corpus.py", "Hex High Entropy String"): 1,
    ("refinery/loader/stream/simulate.py", "Secret Keyword"): 4,
    ("refinery/pipelines/corpus/export/export_format.py", "Secret Keyword"): 1,
    ("refinery/pipelines/published/statistics/published.py", "Secret Keyword"): 1,
    ("refinery/pipelines/recipe/quantities/quantity.py", "Secret Keyword"): 1,
    ("refinery/pipelines/reports/pages/chart_library.py", "Hex High Entropy String"): 1,
    ("refinery/pipelines/reports/plan/outputs.py", "Secret Keyword"): 1,
    ("refinery/pipelines/reports/plan/page.js", "Secret Keyword"): 1,
    ("refinery/pipelines/run/differences.py", "Secret Keyword"): 1,
    ("refinery/transforms/core/address/host.py", "Basic Auth Credentials"): 1,
    ("refinery/transforms/core/exchange/on_disk.py", "Secret Keyword"): 1,
    ("refinery/transforms/core/hub_file.py", "Secret Keyword"): 1,
    ("refinery/transforms/redaction/pii_types/checks.py", "Base64 High Entropy String"): 1,
    ("refinery/transforms/redaction/secret_types/accounts.py", "Base64 High Entropy String"): 1,
    ("refinery/transforms/tokenize/published.py", "Secret Keyword"): 1,
    ("terraform/tests/refusals.tftest.hcl", "Secret Keyword"): 1,
    ("tests/corpus_factory.py", "Secret Keyword"): 1,
    ("tests/fake_gcs.py", "Secret Keyword"): 2,
    ("tests/fake_s3_wire.py", "AWS Access Key"): 1,
    ("tests/fake_s3_wire.py", "Secret Keyword"): 1,
    ("tests/loader/format/test_manifest.py", "Hex High Entropy String"): 1,
    ("tests/loader/packing/test_long_documents.py", "Hex High Entropy String"): 12,
    ("tests/loader/packing/test_old_states.py", "Hex High Entropy String"): 5,
    ("tests/loader/storage/aws/test_credentials.py", "Secret Keyword"): 3,
    ("tests/loader/storage/aws/test_signing.py", "AWS Access Key"): 1,
    ("tests/loader/storage/aws/test_signing.py", "Hex High Entropy String"): 2,
    ("tests/loader/storage/test_connections.py", "Basic Auth Credentials"): 1,
    ("tests/loader/storage/test_fetch.py", "Basic Auth Credentials"): 1,
    ("tests/loader/storage/test_http_store.py", "Basic Auth Credentials"): 1,
    ("tests/loader/storage/test_store.py", "Hex High Entropy String"): 1,
    ("terraform/tests/launch.tftest.hcl", "Base64 High Entropy String"): 1,
    ("terraform/tests/unmocked/plans.tftest.hcl", "Secret Keyword"): 2,
    ("tests/loader/stream/test_masks.py", "Secret Keyword"): 1,
    ("tests/loader/stream/test_rotation.py", "Hex High Entropy String"): 1,
    ("tests/loader/stream/test_simulate.py", "Secret Keyword"): 2,
    ("tests/pipelines/cli/mistakes.py", "Secret Keyword"): 2,
    ("tests/pipelines/corpus/export/push/test_push_hub.py", "Secret Keyword"): 1,
    ("tests/pipelines/corpus/export/test_verify_export.py", "Hex High Entropy String"): 1,
    ("tests/pipelines/progress/track/test_tracking.py", "Basic Auth Credentials"): 1,
    ("tests/pipelines/recipe/draft/test_draft.py", "Basic Auth Credentials"): 1,
    ("tests/pipelines/reports/plan/test_page_browser.py", "Secret Keyword"): 1,
    ("tests/pipelines/run/steps/test_labels.py", "Secret Keyword"): 1,
    ("tests/pipelines/run/test_written_params.py", "Hex High Entropy String"): 1,
    ("tests/pipelines/runners/cluster/test_kubernetes.py", "Basic Auth Credentials"): 1,
    ("tests/pipelines/runners/cluster/test_kubernetes.py", "Secret Keyword"): 1,
    ("tests/pipelines/runners/cluster/test_words.py", "AWS Access Key"): 1,
    ("tests/pipelines/runners/cluster/test_words.py", "Basic Auth Credentials"): 1,
    ("tests/pipelines/runners/dataflow/test_dataflow_options.py", "Basic Auth Credentials"): 1,
    ("tests/pipelines/runners/dataflow/test_hostile_cloud.py", "Secret Keyword"): 2,
    ("tests/pipelines/test_refused_prefixes.py", "Secret Keyword"): 1,
    ("tests/pipelines/whole_runs/test_every_judge.py", "Secret Keyword"): 1,
    ("tests/pipelines/whole_runs/test_kept_fields_run.py", "Secret Keyword"): 1,
    ("tests/pipelines/whole_runs/test_remote_sources.py", "Secret Keyword"): 1,
    ("tests/pipelines/whole_runs/test_chat_run.py", "AWS Access Key"): 1,
    ("tests/terraform/engine.py", "Secret Keyword"): 1,
    ("tests/transforms/code/test_chunk_stage.py", "Secret Keyword"): 1,
    ("tests/transforms/core/address/test_normalise.py", "Hex High Entropy String"): 1,
    ("tests/transforms/filter/test_moved_spans.py", "AWS Access Key"): 1,
    ("tests/transforms/filter/test_pii_code.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/filter/test_secrets_code.py", "Base64 High Entropy String"): 5,
    ("tests/transforms/tokenize/test_stretches.py", "Secret Keyword"): 1,
    ("tests/transforms/filter/test_pii_code.py", "Hex High Entropy String"): 1,
    ("tests/transforms/filter/test_secrets_code.py", "Secret Keyword"): 4,
    ("tests/transforms/filter/rules/test_keep.py", "Secret Keyword"): 1,
    ("tests/transforms/filter/test_pii_types.py", "Hex High Entropy String"): 2,
    ("tests/transforms/filter/test_secrets.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/filter/test_secrets.py", "Private Key"): 1,
    ("tests/transforms/filter/test_secrets.py", "Secret Keyword"): 2,
    ("tests/transforms/read/http/test_chunks.py", "Hex High Entropy String"): 1,
    ("tests/transforms/read/remote/test_hub.py", "Secret Keyword"): 1,
    ("tests/transforms/read/remote/test_web.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/read/test_sources.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/read/test_special_files.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/redaction/test_redact_address.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/redaction/test_redact_address.py", "Secret Keyword"): 1,
    ("tests/transforms/rights/test_table.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/statistics/test_dropped.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/tokenize/test_published.py", "Hex High Entropy String"): 1,
    ("tests/transforms/write/packing/test_column_files.py", "Hex High Entropy String"): 1,
    ("tests/transforms/write/rows/test_output_paths.py", "Basic Auth Credentials"): 1,
    ("tests/transforms/write/rows/test_spans.py", "AWS Access Key"): 1,
}


def scan(folder: Path, names: list[str]) -> Counter[tuple[str, str]]:
    """(file, kind) of all that looks like a credential; the hashes of requirements are left out."""
    done = subprocess.run([AUDIT, "scan", "--no-verify", *names], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    found: Counter[tuple[str, str]] = Counter()
    for name, entries in results.items():
        lines = (folder / name).read_text().splitlines()
        found.update((name, entry["type"]) for entry in entries if not HASH.search(lines[entry["line_number"] - 1]))
    return found


@pytest.mark.skipif("REFINERY_AUDIT" not in os.environ, reason="`make audit` runs it")
def test_no_credential_is_kept(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    assert dict(scan(ROOT, names)) == HARMLESS
    (tmp_path / "leak.py").write_text(f'key = "AKIA{"Q3EGWXB7M2ZKDN5T"}"\n')  # the scan can fail
    assert scan(tmp_path, ["leak.py"])
