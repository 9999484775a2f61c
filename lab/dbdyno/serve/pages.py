"""Pages of a workspace: runs, a run's report, a run in progress.

Handlers are thin: each asks `runs` or `live`, and fills a template with escaped text. Readers of
the store are plain functions, run on threads. Those that take seconds of CPU (a report, a run's
conclusion, the chart program) run one at a time, and their results are kept until the store has
other ones, so many requests cost no more than one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, Generic, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dbdyno.errors import StoreError
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Said, Text, say
from dbdyno.report.charts.drawing import draw_all
from dbdyno.report.charts.vega import COLOURS
from dbdyno.report.formats import html
from dbdyno.report.numbers import NONE
from dbdyno.report.parts import translated
from dbdyno.report.story import story_of
from dbdyno.serve import live
from dbdyno.serve.guard import Guard
from dbdyno.serve.runs import LISTED_MAX, ListedRun, Runs, conclusion
from dbdyno.store.reading import UnreadableRun
from dbdyno.store.store import FEED_NAME

TEMPLATES: Final = Path(__file__).parent / "templates"
REPORT_HEADERS: Final = {"Content-Security-Policy": "frame-ancestors 'none'"}
"""The report brings a policy of its own, which names its scripts by their digests."""
PLACE: Final = re.compile(r"[0-9]{1,12}")
"""A place in a feed or in the list; a longer number is none of ours."""
REPORTS_MAX: Final = 16
"""Reports that are kept, of 1.5 MB and more each."""
CONCLUSIONS_MAX: Final = 10_000
LISTS_MAX: Final = 4
WAITING_MAX: Final = 8
"""Requests that wait for a value to be made; more are refused."""
WATCHING_MAX: Final = 16
"""Streams of runs in progress; each looks at its feed four times a second."""
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"

Value = TypeVar("Value")
Handler = Callable[[Request], Response | Awaitable[Response]]


def application(runs: Runs, language: Language = Language.EN) -> Guard:
    """All pages behind the guard, as an ASGI application."""
    pages = Pages(runs, language)
    routes: dict[str, Handler] = {
        "/": pages.index,
        "/runs/{run_id}": pages.report,
        "/runs/{run_id}/conclusion": pages.conclusion,
        "/runs/{run_id}/live": pages.live,
        "/runs/{run_id}/events": pages.events,
        "/static/{name}": pages.static,
    }
    app = Starlette(
        routes=[Route(path, handler, methods=["GET"]) for path, handler in routes.items()],
        exception_handlers={StoreError: pages.trouble, HTTPException: pages.not_there},
    )
    return Guard(app)


class Cache(Generic[Value]):
    """Values that take work: each is made once, one at a time, and the last made are kept.

    Args:
        working: of one token, shared by values that are not to be made at the same time.
        kept_max: number of values kept.
    """

    def __init__(self, working: CapacityLimiter, kept_max: int) -> None:
        self._working = working
        self._kept_max = kept_max
        self._values: dict[Hashable, Value] = {}
        self._waiting = 0

    def known(self, key: Hashable) -> Value | None:
        """The value of a key, if it is kept."""
        return self._values.get(key)

    async def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made on a thread; HTTPException if too many requests wait."""
        value = self.known(key)
        if value is not None:
            return value
        if self._waiting >= WAITING_MAX:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE)
        self._waiting += 1
        try:
            return await run_sync(self._made, key, make, limiter=self._working)
        finally:
            self._waiting -= 1

    def _made(self, key: Hashable, make: Callable[[], Value]) -> Value:
        value = self._values.pop(key, None)  # made for another request meanwhile
        self._values[key] = value = make() if value is None else value
        while len(self._values) > self._kept_max:
            del self._values[next(iter(self._values))]
        return value


