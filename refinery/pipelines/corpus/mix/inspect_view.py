"""What `refinery inspect` says of a view."""

import json
from collections.abc import Iterator

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.view import View, read_view, resolve
from refinery.loader.storage.open_store import open_store
from refinery.loader.view.opened_view import open_corpora
from refinery.pipelines.corpus.mix.build import published_domains
from refinery.pipelines.corpus.mix.tables import bin_lines, domain_lines
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.safe_text import safe


def inspect_view(prefix: str, as_json: bool) -> tuple[list[str], ExitCode]:
    """Lines for the terminal; FAILED if the view or one of its corpora is damaged or missing. Reads only manifests."""
    store = open_store(prefix)
    try:
        view, _ = read_view(store)
    except FormatError as error:
        return [f"damaged: {safe(str(error))}"], ExitCode.FAILED
    problem = ""
    try:
        open_corpora(view, store.root)
    except FormatError as error:
        problem = str(error)
    if as_json:
        said = {
            "kind": "view",
            "state": "damaged" if problem else "complete",
            "name": view.name,
            "corpora": [{"name": each.name, "location": resolve(each.location, store.root)} for each in view.corpora],
            "domains": published_domains(view),
            "totals": dict(view.totals),
            "mixing": view.mixing,
            "plan": dict(view.plan),
            "problems": [problem] if problem else [],
        }
        return [json.dumps(said, sort_keys=True)], ExitCode.FAILED if problem else ExitCode.DONE
    try:
        with written_by_a_run("its plan is"):
            return list(_lines(view, store.root, problem)), ExitCode.FAILED if problem else ExitCode.DONE
    except ValueError as error:  # a FormatError, or a text where a number is formatted
        return [f"damaged: {safe(str(error))}"], ExitCode.FAILED


def _lines(view: View, root: str, problem: str) -> Iterator[str]:
    yield (
        f"{safe(view.name)}: a view, {'damaged' if problem else 'complete'}: {view.totals['documents']:,} "
        f"documents, {view.totals['tokens']:,} tokens in an epoch"
    )
    for link in view.corpora:
        yield f"corpus {safe(link.name)}: {safe(resolve(link.location, root))}"
    yield from bin_lines(published_domains(view), view.plan)
    yield from domain_lines(published_domains(view))
    if view.mixing is not None:
        yield f"mixing: {json.dumps(view.mixing, sort_keys=True)}"
    if problem:
        yield f"problem: {safe(problem)}"
    yield f"next: refinery verify {root}" if not problem else "next: restore the corpus, or make the view again"
