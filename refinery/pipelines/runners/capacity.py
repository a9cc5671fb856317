"""How much a runner can do at once: what waves of phase 1 are sized by. Looks at flags alone."""

import os
from collections.abc import Sequence
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from refinery.pipelines.runners.dataflow.machine_types import machine_vcpus

# Runners whose jobs run on this machine, where a wave costs no machines to start.
HERE = ("local", "DirectRunner", "BundleBasedDirectRunner", "FnApiRunner", "SwitchingDirectRunner", "PrismRunner")
DATAFLOW = "DataflowRunner"
# Phase 1 of web pages takes 80 vCPU hours for a terabyte of .warc.gz: docs/operations/sizing.md. Text takes a third.
BYTES_PER_VCPU_HOUR = 10**12 // 80
WAVE_HOURS = 2  # of work in a job of phase 1, so starting and stopping its workers is a few per cent of it


def vcpus_asked_for(runner: str, flags: Sequence[str]) -> int:
    """vCPUs that a job on this runner may use at most, by its flags; 0 for jobs on this machine.

    Dataflow: --max_num_workers of --machine_type. Other runners: --parallelism or --sdk_worker_parallelism, and where
    neither is given, as many as this machine has.
    """
    if runner in HERE:
        return 0
    given: dict[str, Any] = PipelineOptions(list(flags)).get_all_options()
    if runner == DATAFLOW:
        workers = int(given.get("max_num_workers") or 0) or int(given.get("num_workers") or 0) or 1
        return workers * machine_vcpus(str(given.get("machine_type") or ""))
    slots = int(given.get("parallelism") or 0), int(given.get("sdk_worker_parallelism") or 0)
    # Beam's defaults are -1 and 1.
    return max(slots) if slots[0] > 0 or slots[1] > 1 else os.cpu_count() or 1


def least_workers(input_bytes: int, flags: Sequence[str]) -> int:
    """Workers of Dataflow below which a job of so much input should not fall: half of those that read it in WAVE_HOURS,
    1 to --max_num_workers. The service cannot see how large the input is, since it is named by a list.
    """
    given: dict[str, Any] = PipelineOptions(list(flags)).get_all_options()
    each = machine_vcpus(str(given.get("machine_type") or "")) * BYTES_PER_VCPU_HOUR * WAVE_HOURS
    most = int(given.get("max_num_workers") or 0) or 1
    return max(1, min(most, round(input_bytes / each / 2)))
