"""Kubernetes objects of a run: a ConfigMap with the recipe, and an Indexed Job for each step, an index a slice.

All jobs but the first are suspended. `run.sh` waits for one after the other, since no field of a Job says that it comes
after another one, and pods that only waited would hold their machines.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from refinery.pipelines.runners.cluster.resources import MIB, Resources
from refinery.pipelines.runners.cluster.words import STEP, looks_secret, one_line, quoted

USER = 10001  # of our image, which has no other one; pods of others run as it, too
RECIPE_FOLDER, SCRATCH = "/recipe", "/scratch"
INDEX = "$(JOB_COMPLETION_INDEX)"  # of an Indexed Job, in every container's environment
RETRIES = 3  # of an index; pods that were evicted or preempted are not counted
STOP_SECONDS = 120  # for the command to end cleanly
USAGE = 2  # exit code of a command that no repetition makes right
MOST_RECIPE = 1_000_000  # bytes: a ConfigMap has 1 MiB
RUN_YAML, RUN = "run.yaml", "run.sh"
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# A job's pods have host names of its name, a dash and the index: 63 characters.
MOST_NAME = 23
IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]{0,500}")


@dataclass(frozen=True)
class Place:
    """Where jobs run. secret: its keys become environment variables. service_account: with a workload identity, it
    needs no secret. Raises ValueError for names that Kubernetes does not take."""

    image: str
    namespace: str = ""
    service_account: str = ""
    secret: str = ""

    def __post_init__(self) -> None:
        if not IMAGE.fullmatch(self.image):
            raise ValueError(f"--image: {self.image!r:.200} given, REGISTRY/NAME:TAG or …@sha256:DIGEST is allowed")
        for flag in ("namespace", "service_account", "secret"):
            value = getattr(self, flag)
            if value and not LABEL.fullmatch(value):
                raise ValueError(
                    f"--{flag.replace('_', '-')}: {value!r:.200} given; up to 63 of a-z, 0-9 and - are allowed"
                )


@dataclass(frozen=True)
class StepJob:
    """A step. slices: of the run; 0 for the last command, which publishes. scratch_bytes: temporary files
    of a task, 0 where they are not known."""

    step: str
    tasks: int
    slices: int
    resources: Resources
    scratch_bytes: int = 0


@dataclass(frozen=True)
class Objects:
    """The objects of a run. name: of the recipe, of any characters. recipe: its text. words: of `refine`, the recipe's
    path left out; ending: those that only the last command takes. throttle: pods at once, 0 for all."""

    name: str
    recipe: str
    words: Sequence[str]
    ending: Sequence[str]
    steps: Sequence[StepJob]
    place: Place
    throttle: int = 0

    @property
    def label(self) -> str:
        """The beginning of all names: the recipe's, and six digits of what tells this run from others."""
        name = re.sub("[^a-z0-9]+", "-", self.name.lower())[:MOST_NAME].strip("-") or "run"
        return f"{name}-{hashlib.sha256(json.dumps([self.recipe, *self.words]).encode()).hexdigest()[:6]}"

    def job_name(self, step: str) -> str:
        if not STEP.fullmatch(step):
            raise ValueError(f"step: {step!r:.80} given, a-z, 0-9 and - are allowed")
        return f"{self.label}-{step}"

    def all(self) -> list[dict[str, Any]]:
        """The ConfigMap, then the jobs in order."""
        if len(self.recipe.encode()) > MOST_RECIPE:
            raise ValueError(f"the recipe has more than {MOST_RECIPE:,} bytes; put lists into files in a bucket")
        if looks_secret(self.recipe):
            raise ValueError("the recipe has a value that looks like a credential; name it in a --secret instead")
        data = {"recipe.yaml": self.recipe}
        recipe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata(self.label), "data": data}
        return [recipe, *(self._job(step, first=number == 0) for number, step in enumerate(self.steps))]

    def _metadata(self, name: str) -> dict[str, Any]:
        space = {"namespace": self.place.namespace} if self.place.namespace else {}
        return {"name": name, **space, "labels": self._labels()}

    def _labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": "refinery", "app.kubernetes.io/instance": self.label}

    def _job(self, step: StepJob, first: bool) -> dict[str, Any]:
        disruption = {"type": "DisruptionTarget", "status": "True"}
        usage = {"containerName": "refinery", "operator": "In", "values": [USAGE]}
        spec = {
            "suspend": not first,
            "completionMode": "Indexed",
            "completions": step.tasks,
            "parallelism": min(step.tasks, self.throttle or step.tasks),
            "backoffLimitPerIndex": RETRIES,
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [disruption]},
                    {"action": "FailIndex", "onExitCodes": usage},
                ]
            },
            "template": {"metadata": {"labels": self._labels()}, "spec": self._pod(step)},
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self._metadata(self.job_name(step.step)),
            "spec": spec,
        }

    def _pod(self, step: StepJob) -> dict[str, Any]:
        account = {"serviceAccountName": self.place.service_account} if self.place.service_account else {}
        return {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": STOP_SECONDS,
            **account,
            "automountServiceAccountToken": False,  # a workload identity has a token of its own
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self._container(step)],
            "volumes": [
                {"name": "recipe", "configMap": {"name": self.label}},
                {"name": "scratch", "emptyDir": {}},
            ],
        }

    def _container(self, step: StepJob) -> dict[str, Any]:
        memory = f"{step.resources.memory_mib}Mi"
        disk = {"ephemeral-storage": f"{-(-step.scratch_bytes // MIB)}Mi"} if step.scratch_bytes else {}
        secret = {"envFrom": [{"secretRef": {"name": self.place.secret}}]} if self.place.secret else {}
        return {
            "name": "refinery",
            "image": self.place.image,
            "command": self._command(step),
            "workingDir": SCRATCH,
            **secret,
            "env": [{"name": "HOME", "value": SCRATCH}, {"name": "TMPDIR", "value": SCRATCH}],
            "resources": {
                "requests": {"cpu": str(step.resources.cpus), "memory": memory, **disk},
                "limits": {"memory": memory},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "recipe", "mountPath": RECIPE_FOLDER, "readOnly": True},
                {"name": "scratch", "mountPath": SCRATCH},
            ],
        }

    def _command(self, step: StepJob) -> list[str]:
        words = ["refinery", "refine", f"{RECIPE_FOLDER}/recipe.yaml", *self.words, "--scratch", SCRATCH]
        words += [] if step.slices else self.ending
        found = [as_itself(one_line("argument", word)) for word in words]
        found += ["--until", step.step]
        return [*found, "--slice", f"{INDEX}/{step.slices}"] if step.slices else found


