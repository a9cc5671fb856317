"""How much is asked of a runner, by its flags."""

import os

import pytest

from refinery.pipelines.recipe.recipe import RunParams
from refinery.pipelines.run.waves import wave_limits
from refinery.pipelines.runners.capacity import HERE, least_workers, machine_vcpus, vcpus_asked_for


@pytest.mark.parametrize(
    ("machine", "vcpus"),
    [
        ("n2-standard-4", 4),
        ("n2-highmem-128", 128),
        ("custom-6-20480", 6),
        ("n2-custom-8-32768-ext", 8),
        ("c3-standard-22-lssd", 22),
        ("e2-micro", 1),
        ("", 4),
        ("nonsense-0", 4),
        ("n2-standard-99999999999", 4),
    ],
)
def test_a_machine_types_name_says_its_vcpus(machine: str, vcpus: int) -> None:
    assert machine_vcpus(machine) == vcpus


@pytest.mark.parametrize(
    ("runner", "flags", "vcpus"),
    [
        *((name, ["--parallelism=9"], 0) for name in HERE),
        ("DataflowRunner", ["--max_num_workers=50", "--machine_type=n2-standard-4"], 200),
        ("DataflowRunner", ["--num_workers=3"], 12),
        ("DataflowRunner", [], 4),
        ("FlinkRunner", ["--parallelism=64"], 64),
        ("SparkRunner", ["--sdk_worker_parallelism=7"], 7),
        ("FlinkRunner", [], os.cpu_count()),
        ("FlinkRunner", ["--parallelism=-1"], os.cpu_count()),
    ],
)
def test_vcpus_follow_from_flags(runner: str, flags: list[str], vcpus: int) -> None:
    assert vcpus_asked_for(runner, flags) == vcpus


def test_a_hundred_terabytes_are_twenty_waves_of_two_hours() -> None:
    """With the default of 50 workers of 4 vCPUs, at 80 vCPU hours a terabyte."""
    size, files = wave_limits(RunParams(), 200)
    assert (size, files) == (5 * 10**12, 100_000)
    assert wave_limits(RunParams(), 2)[0] == 50 * 10**9
    assert wave_limits(RunParams(), 0) == (RunParams().wave_bytes, RunParams().wave_files)


@pytest.mark.parametrize(("size", "workers"), [(5 * 10**12, 25), (10**15, 50), (1, 1), (10**12, 5)])
def test_the_service_is_told_that_the_input_is_large(size: int, workers: int) -> None:
    assert least_workers(size, ["--max_num_workers=50", "--machine_type=n2-standard-4"]) == workers
