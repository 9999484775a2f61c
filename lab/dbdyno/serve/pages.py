"""Pages of a workspace: runs, a run's report, a run in progress.

Handlers are thin: each asks `runs` or `live`, and fills a template with escaped text. Readers of
the store are plain functions, which the server runs on threads of its own.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from dbdyno.errors import StoreError
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Said, say
from dbdyno.report.charts.drawing import draw
from dbdyno.report.charts.vega import COLOURS
from dbdyno.report.formats import html
from dbdyno.report.formats.replay import JudgedRun
from dbdyno.report.parts import translated
from dbdyno.report.story import story_of
from dbdyno.serve import live
from dbdyno.serve.guard import Guard
from dbdyno.serve.runs import Runs
from dbdyno.store.store import FEED_NAME

TEMPLATES: Final = Path(__file__).parent / "templates"
REPORT_HEADERS: Final = {"Content-Security-Policy": "frame-ancestors 'none'"}
"""The report brings a policy of its own, which names its scripts by their digests."""
PLACE: Final = re.compile(r"[0-9]{1,12}")
"""A place in a feed; a longer number is none of ours."""
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"

Handler = Callable[[Request], Response | Awaitable[Response]]


def application(runs: Runs, language: Language = Language.EN) -> Guard:
    """All pages behind the guard, as an ASGI application."""
    pages = Pages(runs, language)
    routes: dict[str, Handler] = {
        "/": pages.index,
        "/runs/{run_id}": pages.report,
        "/runs/{run_id}/live": pages.live,
        "/runs/{run_id}/events": pages.events,
        "/static/{name}": pages.static,
    }
    app = Starlette(
        routes=[Route(path, handler, methods=["GET"]) for path, handler in routes.items()],
        exception_handlers={StoreError: pages.trouble, HTTPException: pages.not_there},
    )
    return Guard(app)


class Pages:
    """Handlers over a workspace's runs."""

    def __init__(self, runs: Runs, language: Language) -> None:
        self._runs = runs
        self._language = language
        self._words = {key: said_in(text, language) for key, text in WORDS.items()}
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=self._translated,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def index(self, request: Request) -> Response:
        return self._page("runs.html.j2", runs=self._runs.listed())

    def report(self, request: Request) -> Response:
        """A run's report from its stored trials."""
        run = self._runs.judged(request.path_params["run_id"])
        return HTMLResponse(_report(run, self._language), headers=REPORT_HEADERS)

    def live(self, request: Request) -> Response:
        """A run in progress; its script listens to `events`."""
        listed = self._runs.run(request.path_params["run_id"])
        shades = [f"light-dark({one}, {html.DARK.get(one.lower(), one)})" for one in COLOURS]
        systems = {"domain": listed.systems, "range": shades}
        return self._page("live.html.j2", listed=listed, systems=systems)

    async def events(self, request: Request) -> Response:
        run_id = request.path_params["run_id"]
        listed = await run_in_threadpool(self._runs.run, run_id)
        feed = self._runs.workspace / listed.run.run_id / FEED_NAME
        seen = request.headers.get("last-event-id", "0")
        place = int(seen) if PLACE.fullmatch(seen) else 0
        events = live.stream(feed, lambda: self._runs.is_running(run_id), place, self._language)
        return StreamingResponse(events, media_type="text/event-stream")

    def static(self, request: Request) -> Response:
        """Style and scripts by a fixed list of names, so no path leads elsewhere."""
        match request.path_params["name"]:
            case "charts.js":
                return Response(html.program(), media_type=JAVASCRIPT)
            case "colours.js":
                return Response((html.TEMPLATES / "colours.js").read_text(), media_type=JAVASCRIPT)
            case "live.js":
                return Response((TEMPLATES / "live.js").read_text(), media_type=JAVASCRIPT)
            case "page.css":
                report_css = (html.TEMPLATES / "report.css").read_text()
                own = (TEMPLATES / "page.css").read_text()
                return Response(report_css + own, media_type=CSS)
        raise HTTPException(HTTPStatus.NOT_FOUND)

    def trouble(self, request: Request, error: Exception) -> Response:
        """Error page with the store's own words: a missing run, or an unreadable store."""
        return self._page("trouble.html.j2", HTTPStatus.NOT_FOUND, text=str(error))

    def not_there(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
        return self._page("trouble.html.j2", HTTPStatus(status), text=WORDS["no_page"])

    def _page(
        self, name: str, status: HTTPStatus = HTTPStatus.OK, **values: object
    ) -> HTMLResponse:
        template = self._templates.get_template(name)
        page = template.render(words=self._words, lang=self._language.tag, **values)
        return HTMLResponse(page, status)

    def _translated(self, value: object) -> object:
        """Format a template's value in the page's language."""
        return said_in(value, self._language) if isinstance(value, str) else value


def _report(run: JudgedRun, language: Language) -> str:
    story = translated(story_of(run.plan, run.measurements, run.judgement, run.facts), language)
    drawings = [draw(figure) for figure in story.figures]
    return html.render(story, drawings, language=language, home="/")


# The pages' own words; names, numbers and states come from the runs.


WORDS: Final[dict[str, Said]] = {
    "skip": say("Skip to the content"),
    "dark": html.WORDS["dark"],
    "title": say("Runs of this workspace"),
    "runs": say("All runs"),
    "run": say("Run"),
    "begun": say("Begun"),
    "what": say("What"),
    "verdict": say("Verdict"),
    "trials": say("Trials stored"),
    "state": say("State"),
    "pages": say("Pages"),
    "report": say("Report"),
    "live": say("Live"),
    "unreadable": say("This run cannot be read:"),
    "no_runs": say("This workspace holds no run yet. A run that begins appears here."),
    "cell": say("Cell"),
    "no_page": say("There is no such page."),
    "trouble": say("This cannot be shown"),
    "now": say("Now"),
    "waiting": say("Waiting for the run's next message."),
    "over": say("No measurement is in progress; the report shows the stored measurements."),
    "cut_off": say("The connection is interrupted; the page tries again by itself."),
    "seconds": say("The current measurement, second by second"),
    "seconds_how": say(
        "Each line is one system's trial of this cell in this block; warm-up is shaded. The "
        "table below has the outcome of every trial."
    ),
    "ended": say("Finished measurements"),
    "block": say("block"),
    "pilot": say("pilot"),
    "system": say("System"),
    "outcome": say("Outcome"),
    "trial": say("trial"),
    "starting": say("starting"),
    "warmup": say("warm-up"),
    "measured": say("measuring"),
    "drain": say("finishing"),
    "done": say("Trials done"),
    "share": say("Current step"),
    "tps": say("TPS"),
    "p95": say("p95, ms"),
    "second_axis": say("seconds since the load began"),
}
