"""Logs without their wrappers, a stream for each container or host that printed; pure.

Wrappers are time stamps, names of containers and pods, tags of syslog, colours, quotes of JSON, and
any text before a line that a tool prints at the left margin. Streams that were printed at the same
time have alternating lines, so each is read by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LAYERS_MAX: Final = 8
LINE_MAX: Final = 4_000
ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-B]|.)?"
    r"|[\x00-\x08\x0e-\x1f\x7f\ufeff]"
)
"""Colours and titles of a terminal, backspaces of a progress line, byte order marks."""
MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY: Final = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?"
CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M)?"
ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[CMPEAH][SD]T|[CEW]ES?T|MSK|[JIK]ST|[+-]\d\d:?\d\d)(?![A-Za-z]))?"
TIMES: Final = (
    rf"\d{{4}}[-/.]\d\d[-/.]\d\d[T_ ]{CLOCK}{ZONE}",
    rf"\d\d[-/.]\d\d[-/.](?:\d\d){{1,2}}[T ]{CLOCK}{ZONE}",
    rf"\d\d/{MONTH}/\d{{4}}[: ]{CLOCK}{ZONE}",
    rf"{DAY}{MONTH} +\d{{1,2}},?(?: \d{{4}})? {CLOCK}{ZONE}(?: \d{{4}})?",
    rf"{DAY}\d{{1,2}} {MONTH} \d{{4}} {CLOCK}{ZONE}",
    CLOCK,
    r"\d{10}(?:\d{3})?(?:\.\d{1,9})?",
    r"\d{1,9}\.\d{6}",
)
"""ISO 8601, American, of web servers, of syslog, of mails, of a clock; seconds since 1970 and since
the start."""
STAMP: Final = rf"[\[(<]?\s{{0,8}}(?:{'|'.join(TIMES)})[\])>]?(?: ?[:|,-])?(?:\s+|$)"
BRACKET: Final = (
    r"\[(?!\s*\d+(?:\.\d+)?s\s*\]|(?:Summary|Current|server|connection|warehouse|measure"
    r"|OVERALL)\])"
    r"(?P<bracket>[^\[\]]{1,120})\]:?\s*"
)
"""In front of a line, but not sysbench's seconds, or names of go-tpc, tpcc-mysql and YCSB."""
LAYERS: Final = tuple(
    map(
        re.compile,
        (
            STAMP,
            r"(?P<container>[A-Za-z_][\w.@/-]{0,99}) *\|(?:\s|$)",
            BRACKET,
            r"(?P<job>[^\t]{1,200})\t[^\t]{0,200}\t(?=\d{4}-\d\d-\d\dT)",
            r"<\d{1,3}>(?:1 )?",
            r"[\w.@-]{1,99} [\w./()-]{1,99}\[\d+\]: ?",
            r"std(?:out|err) [FP](?:\s|$)",
            r"\s{0,8}\d{1,5}\.(?:\s+|$)",
        ),
    )
)
"""Time; docker compose; Jenkins, kubectl and loggers; GitHub's jobs; syslog's priority and process;
a container's runtime; numbers of lines, as of a copied page."""
ANNOTATION: Final = re.compile(r"(?<=\s)(?:#(?!.*\bsysbench )|//|<-|←|--(?=\s|[^\x00-\x7f])).*$")
"""Comments behind a line, as in blogs."""
QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s?\]?,?')
VALUE: Final = re.compile(r'"(stdout|stderr|msg|log|message|line)"\s*:\s*"((?:[^"\\]|\\.)*)"')
LISTED: Final = re.compile(r'"stdout_lines"\s*:\s*\[\s*$', re.MULTILINE)
"""Ansible prints the same output once more as a list of lines."""
MARGIN: Final = re.compile(
    r"(?P<prefix>.{1,80}?)\s*(?:Number of threads: \d+|Threads started!|SQL statistics:"
    r"|OLTP test statistics:|General statistics:|Threads fairness:|number of clients: \d+)\s*"
)
MARGIN_ENDS: Final = (*"0123456789", "started!", "statistics:", "fairness:")
BEGINS: Final = re.compile(
    r"(?:Number of threads: \d|number of clients: \d|(?:SQL|OLTP test) statistics:"
    r"|(?:Vuser \d+:)?\d+ (?:Active )?Virtual Users configured|.{0,80}\bterminals ?= ?\d)"
)
"""Lines by which a stream of a tool is known among those of servers."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line without its wrappers and margins.

    Attributes:
        number: counted from 1; of JSON, several lines have the number of theirs.
        source: container, pod, host or job that printed it; empty if unknown.
        bracket: text in brackets before it, such as a branch of Jenkins or a level of a logger.
    """

    number: int
    text: str
    source: str = ""
    bracket: str = ""


