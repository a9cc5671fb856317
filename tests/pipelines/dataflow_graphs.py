"""The three phases as jobs on Dataflow, built and serialised on this machine: what tests of the launch share."""

import base64
import bz2
import site
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import yaml
from apache_beam.internal.gcp import auth
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2 as api

from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.runners.dataflow.launch_flags import fill_in
from refinery.pipelines.runners.same_code import CheckWorkers
from refinery.transforms.dedup.deduplicate import list_parts
from refinery.transforms.dedup.reference_corpora import ReferenceCorpus
from refinery.transforms.read.sources import ReadTask, write_tasks
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.shards import ShardsJob, provenance_columns
from tests.pipelines.inputs import ROOT

OUTPUT, WORK = "gs://corpus/web", "gs://staging/web"
NEEDED = (
    "--project=my-project",
    "--region=europe-west4",
    "--temp_location=gs://staging/temporary",
    "--sdk_container_image=europe-west4-docker.pkg.dev/my-project/refinery/worker:0.1.0",
    "--service_account_email=refinery-worker@my-project.iam.gserviceaccount.com",
    "--subnetwork=regions/europe-west4/subnetworks/refinery",
)
OFFLINE = ("--no_auth", "--dataflow_endpoint=http://localhost:1", "--job_name=refinery-test")
PHASES = ("clean", "dedup", "shards")


def demo_recipe(**sections: Any) -> Recipe:
    """The demo's recipe, every stage on, all files in buckets."""
    plain = yaml.safe_load((ROOT / "recipes" / "demo.yaml").read_text())
    for source in plain["sources"]:
        source["paths"] = ["gs://raw/crawl/*.warc.gz"]
    plain["tokenizer"]["path"] = "gs://raw/tokenizer.json"
    plain["quality"]["model"] = "gs://raw/quality.bin"
    plain["line_dup"] = {"max_documents": 6}
    plain["substring_dup"] = {"min_words": 50}
    return parse_recipe({**plain, **sections})


def phase_build(phase: str, recipe: Recipe, files: int, lists: Path) -> Callable[[beam.Pipeline], None]:
    """A phase over so many files, parts and pairs, as `refine` builds it; the lists of them are published in `lists`,
    which stands for the work location."""
    report = {"clean": "clean/wave-00000.json", "dedup": "dedup/report.json", "shards": "shards/report.json"}[phase]

    def build(pipeline: beam.Pipeline) -> None:
        if phase == "clean":
            paths = (f"gs://raw/crawl/CC-MAIN-{n:06d}.warc.gz" for n in range(files))
            listed = write_tasks(str(lists), [ReadTask(p, "warc", "crawl", n, 1 << 30) for n, p in enumerate(paths)])
            graphs.clean(pipeline, recipe, moved(listed), WORK, report, {"tasks": listed.plain()})
        elif phase == "dedup":
            rows = 1_000_000 // files  # the graph depends on the documents: rounds of contraction
            parts = [(f"{WORK}/signatures/part-{n:032x}.parquet", rows) for n in range(files)]
            provenance = tuple((f"gs://old/train/web/{n}.provenance.parquet", 9, "00000000") for n in range(files))
            old = ReferenceCorpus("gs://old", tuple(parts), provenance)
            found = list_parts(str(lists), parts, (old,))
            graphs.dedup(pipeline, recipe, moved(found), 1024, WORK, report, {})
        else:
            names = [(f"documents/part-{n:032x}.parquet", f"verdicts/part-{n:032x}.parquet") for n in range(files)]
            pairs = [PartPair(WORK, documents, WORK, verdicts, 1) for documents, verdicts in names]
            counts = {"train/web": files, "validation/web": 1 + files // 100}
            listed = write_pairs(str(lists), pairs)
            domains = {name: facts.domain for name, facts in recipe.source_facts().items()}
            columns = provenance_columns(recipe.provenance())
            job = ShardsJob(recipe.shards, counts, domains, "uint16", columns, OUTPUT)
            graphs.shards(pipeline, recipe, moved(listed), job, 7, WORK, report, {})
        pipeline | CheckWorkers()

    return build


def moved(lists: Any) -> Any:
    """The same lists as if they lay in the work location."""
    inner = {name: moved(getattr(lists, name)) for name in ("headers", "listings") if hasattr(lists, name)}
    return replace(lists, **(inner or {"location": WORK}))


def options_of(flags: Sequence[str]) -> PipelineOptions:
    """Beam's options of the filled flags."""
    return PipelineOptions(["--runner=DataflowRunner", *flags])


def no_credentials(patch: pytest.MonkeyPatch) -> None:
    """Keep google-auth from looking for credentials, which takes 16 seconds where there are none."""
    patch.setattr(auth._Credentials, "_credentials_init", True)


def dry_run(build: Callable[[beam.Pipeline], None], flags: Sequence[str] = NEEDED) -> Any:
    """The job that Dataflow would get, its graph in `.proto_pipeline`. Nothing is sent."""
    filled = fill_in(flags, output=OUTPUT, work=WORK, environment={})
    pipeline = beam.Pipeline(options=options_of([*filled, *OFFLINE, "--dry_run=True"]))
    build(pipeline)
    return pipeline.run().job


def steps(graph: api.Pipeline) -> dict[str, api.PTransform]:
    """Name -> step, of all steps that run."""
    found = graph.components.transforms.values()
    return {step.unique_name: step for step in found if not step.subtransforms}


def functions(graph: api.Pipeline) -> Iterator[tuple[str, bytes]]:
    """(step, its pickled function) of all steps that have one, unpacked."""
    for name, step in steps(graph).items():
        if step.spec.urn == "beam:transform:pardo:v1":
            payload = api.ParDoPayload.FromString(step.spec.payload).do_fn.payload
            yield name, bz2.decompress(base64.b64decode(payload))


def local_strings() -> list[bytes]:
    """What would tell of this machine: where the project, Python, its packages, homes and temporary files are."""
    places = [str(ROOT), sys.prefix, sys.base_prefix, str(Path.home()), tempfile.gettempdir(), *site.getsitepackages()]
    return sorted({place.rstrip("/").encode() + b"/" for place in places if len(place) > 1})
