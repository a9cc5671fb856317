"""Objects of Kubernetes: valid by its own schema, and what they say of retries, rights, secrets and order."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from refinery.pipelines.runners.cluster.kubernetes import Objects, Place, StepJob, run_script, write_objects, yaml_text
from refinery.pipelines.runners.cluster.resources import Resources

SCHEMAS = "1.33", "1.37"  # backoffLimitPerIndex and podFailurePolicy are stable from 1.33 on
HOSTILE = "a b'; $(HOME) ${HOME} `id` \"x: {y}"


def objects(**more: object) -> Objects:
    big, small = Resources(8, 15_600, 5400), Resources(8, 15_600, 9000)
    given: dict[str, object] = {
        "name": "Größe 1",
        "recipe": "name: x\nsources: []\n",
        "words": ["--output", "s3://bucket/web", "--workers", "8"],
        "ending": ["--track", "mlflow"],
        "steps": [
            StepJob("clean", 200, 200, big, 3 << 30),
            StepJob("dedup-0", 1, 200, small),
            StepJob("publish", 1, 0, small),
        ],
        "place": Place("registry/refinery:1", "corpora", "refinery", "s3-key"),
        "throttle": 50,
    }
    return Objects(**(given | more))  # type: ignore[arg-type] - the test's own values


def jobs(given: Objects) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(yaml_text(given.all())) if each["kind"] == "Job"]


def command(job: dict[str, Any]) -> list[str]:
    found: list[str] = job["spec"]["template"]["spec"]["containers"][0]["command"]
    return found


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize("place", [Place("image"), Place("r.example/i@sha256:0", "n", "a", "s")])
def test_objects_are_valid_by_kubernetes_own_schema(version: str, place: Place) -> None:
    found = list(yaml.safe_load_all(yaml_text(objects(place=place).all())))
    assert [each["kind"] for each in found] == ["ConfigMap", "Job", "Job", "Job"]
    for each in found:
        kubernetes_validate.validate(each, version, strict=True)


def test_the_schema_finds_mistakes() -> None:
    job = objects().all()[1]
    for path, value in ((("spec", "completions"), "many"), (("spec", "backoffLimitPerIndexes"), 3)):
        wrong = yaml.safe_load(yaml_text([job]))
        wrong[path[0]][path[1]] = value
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, SCHEMAS[-1], strict=True)


def test_a_job_is_an_index_for_each_slice() -> None:
    first, second, last = (job["spec"] for job in jobs(objects()))
    assert (first["completionMode"], first["completions"], first["parallelism"]) == ("Indexed", 200, 50)
    assert (second["completions"], second["parallelism"]) == (1, 1)
    assert [spec["suspend"] for spec in (first, second, last)] == [False, True, True]
    commands = [command(job) for job in jobs(objects())]
    same = ["refinery", "refine", "/recipe/recipe.yaml", "--output", "s3://bucket/web", "--workers", "8"]
    assert commands == [
        [*same, "--scratch", "/scratch", "--until", "clean", "--slice", "$(JOB_COMPLETION_INDEX)/200"],
        [*same, "--scratch", "/scratch", "--until", "dedup-0", "--slice", "$(JOB_COMPLETION_INDEX)/200"],
        [*same, "--scratch", "/scratch", "--track", "mlflow", "--until", "publish"],
    ]


def test_a_disruption_counts_as_no_failure_and_a_usage_error_ends_its_index() -> None:
    spec = jobs(objects())[0]["spec"]
    assert spec["backoffLimitPerIndex"] == 3 and spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["podFailurePolicy"]["rules"] == [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailIndex", "onExitCodes": {"containerName": "refinery", "operator": "In", "values": [2]}},
    ]


def test_pods_have_few_rights_and_ask_for_what_a_task_takes() -> None:
    pod = jobs(objects())[0]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"] == {
        "requests": {"cpu": "8", "memory": "15600Mi", "ephemeral-storage": "3072Mi"},
        "limits": {"memory": "15600Mi"},
    }
    assert pod["serviceAccountName"] == "refinery"
    assert container["envFrom"] == [{"secretRef": {"name": "s3-key"}}]
    plain = jobs(objects(place=Place("i")))[0]["spec"]["template"]["spec"]
    assert "serviceAccountName" not in plain and "envFrom" not in plain["containers"][0]


def test_hostile_words_are_words() -> None:
    """Kubernetes expands $(NAME) in commands, and $$ is a dollar."""
    words = command(jobs(objects(words=["--set", HOSTILE]))[0])
    assert words[4] == HOSTILE.replace("$", "$$")
    text = "name: '$(HOME)'\n# x: [\n\ttab\n"
    config = next(yaml.safe_load_all(yaml_text(objects(recipe=text).all())))
    assert config["data"] == {"recipe.yaml": text}
    with pytest.raises(ValueError, match="do not print"):
        objects(words=["a\nb"]).all()


def test_credentials_and_large_recipes_are_refused() -> None:
    with pytest.raises(ValueError, match="looks like a credential"):
        objects(recipe="paths: ['https://user:word@host/x']").all()
    with pytest.raises(ValueError, match="more than 1,000,000 bytes"):
        objects(recipe="#" * 1_000_001).all()


@pytest.mark.parametrize(
    "given",
    [{"image": ""}, {"image": "a b"}, {"image": "i", "namespace": "A"}, {"image": "i", "secret": "a_b"},
     {"image": "i", "service_account": "a\nb"}],
)  # fmt: skip
def test_names_that_kubernetes_does_not_take_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="--"):
        Place(**given)


def test_names_are_short_and_tell_runs_apart() -> None:
    long = objects(name="x" * 200, steps=[StepJob("a" * 25, 99_999, 99_999, Resources(1, 1, 1))])
    assert len(f"{jobs(long)[0]['metadata']['name']}-99999") <= 63
    assert objects().label != objects(words=["--output", "s3://bucket/other"]).label
    assert objects().label.startswith("gr-e-1-") and objects(name="…").label.startswith("run-")


# --- run.sh --------------------------------------------------------------------------------------------------------

KUBECTL = """#!/bin/bash
echo "$*" >> {folder}/calls
case "$*" in
*"get configmap"*) [ -e {folder}/created ] ;;
*create*) touch {folder}/created ;;
*"get job"*status.conditions*) [[ $* == *{fails}* ]] && echo FailureTarget Failed || echo SuccessCriteriaMet Complete ;;
*failedIndexes*) echo 3,7 ;;
esac
"""


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Path]:
    """run.sh, whose pauses are over at once."""
    yield write_objects(tmp_path / "jobs", objects())[-1]


def run(script: Path, tmp_path: Path, fails: str = "no-step") -> "subprocess.CompletedProcess[str]":
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    for name, text in (("kubectl", KUBECTL.format(folder=tmp_path, fails=fails)), ("sleep", "#!/bin/bash\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    return subprocess.run([script], env=env, capture_output=True, text=True, check=False)


def test_each_job_starts_when_the_one_before_is_complete(steps: Path, tmp_path: Path) -> None:
    assert subprocess.run(["bash", "-n", steps], check=False).returncode == 0
    for _ in range(2):  # again: nothing is created twice
        done = run(steps, tmp_path)
        assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sum("create" in call for call in calls) == 1
    assert all(call.startswith("--namespace corpora ") for call in calls)
    label = objects().label
    patched = [call.split()[4] for call in calls if "patch" in call]
    assert patched == 2 * [f"{label}-clean", f"{label}-dedup-0", f"{label}-publish"]


def test_a_failed_job_ends_the_chain(steps: Path, tmp_path: Path) -> None:
    done = run(steps, tmp_path, fails="clean")
    assert done.returncode == 1 and "clean failed; indexes: 3,7" in done.stderr
    assert "dedup-0" not in (tmp_path / "calls").read_text()


def test_the_script_is_only_of_plain_names() -> None:
    assert "$(touch" not in run_script(objects(name="$(touch x)"))
