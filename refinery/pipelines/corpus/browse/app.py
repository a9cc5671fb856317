"""The pages of `refinery browse` as an ASGI application: routes, threads that do the work, bounds on each request."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from refinery.pipelines.corpus.browse.guard.middleware import MOST_BODY, Guard
from refinery.pipelines.corpus.browse.guard.session import OPEN, Session
from refinery.pipelines.corpus.browse.pages.frame import Frame, Run, alert, note, page, static_files
from refinery.pipelines.corpus.browse.pages.overview import overview
from refinery.pipelines.corpus.browse.pages.visit import PAGES, Visit, load
from refinery.pipelines.corpus.browse.reading.judgements import Judgements
from refinery.pipelines.corpus.browse.reading.looked_at import Busy, LookedAt, NotFinished

THREADS = 4  # that read and judge
SECONDS = 30.0  # that a request waits for them
MOST_FIELDS = 20  # of a form or a query


@dataclass(frozen=True)
class Browser:
    """What is looked at, one run or two. sample: documents of each half of a sample."""

    runs: Sequence[LookedAt]
    judgements: Judgements
    session: Session
    sample: int

    def frame(self, run: LookedAt | None = None) -> Frame:
        """Of a page about a run, or about none."""
        known = [named(each) for each in self.runs]
        return Frame(self.session.base, self.session.csrf, known, None if run is None else named(run))


def named(run: LookedAt) -> Run:
    """A run as pages name it."""
    opened = run.opened
    finished = opened is not None and not opened.corpus.is_adopted
    return Run(run.label, run.prefix, opened.corpus.name if opened else run.prefix, finished)


def make_app(browser: Browser) -> Guard:
    """The application, which answers its session's requests alone."""
    pool = ThreadPoolExecutor(THREADS, "refinery-browse")
    base, files = browser.session.base, cache(static_files)

    async def work(make: Callable[[], Response], frame: Callable[[], Frame]) -> Response:
        """What `make` answers in one of the threads, within the time of a request; its errors as pages."""

        def told(status: int, said: str) -> Response:
            try:
                return problem(frame(), status, said)
            except Exception:  # noqa: BLE001 - of a run that can no longer be opened: then there is no frame either
                return PlainTextResponse(f"{said[:2000]}\n", status)

        def guarded() -> Response:
            try:
                return make()
            except Busy as error:
                return told(503, str(error))
            except NotFinished as error:
                return told(404, str(error))
            except ValueError as error:  # FormatError is one
                return told(422, str(error))
            except Exception as error:  # noqa: BLE001 - libraries fail in any way over a damaged file: a page says so
                return told(500, f"{type(error).__name__}: {error}")

        future = asyncio.get_running_loop().run_in_executor(pool, guarded)
        try:
            return await asyncio.wait_for(future, SECONDS)
        except TimeoutError:  # the thread goes on to its own bound; one that has not begun never does
            return PlainTextResponse(f"This took more than {SECONDS:g} s. Ask for less, or try again.\n", 503)

    async def open_session(request: Request) -> Response:
        cookie = browser.session.exchange(request.query_params.get("token", ""))
        if cookie is None:
            return PlainTextResponse(
                "This address was used already, or is another one. Start the command again.\n", 403
            )
        return RedirectResponse(f"{base}/", 303, {"set-cookie": cookie})

    async def start(request: Request) -> Response:
        return RedirectResponse(f"{base}/{browser.runs[0].label}/", 303)

    async def static(request: Request) -> Response:
        found = files().get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("no such file\n", 404)
        return Response(found[1], headers={"content-type": found[0]})

    def of_run(name: str) -> Callable[[Request], object]:
        async def handle(request: Request) -> Response:
            run = run_of(browser, request)
            query = fields(request.url.query)

            def answer() -> Response:
                if not name:
                    return HTMLResponse(overview(browser.frame(run), run))
                return HTMLResponse(load(name)(Visit(browser.frame(run), run, run.finished, query, browser.sample)))

            return await work(answer, lambda: browser.frame(run))

        return handle

    async def judge(request: Request) -> Response:
        run, form = run_of(browser, request), await read_form(request)
        if form is None or not browser.session.allows(form.get("csrf", "")):
            return PlainTextResponse("The form is none of this session's. Load its page again.\n", 403)

        def answer() -> Response:
            from refinery.pipelines.corpus.browse.pages.judgements import new_judgement

            browser.judgements.add(new_judgement(run, run.finished, form))
            return RedirectResponse(f"{base}/judgements", 303)

        return await work(answer, lambda: browser.frame(run))

    async def judgements(request: Request) -> Response:
        from refinery.pipelines.corpus.browse.pages.judgements import judgements_page

        return await work(lambda: HTMLResponse(judgements_page(browser.frame(), browser.judgements)), browser.frame)

    async def export(request: Request) -> Response:
        told = {
            "content-type": "application/x-ndjson",
            "content-disposition": 'attachment; filename="judgements.jsonl"',
        }
        return await work(lambda: Response(browser.judgements.export(), headers=told), browser.frame)

    async def differences(request: Request) -> Response:
        from refinery.pipelines.corpus.browse.pages.differences import differences_page

        a, b = browser.runs
        return await work(lambda: HTMLResponse(differences_page(browser.frame(), a, b, browser.sample)), browser.frame)

    async def nothing(request: Request, error: Exception) -> Response:
        return PlainTextResponse("There is no such page.\n", 404)

    routes = [
        Route(f"{base}/{OPEN}", open_session),
        Route(f"{base}/", start),
        Route(f"{base}/static/{{name}}", static),
        Route(f"{base}/judgements", judgements),
        Route(f"{base}/judgements.jsonl", export),
        *([Route(f"{base}/differences", differences)] if len(browser.runs) > 1 else ()),
        *(Route(f"{base}/{run.label}/{name}", of_run(name)) for run in browser.runs for name in ("", *PAGES)),
        *(Route(f"{base}/{run.label}/judge", judge, methods=["POST"]) for run in browser.runs),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: nothing}), browser.session)


def run_of(browser: Browser, request: Request) -> LookedAt:
    """The run that an address is about."""
    label = request.url.path.removeprefix(browser.session.base).split("/")[1]
    return next(run for run in browser.runs if run.label == label)


def fields(text: str) -> dict[str, str]:
    """The fields of a query or a form: of one that is given twice the last one; none of one with too many."""
    try:
        return dict(parse_qsl(text, max_num_fields=MOST_FIELDS, errors="replace"))
    except ValueError:
        return {}


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a form; None for another kind of content, or more than is allowed."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            return None
    return fields(body.decode("utf-8", "replace"))


def problem(frame: Frame, status: int, said: str) -> Response:
    """A page that says what is wrong. Messages may hold what was asked for: they are text."""
    return HTMLResponse(
        page(frame, "This cannot be shown", alert(said[:2000]), note("Go back, or choose above.")), status
    )