def as_itself(word: str) -> str:
    """A word of a command, in which Kubernetes expands no variable.

    >>> as_itself("a$(HOME)$b")
    'a$$(HOME)$$b'
    """
    return word.replace("$", "$$")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, and every list indented below its key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(objects: Sequence[Mapping[str, Any]]) -> str:
    """The objects as documents of YAML."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000, explicit_start=True)


def run_script(objects: Objects) -> str:
    """run.sh: creates the objects, and starts each job when the one before is complete."""
    space = f" --namespace {shlex.quote(objects.place.namespace)}" if objects.place.namespace else ""
    jobs = quoted(objects.job_name(step.step) for step in objects.steps)
    return "\n".join(_script(space, jobs, objects.label))


def _script(space: str, jobs: str, label: str) -> Iterator[str]:
    yield "#!/bin/bash"
    yield "# Runs the jobs of run.yaml, each after the one before. It may be stopped, and called again: jobs go on."
    yield f"# A job that failed: run `refinery cluster kubernetes` again, after `kubectl{space} delete -f {RUN_YAML}`."
    yield "set -euo pipefail"
    yield 'cd "$(dirname "$0")"'
    yield f'k() {{ kubectl{space} "$@"; }}'
    yield f"k get configmap {label} > /dev/null 2>&1 || k create -f {RUN_YAML}"
    yield f"for job in {jobs}; do"
    yield '    echo "$(date -Is) $job"'
    yield '    k patch job "$job" --type merge --patch ' + shlex.quote(json.dumps({"spec": {"suspend": False}}))
    yield '    ended=""'
    yield "    while [[ ! $ended =~ Complete|Failed ]]; do"
    yield "        sleep 10"
    yield '        ended=$(k get job "$job" -o \'jsonpath={.status.conditions[?(@.status=="True")].type}\')'
    yield "    done"
    yield "    if [[ $ended =~ Failed ]]; then"
    yield '        echo "$job failed; indexes: $(k get job "$job" -o \'jsonpath={.status.failedIndexes}\')" >&2'
    yield "        exit 1"
    yield "    fi"
    yield "done"
    yield ""


def write_objects(folder: Path, objects: Objects) -> list[Path]:
    """run.yaml and run.sh in a folder, which is made. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {RUN_YAML: yaml_text(objects.all()), RUN: run_script(objects)}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / RUN).chmod(0o755)
    return [folder / name for name in texts]
