"""Names of the files by which the commands of a run by slices know of each other, in its work location."""

import re

# Steps that every run has; those between are named after phases and numbers.
CUT_STEP, CLEAN, CLEAN_END, PUBLISH = "cut", "clean", "clean-end", "publish"
CUT = "clean/cut.json"  # which slice reads what
FOLDER = "exchange"  # a folder below it for each step
STEP = r"[a-z]+-[0-9]{1,5}"
RECORD = re.compile(rf"{FOLDER}/{STEP}/(slice-[0-9]{{5}}|all|sealed)\.json")  # what makes slices count
SECTIONS = re.compile(rf"{FOLDER}/{STEP}/(slice-[0-9]{{5}}|all)-[0-9a-f]{{8}}\.sections")
STEP_NAME = re.compile(r"clean|clean-end|dedup|(dedup|shards)-[0-9]{1,5}")  # of a step before the last command
FAILED = re.compile(r"at_work/failed-[a-z]{1,20}(-[a-z0-9]{1,20})?-[0-9]{5}-[0-9a-f]{16}\.json")


def wave_name(number: int) -> str:
    """The report of a wave of the inputs."""
    return f"{CLEAN}/wave-{number:05d}.json"