class Pages:
    """Handlers over a workspace's runs."""

    def __init__(self, runs: Runs, language: Language) -> None:
        self._runs = runs
        self._language = language
        drawing = CapacityLimiter(1)
        self._reports = Cache[bytes](drawing, REPORTS_MAX)
        self._conclusions = Cache[Text](drawing, CONCLUSIONS_MAX)
        self._programs = Cache[str](drawing, 1)
        self._lists = Cache[list[ListedRun | UnreadableRun]](CapacityLimiter(1), LISTS_MAX)
        self._watching = 0
        self._words = {key: said_in(text, language) for key, text in WORDS.items()}
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=self._translated,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    async def index(self, request: Request) -> Response:
        """A page of the list; its script asks for the conclusions that are not known yet."""
        start = _place(request.query_params.get("from", ""))
        key = (start, self._runs.stamp())
        rows = await self._lists.get(key, partial(self._runs.listed, start))
        runs = rows[:LISTED_MAX]
        readable = [run for run in runs if isinstance(run, ListedRun)]
        return self._page(
            "runs.html.j2",
            runs=runs,
            conclusions={run.version: self._conclusions.known(run.version) for run in readable},
            is_busy=any(run.is_running for run in readable),
            newer=max(0, start - LISTED_MAX) if start else None,
            older=start + LISTED_MAX if len(rows) > LISTED_MAX else None,
        )

    async def report(self, request: Request) -> Response:
        """A run's report from its stored trials."""
        version = await run_sync(self._runs.version, request.path_params["run_id"])
        page = await self._reports.get(version, partial(self._drawn, version.run_id))
        return HTMLResponse(page, headers=REPORT_HEADERS)

    async def conclusion(self, request: Request) -> Response:
        """A run's verdicts in a few words, as plain text."""
        version = await run_sync(self._runs.version, request.path_params["run_id"])
        words = await self._conclusions.get(version, partial(self._concluded, version.run_id))
        return PlainTextResponse(said_in(words, self._language))

    def live(self, request: Request) -> Response:
        """A run in progress; its script listens to `events`."""
        listed = self._runs.run(request.path_params["run_id"])
        shades = [f"light-dark({one}, {html.DARK.get(one.lower(), one)})" for one in COLOURS]
        systems = {"domain": listed.systems, "range": shades}
        return self._page("live.html.j2", listed=listed, systems=systems)

    async def events(self, request: Request) -> Response:
        run_id = request.path_params["run_id"]
        listed = await run_sync(self._runs.run, run_id)
        if self._watching >= WATCHING_MAX:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE)
        feed = self._runs.workspace / listed.run.run_id / FEED_NAME
        place = _place(request.headers.get("last-event-id", ""))
        events = live.stream(feed, lambda: listed.is_running, place, self._language)
        return StreamingResponse(self._counted(events), media_type="text/event-stream")

    async def _counted(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._watching += 1
        try:
            async for event in events:
                yield event
        finally:
            self._watching -= 1

    async def static(self, request: Request) -> Response:
        """Style and scripts by a fixed list of names, so no path leads elsewhere."""
        match request.path_params["name"]:
            case "charts.js":
                program = await self._programs.get("charts.js", html.program)
                return Response(program, media_type=JAVASCRIPT)
            case "colours.js":
                return Response((html.TEMPLATES / "colours.js").read_text(), media_type=JAVASCRIPT)
            case "live.js" | "runs.js" as name:
                return Response((TEMPLATES / name).read_text(), media_type=JAVASCRIPT)
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
        text = WORDS["busy" if status == HTTPStatus.SERVICE_UNAVAILABLE else "no_page"]
        return self._page("trouble.html.j2", HTTPStatus(status), text=text)

    def _drawn(self, run_id: str) -> bytes:
        run = self._runs.judged(run_id)
        story = story_of(run.plan, run.measurements, run.judgement, run.facts)
        story = translated(story, self._language)
        drawings = draw_all(story.figures)
        return html.render(story, drawings, language=self._language, home="/").encode()

    def _concluded(self, run_id: str) -> Text:
        return conclusion(self._runs.judged(run_id).judgement)

    def _page(
        self, name: str, status: HTTPStatus = HTTPStatus.OK, **values: object
    ) -> HTMLResponse:
        template = self._templates.get_template(name)
        page = template.render(words=self._words, lang=self._language.tag, **values)
        return HTMLResponse(page, status)

    def _translated(self, value: object) -> object:
        """Format a template's value in the page's language."""
        return said_in(value, self._language) if isinstance(value, str) else value


def _place(text: str) -> int:
    return int(text) if PLACE.fullmatch(text) else 0


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
    "busy": say("Too many pages are asked for at once. Try again in a moment."),
    "unknown": NONE,
    "newer": say("Newer runs"),
    "older": say("Older runs"),
    "trouble": say("This cannot be shown"),
    "now": say("Now"),
    "waiting": say("Waiting for the run's next message."),
    "over": say("No measurement is in progress. The report shows the stored measurements."),
    "cut_off": say("The connection is interrupted. The page tries again by itself."),
    "seconds": say("The current measurement, second by second"),
    "seconds_how": say(
        "Each line is one system's trial of this cell in this block. Warm-up is shaded. The "
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