@dataclass(frozen=True)
class Stream:
    """The lines of a tool's process, in order.

    Attributes:
        name: its source, if there are several; else empty.
    """

    name: str
    lines: tuple[LogLine, ...]


def streams_in(text: str) -> list[Stream]:
    """The streams of a log. Lines of other sources, such as the servers, are left out."""
    lines = _without_margins([_bare(n, line) for n, line in _unquoted(text)])
    begun = [line for line in lines if BEGINS.match(line.text)]
    branches = _branches(lines, begun)
    tools = {_source(line, branches) for line in begun}
    by_source: dict[str, list[LogLine]] = {}
    for line in lines:
        source = _source(line, branches)
        if not tools or source in tools:
            by_source.setdefault(source, []).append(line)
    has_names = len(by_source) > 1
    return [Stream(name if has_names else "", tuple(of)) for name, of in by_source.items()]


def _source(line: LogLine, branches: Collection[str]) -> str:
    return line.bracket if line.bracket in branches else line.source


def _branches(lines: Sequence[LogLine], begun: Sequence[LogLine]) -> set[str]:
    """Brackets of processes that print at the same time; empty if one ends before the next.

    Args:
        begun: the lines by which streams of a tool are known.
    """
    tools = {line.bracket for line in begun if not line.source} - {""}
    places: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        if line.bracket in tools:
            places.setdefault(line.bracket, []).append(place)
    spans = sorted((of[0], of[-1]) for of in places.values())
    return tools if any(end > start for (_, end), (start, _) in pairwise(spans)) else set()


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; output within JSON as the lines that it holds."""
    is_listed = LISTED.search(text) is not None
    for number, line in enumerate(text.splitlines(), 1):
        if '"' not in line:
            yield number, line
            continue
        whole = QUOTED.fullmatch(line.strip())
        values: list[str] = (
            [whole[1]]
            if whole
            else [value for key, value in VALUE.findall(line) if key != "stdout" or not is_listed]
        )
        parts = [part for value in values for part in _decoded(value)] if values else [line]
        yield from ((number, part) for part in parts)


def _decoded(value: str) -> list[str]:
    """The lines of a JSON string; the string itself where its escapes are not JSON's."""
    try:
        return str(json.loads(f'"{value}"', strict=False)).splitlines()
    except ValueError:
        return [value]


def _bare(number: int, line: str) -> LogLine:
    """A line without colours, times and names in front of it; empty if no tool's is so long."""
    text, source, bracket = ESCAPES.sub("", line) if len(line) <= LINE_MAX else "", "", ""
    for _ in range(LAYERS_MAX):
        match = next(filter(None, (layer.match(text) for layer in LAYERS)), None)
        if match is None:
            break
        named = match.groupdict()
        bracket = named.get("bracket") or bracket
        pod = bracket.removeprefix("pod/") if bracket.startswith("pod/") else ""
        source = source or named.get("container") or named.get("job") or pod
        text = text[match.end() :]
    text = ANNOTATION.sub("", text.replace("\t", " ").strip()).rstrip()
    return LogLine(number, text, source, bracket)


def _without_margins(lines: Sequence[LogLine]) -> list[LogLine]:
    """Cut text that stands before lines of the left margin, such as a host's name or `> `."""
    marked = (line.text for line in lines if line.text.endswith(MARGIN_ENDS))
    margins = map(MARGIN.fullmatch, marked)
    prefixes = {m["prefix"].strip() for m in margins if m} - {""}
    if not prefixes:
        return list(lines)
    cut, lengths = [], sorted({len(prefix) for prefix in prefixes}, reverse=True)
    for line in lines:
        begins = (line.text[:length] for length in lengths)
        prefix = next((begin for begin in begins if begin in prefixes), "")
        source = line.source or re.sub(r"^\W+|\W+$", "", prefix)
        text = line.text.removeprefix(prefix).strip().strip("'\"").strip()  # as in a list of YAML
        cut.append(LogLine(line.number, text, source, line.bracket) if prefix else line)
    return cut
