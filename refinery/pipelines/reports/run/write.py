"""The report as a file of the corpus. It holds seconds, so the manifest does not list it, and no run depends on it."""

from collections.abc import Callable, Iterable, Mapping

from refinery.loader.storage.store import Store
from refinery.pipelines.reports.run.facts import read_facts
from refinery.pipelines.reports.run.report_page import report_page
from refinery.transforms.core.lane import AnyStage

REPORT = "report.html"


def leave_report(
    store: Store,
    seconds: Mapping[str, float] | None,
    own: Iterable[AnyStage],
    say: Callable[[str], None],
    times: tuple[float, float] | None = None,
) -> None:
    """Write PREFIX/report.html unless it is there. At the end of a run, which it never fails: `say` gets one line.
    times: when the run started and ended."""
    try:
        if store.size(REPORT) is not None:
            return
        store.create(REPORT, report_page(read_facts(store, seconds, own=own, times=times)).encode())
    except Exception as error:  # noqa: BLE001 - the corpus is complete, whatever is wrong with its picture
        first = (str(error).splitlines() or [""])[0]
        say(f"warning: no {REPORT} was written ({type(error).__name__}: {first:.200}); `refinery report` tries again")
    else:
        say(f"look at it: {store.url(REPORT)}")
