"""Which flags there are: of the command line, of this project's other programs, of Beam, of tools that pages name."""

import argparse
import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions

from refinery.loader.stream.simulate import SimulateParams
from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.shell.help_text import all_commands

ROOT = Path(__file__).parents[2]
# Folders of programs with arguments of their own.
PROGRAMS = ("benchmarks", "examples", "examples/frameworks", "recipes", "loader/stream")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")

# Flags of other programs, by program.
OTHERS = {
    "dolma": {"--experiment", "--taggers", "--processes", "--dedupe", "--bloom_filter", "--no-bloom_filter"}
    | {"--destination"},
    "Megatron": {"--data-path", "--tokenizer-type", "--tokenizer-model", "--split-sentences", "--output-prefix"}
    | {"--append-eod", "--json-keys"},
    "data-juicer": {"--config"},
    "cibuildwheel": {"--print-build-identifiers"},
    "worker pool": {"--service_port", "--host"},
    "torchrun": {"--nproc-per-node"},
    "curl": {"--user"},
    "mysqldump": {"--tab"},
    "zstd": {"--long"},
    "git": {"--first-parent"},
    "pytest-xdist": {"--dist"},
    "pytest": {"--durations"},
    "mkdocs": {"--strict"},
    "sbatch": {"--partition", "--account", "--time", "--mem", "--cpus-per-task", "--array", "--dependency"}
    | {"--kill-on-invalid-dep"},
    "kubectl": {"--filename"},
    "gcloud": {"--impersonate-service-account", "--service", "--recursive", "--project", "--add-missing"}
    | {"--source-creds-file", "--include-prefixes", "--clear-soft-delete", "--flatten", "--cache-control"},
}


@functools.cache
def own() -> frozenset[str]:
    """Flags of `refinery` and its commands."""
    parsers = [build_parser(), *(parser for _, parser in all_commands(build_parser()))]
    return frozenset(option for parser in parsers for action in parser._actions for option in action.option_strings)


@functools.cache
def of_programs() -> frozenset[str]:
    """Flags of the benchmarks, the examples, the demo's generators and the simulation."""
    files = (path for folder in PROGRAMS for path in (ROOT / folder).glob("*.py"))
    found = {flag for path in files for flag in re.findall(r'"(--[a-z][\w-]*)"', path.read_text())}
    return frozenset(found | {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(SimulateParams)})


@functools.cache
def of_beam() -> frozenset[str]:
    """Flags that a runner of Beam takes."""

    def classes(cls: type[PipelineOptions]) -> Iterator[type[PipelineOptions]]:
        yield cls
        for below in cls.__subclasses__():
            yield from classes(below)

    parser = argparse.ArgumentParser(conflict_handler="resolve")
    for cls in classes(PipelineOptions):
        if cls.__module__.startswith("apache_beam.options") and "_add_argparse_args" in vars(cls):
            cls._add_argparse_args(parser)
    return frozenset(option for action in parser._actions for option in action.option_strings)
