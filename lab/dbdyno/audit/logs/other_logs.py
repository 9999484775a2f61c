"""Parser of logs of pgbench and of programs with a line for a result, of any number of runs; pure.

pgbench's report begins with "transaction type:" and ends with its "tps = …". HammerDB,
BenchmarkSQL, go-tpc, tpcc-mysql and YCSB print new orders a minute or operations a second in a line
of their own (`RESULT_TOOLS`), after the number of their connections. Where a program did not print
this number, its command above the result says it. Of an incomplete report the line is told.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dbdyno.audit.logs.apart import SetUp, Work
from dbdyno.audit.logs.sysbench_log import NUMBER, WHOLE, LoggedRun, prepared_in, runs_in
from dbdyno.audit.logs.wrappers import LINE_MAX, TIMES, LogLine, Stream, streams_in
from dbdyno.audit.names import words_of_heading
from dbdyno.audit.tables import TPS, quantile_of
from dbdyno.errors import UsageError

BEGINS: Final = re.compile(r"transaction type: (?P<workload>.+)$")
PGBENCH: Final = {
    "threads": re.compile(rf"number of clients: {WHOLE}$"),
    "seconds": re.compile(rf"duration: {WHOLE} s$"),
    "events": re.compile(rf"number of transactions actually processed: {WHOLE}"),
    "latency_ms_avg": re.compile(rf"latency average(?: =|:) {NUMBER} ms(?: \(.*\))?$"),
    "latency_ms_stddev": re.compile(rf"latency stddev(?: =|:) {NUMBER} ms$"),
    "tps": re.compile(
        rf"tps = {NUMBER} \((?:without initial connection time|including connections establishing"
        r"|including reconnection times)\)$"
    ),
}
LENGTH: Final = ("seconds", "events")
"""By which it is known how long a run took."""
CONDITION: Final = re.compile(r"(?:scaling factor|query mode): .+")
WITHOUT_CONNECTING: Final = re.compile(rf"tps = {NUMBER} \(excluding connections establishing\)$")
COMMAND: Final = re.compile(r"\bpgbench\s(?:.*\s)?(?:-c ?|--client[= ])(\d{1,9})\b")
OPTION_OF_WORK: Final = re.compile(
    r"(?<=\s)(?:-[SNC](?=\s|$)|--(?:select-only|skip-some-updates|connect)(?=\s|$)"
    r"|-[bfMR] ?[^\s-]\S*|--(?:builtin|file|protocol|rate)[= ]\S+)"
)
"""Options of pgbench on the work of a transaction."""
PROGRESS: Final = re.compile(rf"progress: {NUMBER} s, {NUMBER} tps")
QUANTILE: Final = re.compile(rf"(\d{{1,3}}(?:\.\d{{1,3}})?)th ?\(ms\): {NUMBER}")
MAXIMUM: Final = re.compile(rf"Max *\(ms\): {NUMBER}")
MEANS_OFF: Final = 0.05
"""Share by which a printed mean may differ from sum over count; go-tpc once printed other units."""
MINUTE_S: Final = 60
PROGRAM: Final = re.compile(r"\b(?:pgbench|go-tpc|tiup|tpcc_start|ycsb)\b")
SETTING: Final = re.compile(
    r"(?<![\w.@=/-])(?:--|@@(?:global\.)?)?"
    r"(?P<name>(?:innodb|binlog|tidb|rocksdb)[_-][a-z0-9_-]{2,60}"
    r"|sync[_-]binlog|log[_-]bin|gtid[_-]mode|max[_-]connections|performance[_-]schema"
    r"|shared_buffers|synchronous_commit|fsync|full_page_writes|wal_(?:level|compression|buffers)"
    r"|max_wal_size|checkpoint_timeout|work_mem|effective_cache_size|huge_pages|io_method)"
    r"(?:\s{0,40}[=:|]\s{0,40}|\s{1,40}(?=\S{1,60}$))['\"]?(?P<value>\w[\w.]{0,60})"
)
"""A printed setting of a server; counters of its status begin with a capital letter."""
CHANGE: Final = re.compile(
    r"\b(?:set\s{1,9}(?:(?:global|persist)\s{1,9}|@@global\.)|alter\s{1,9}system\s{1,9}set\s{1,9})"
    r"(?P<name>[a-z]\w{1,60})\s{0,9}(?:=|\bto\b)\s{0,9}['\"]?(?P<value>[\w.-]{1,60})",
    re.IGNORECASE,
)
"""A statement that changes a setting."""
SECRET: Final = re.compile(r"passw|pwd|secret", re.IGNORECASE)
SETTINGS_MAX: Final = 20
"""Further settings of a log are not followed."""
HEADING: Final = re.compile(
    r"(?:[=#*~]{2}|-{2,9}\s)[\s=#*~+-]{0,99}(?P<text>[^\s=#*~+|-].{0,99}?)[\s=#*~+-]{0,99}$"
)
NO_HEADING: Final = re.compile(
    r"--\w|passw|pwd|secret|\b(?:prepar\w*|prewarm\w*|warm\w*|clean\w*|loading|load generator"
    r"|creat\w*|drop\w*|restart\w*|stop\w*|sleep\w*|wait\w*|done|finish\w*|end|ended|complet\w*"
    r"|summary|properties|took|elapsed|duration|saved)\b",
    re.IGNORECASE,
)
"""Words for steps between runs and their times, headings of programs, and a command with its
options."""
MOMENT: Final = re.compile("|".join(TIMES))
TABLE: Final = re.compile(r"<t[rd][ >]|^\s{0,8}\|?\s{0,8}:?-{2,99}:?\s{0,8}\|", re.MULTILINE | re.I)
"""Signs of a page with tables, in HTML and Markdown."""
NEVER: Final = re.compile(r"(?!)")


@dataclass(frozen=True)
class ResultTool:
    """A program whose result is a line, and its lines.

    Attributes:
        workload: its test.
        users: the number of its connections, as it prints them.
        result: the numbers of a run, by name.
        after: further numbers below it; or the result, if the other line is missing.
        length: minutes or seconds of a run, by the name of the group.
        condition: facts of the load.
        system: the system under test.
        version: of the program.
        ends: the line that ends a run, in words.
        command: its command line, with the number of its connections.
        progress: its lines before the result.
    """

    name: str
    workload: str
    users: re.Pattern[str]
    result: re.Pattern[str]
    ends: str
    after: re.Pattern[str]
    length: re.Pattern[str]
    condition: re.Pattern[str]
    system: re.Pattern[str]
    version: re.Pattern[str]
    command: re.Pattern[str] = NEVER
    progress: re.Pattern[str] = NEVER


SIGNS: Final = (
    *("transaction type:", "tps = ", "System achieved"),
    *("NEW_ORDER", "tpmC", "TpmC", "[OVERALL]"),
)
"""Words of which every log with a run has one."""
RESULT_TOOLS: Final = (
    ResultTool(
        name="HammerDB",
        workload="hammerdb_tprocc",
        users=re.compile(rf"{WHOLE} (?:Active )?Virtual Users configured"),
        result=re.compile(
            r"System achieved (?:(?P<nopm>\d{1,12}) NOPM"
            r"(?: from (?P<tpm>\d{1,12}) (?P<system>.{1,60}?) TPM)?(?:\s|\W*$)"
            r"|(?P<older_tpm>\d{1,12}) (?P<older_system>.{1,60}?) TPM"
            r" at (?P<older_nopm>\d{1,12}) NOPM)"
        ),
        ends='its "TEST RESULT"',
        after=NEVER,
        length=re.compile(r"Timing test period of (?P<minutes>\d{1,6}) in minutes"),
        condition=NEVER,
        system=NEVER,
        version=re.compile(r"HammerDB CLI v(\d+(?:\.\d+)?)"),
    ),
    ResultTool(
        name="BenchmarkSQL",
        workload="benchmarksql_tpcc",
        users=re.compile(rf"\bterminals ?= ?{WHOLE}\b"),
        result=re.compile(r"Measured tpmC \(NewOrders\) = (?P<nopm>\d{1,12}(?:\.\d{1,12})?)"),
        ends='its "Measured tpmC (NewOrders)"',
        after=re.compile(r"Measured tpmTOTAL = (?P<tpm>\d{1,12}(?:\.\d{1,12})?)"),
        length=re.compile(r"\brunMins ?= ?(?P<minutes>\d{1,6})\b"),
        condition=re.compile(
            r"\b(?:warehouses|limitTxnsPerMin|[a-z][A-Za-z]{1,20}Weight) ?= ?\d+\b"
        ),
        system=re.compile(r"\bconn ?= ?\W*jdbc:(?P<system>\w{1,20}://[\w.,:-]{1,200})"),
        version=re.compile(r"BenchmarkSQL v(\d+(?:\.\d+)?)"),
    ),
    ResultTool(
        name="go-tpc",
        workload="gotpc_tpcc",
        users=re.compile(r"Finished: (\d{1,9}) OLTP workers"),
        command=re.compile(
            r"(?:\bgo-tpc|\btiup(?:-| )bench)\s(?=.*\brun\b).*\s(?:-T ?|--threads[= ])(\d{1,9})\b"
        ),
        progress=re.compile(r"\bNEW_ORDER - Takes\(s\): "),
        result=re.compile(
            r"\[Summary\] NEW_ORDER - Takes\(s\): (?P<seconds>\d{1,9}(?:\.\d{1,6})?),"
            r" Count: (?P<count>\d{1,12}),"
            r" (?:TPM: (?P<nopm>\d{1,12}(?:\.\d{1,12})?)|OPS: (?P<ops>\d{1,12}(?:\.\d{1,12})?)),"
            r" Sum\(ms\): (?P<sum>\d{1,15}(?:\.\d{1,6})?),"
            r" Avg\(ms\): (?P<avg>\d{1,12}(?:\.\d{1,6})?)(?P<latencies>,.*)?"
        ),
        ends='its "Finished" and the NEW_ORDER line below it',
        after=re.compile(
            r"^tpmC: (?P<nopm>\d{1,12}(?:\.\d{1,6})?)"
            r"(?:, tpmTotal: (?P<tpm>\d{1,12}(?:\.\d{1,6})?))?"
        ),
        length=NEVER,
        condition=re.compile(r"\b\d{1,9} OLAP workers|--warehouses[= ]\d{1,9}"),
        system=NEVER,
        version=NEVER,
    ),
    ResultTool(
        name="tpcc-mysql",
        workload="tpcc_mysql",
        users=re.compile(rf"\[connection\]: {WHOLE}"),
        command=re.compile(r"\btpcc_start\s(?:.*\s)?-c ?(\d{1,9})\b"),
        result=re.compile(r"^(?:<TpmC>\s*)?(?P<nopm>\d{1,12}(?:\.\d{1,6})?) TpmC$"),
        ends='its "TpmC"',
        after=NEVER,
        length=re.compile(r"\[measure\]: (?P<seconds>\d{1,9}) \(sec"),
        condition=re.compile(r"\[warehouse\]: \d+"),
        system=re.compile(r"\[server\]: (?P<system>\S{1,200})"),
        version=NEVER,
    ),
    ResultTool(
        name="YCSB",
        workload="ycsb",
        users=NEVER,
        command=re.compile(r"\bycsb(?:\.\w+)?\s.*\s(?:-threads |-p ?threadcount=)(\d{1,9})\b"),
        progress=re.compile(r"\b\d{1,9} sec: \d{1,12} operations;"),
        result=re.compile(r"\[OVERALL\], Throughput\(ops/sec\), (?P<tps>\d{1,12}(?:\.\d{1,20})?)$"),
        ends='its "[OVERALL], Throughput(ops/sec)"',
        after=NEVER,
        length=NEVER,
        condition=re.compile(r"\bworkload[a-z]\b|\bycsb(?:\.\w+)? (?:load|run)\b"),
        system=re.compile(r"\bycsb(?:\.\w+)? (?:load|run) (?P<system>[\w-]{1,60})"),
        version=NEVER,
    ),
)


class LoggedRow(NamedTuple):
    """A run: its connections and its printed numbers, by metric.

    Attributes:
        threads: 0 if no line tells them.
        line: its last line.
        seconds: its duration; 0 if it was not printed.
        tool: the program, with its version if known.
        system: the system under test, or the stream of a log with several; empty if unknown.
        work: facts of its load.
    """

    threads: int
    workload: str
    values: dict[str, str]
    line: int
    seconds: float = 0.0
    tool: str = "pgbench"
    system: str = ""
    work: Work = Work()


@dataclass(frozen=True)
class PgbenchReport:
    """The lines of a report of pgbench.

    Attributes:
        clients: of the command above it; 0 without.
        options: of this command on the work; None without.
    """

    lines: list[LogLine]
    clients: int
    options: frozenset[str] | None


@dataclass(frozen=True)
class LoggedText:
    """The logs in a text.

    Attributes:
        runs, rows: runs of sysbench and of other programs.
        refusals: the reasons why further lines and reports of a log cannot be read.
        is_page: the text has tables.
        prepared: the first line of sysbench's `prepare` or `cleanup`; 0 without, or beside runs.
        begun: the first run that has no result, in words; empty without, beside runs, and for
            pages.
        set_ups: printed set-ups of several runs, each with its first line.
    """

    runs: Sequence[LoggedRun]
    rows: Sequence[LoggedRow]
    refusals: Sequence[UsageError] = ()
    is_page: bool = False
    prepared: int = 0
    begun: str = ""
    set_ups: Sequence[tuple[int, SetUp]] = ()

    @property
    def is_whole(self) -> bool:
        """True unless it may be a page that quotes parts of a log."""
        is_run = self.rows or self.refusals or any(run.is_whole for run in self.runs)
        return bool(is_run) and not self.is_page

    def set_up(self, line: int) -> SetUp:
        """The set-up of the run at a line."""
        place = bisect_left(self.set_ups, line, key=lambda change: change[0])
        return self.set_ups[place - 1][1] if place else SetUp()


def logs_in(text: str, source: str) -> LoggedText:
    """The logs in a text; of a page with tables only whole runs, as pages quote parts of logs."""
    streams = streams_in(text)
    runs, rows, refusals = runs_in(streams, source), list[LoggedRow](), list[UsageError]()
    if any(sign in text for sign in SIGNS):  # long logs of sysbench are read in half the time
        rows, refusals = _rows_in(streams, source)
    if is_page := TABLE.search(text) is not None:
        runs = [run for run in runs if run.is_whole and not run.test_without_sql]
        rows = [row for row in rows if row.threads]
    refusals = [*(refusal for run in runs for refusal in run.refusals), *refusals]
    if is_page or runs or rows or refusals:
        is_script = len(streams) == 1 and len(runs) + len(rows) > 1
        set_ups = _set_ups_in(streams[0].lines) if is_script else []
        return LoggedText(runs, rows, refusals, is_page, set_ups=set_ups)
    return LoggedText(runs, rows, prepared=prepared_in(streams), begun=_begun_in(streams))


def _rows_in(streams: Sequence[Stream], source: str) -> tuple[list[LoggedRow], list[UsageError]]:
    """The runs of other programs than sysbench, and the reasons for reports that are not whole."""
    rows, refusals = list[LoggedRow](), list[UsageError]()
    for stream in streams:
        lines = list(_summed(_joined(stream.lines)))
        for report in _reports_in(lines):
            try:
                rows.append(_pgbench_row(report, stream.name, source))
            except UsageError as refusal:
                refusals.append(refusal)
        for tool in RESULT_TOOLS:
            rows += _results(lines, stream.name, tool)
    return sorted(rows, key=lambda row: row.line), refusals


def _joined(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """The lines; a command on several lines is joined in its last."""
    begun = ""
    for line in lines:
        text = f"{begun}{line.text}"
        is_begun = text.endswith("\\") and len(text) <= LINE_MAX and PROGRAM.search(text)
        begun = f"{text[:-1]} " if is_begun else ""
        if not is_begun:
            yield line if text == line.text else replace(line, text=text)


def _summed(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """The lines, with the "[Summary]" of go-tpc, which its first versions left out.

    They printed the numbers since the start every ten seconds, and once more below "Finished".
    `prepare` ends with this word, too.
    """
    has_run = is_finished = False
    for line in lines:
        is_sum = line.text.startswith("NEW_ORDER - ")
        is_last = is_sum and is_finished
        yield replace(line, text=f"[Summary] {line.text}") if is_last else line
        has_run = not is_last and (has_run or is_sum)
        is_finished = has_run and (is_finished or line.text == "Finished")


def _set_ups_in(lines: Sequence[LogLine]) -> list[tuple[int, SetUp]]:
    """Each set-up, with its first line.

    A setting first set between runs, by a statement or as `name=value`, had another value above: it
    is empty there.
    """
    settings, heading, unset = dict[str, str](), "", dict[str, str]()
    changes = [(0, settings, heading)]
    for line in lines:
        if line.text.startswith("["):  # rates of sysbench, numbers of go-tpc
            continue
        printed = {match["name"].replace("-", "_"): match for match in SETTING.finditer(line.text)}
        changed = {match["name"].lower(): match for match in CHANGE.finditer(line.text)}
        after = dict(settings) if printed or changed else settings
        for name, match in {**printed, **changed}.items():
            is_followed = name in after or len(after) < SETTINGS_MAX
            if is_followed and not SECRET.search(name):
                after[name] = match["value"]
                if name in changed or "=" in match[0]:
                    unset[name] = ""
        text = _heading_in(line.text)
        if text or after is not settings:
            settings, heading = after, text or heading
            changes.append((line.number, settings, heading))
    return [(number, SetUp({**unset, **known}, text)) for number, known, text in changes]


def _heading_in(text: str) -> str:
    """Words of a heading on a set-up; empty without."""
    match = HEADING.match(text)
    if match is None or NO_HEADING.search(match["text"]):
        return ""
    return words_of_heading(MOMENT.sub(" ", match["text"]))


def _begun_in(streams: Sequence[Stream]) -> str:
    for line in (line for stream in streams for line in stream.lines):
        for tool in RESULT_TOOLS:
            if tool.users.search(line.text) or tool.progress.search(line.text):
                return f"line {line.number} is of a run of {tool.name} without {tool.ends}"
        if PROGRESS.match(line.text) or PGBENCH["threads"].match(line.text):
            return f'line {line.number} is of a run of pgbench without its "transaction type"'
    return ""


def _reports_in(lines: Sequence[LogLine]) -> list[PgbenchReport]:
    """Each report of pgbench; a number below a command, or printed anew, begins one without its
    head."""
    reports, printed = list[PgbenchReport](), dict[str, str]()
    clients = 0
    options: frozenset[str] | None = None
    for line in lines:
        if command := COMMAND.search(line.text):
            clients, options = int(command[1]), frozenset(OPTION_OF_WORK.findall(line.text))
        matches = ((name, pattern.match(line.text)) for name, pattern in PGBENCH.items())
        numbers = {name: match[1] for name, match in matches if match}
        is_anew = any(printed.get(name, text) != text for name, text in numbers.items())
        is_first = clients > 0 and (numbers or WITHOUT_CONNECTING.match(line.text))
        if BEGINS.match(line.text) or is_anew or is_first:
            reports.append(PgbenchReport([], clients, options))
            printed, clients, options = {}, 0, None
        if reports:
            reports[-1].lines.append(line)
            printed |= numbers
    return reports


def _pgbench_row(report: PgbenchReport, system: str, source: str) -> LoggedRow:
    """The run of a report.

    Raises:
        UsageError: its beginning or its end is missing; with its line.
    """
    lines = report.lines
    values = {"threads": str(report.clients)} if report.clients else dict[str, str]()
    conditions, ended = set[str](), 0
    for line in lines:
        for name, pattern in PGBENCH.items():
            if match := pattern.match(line.text):
                values[name], ended = match[1], line.number
        # before 14 it printed both; the rate without connecting is the one of newer versions
        if match := WITHOUT_CONNECTING.match(line.text):
            values["tps"], ended = match[1], line.number
        if CONDITION.fullmatch(line.text):
            conditions.add(line.text)
    begins = BEGINS.match(lines[0].text)
    missing = [name for name in ("threads", "tps") if name not in values]
    if missing or not (begins or report.clients):
        missing = [*([] if begins else ["transaction type"]), *missing]
        raise UsageError(
            f"line {lines[0].number} of {source}: a report of pgbench that is not whole",
            wanted="its transaction type, its number of clients and its tps",
            found=f"no {' and no '.join(missing)}",
            hint="was the run cut off? remove it, or run it again",
        )
    rest = {name: text for name, text in values.items() if name not in ("threads", *LENGTH)}
    workload = re.sub(r"[<>]|builtin: ?", "", begins["workload"]).strip() if begins else ""
    seconds, events, tps = (float(values.get(name, 0)) for name in (*LENGTH, "tps"))
    seconds = seconds or (events / tps if tps > 0 else 0.0)
    work = Work(options=report.options, conditions=frozenset(conditions) or None)
    return LoggedRow(
        int(values["threads"]), workload, rest, ended, seconds, system=system, work=work
    )


def _results(lines: Sequence[LogLine], stream: str, tool: ResultTool) -> list[LoggedRow]:
    """The runs of a program; a number of connections holds for the next result alone."""
    rows: list[LoggedRow] = []
    users, seconds, version, system, is_open = 0, 0.0, "", "", False
    conditions = set[str]()
    for line in lines:
        if match := tool.users.search(line.text) or tool.command.search(line.text):
            users = int(match[1])
        if match := tool.length.search(line.text):
            seconds = _seconds(match.groupdict())
        if match := tool.version.search(line.text):
            version = f" {match[1]}"
        if match := tool.system.search(line.text):
            system = match["system"]
        conditions |= {match[0] for match in tool.condition.finditer(line.text)}
        result, after = tool.result.search(line.text), tool.after.search(line.text)
        if after and is_open:
            rows[-1].values.update({n: text for n, text in after.groupdict().items() if text})
            is_open = False
            continue
        match = result or (after if after and after.groupdict().get("nopm") else None)
        if match is None:
            continue
        numbers = {n.removeprefix("older_"): t for n, t in match.groupdict().items() if t}
        rows.append(
            LoggedRow(
                users,
                tool.workload,
                _numbers(numbers),
                line.number,
                _seconds(numbers) or seconds,
                tool.name + version,
                stream or numbers.get("system") or system,
                Work(conditions=frozenset(conditions) or None),
            )
        )
        users, conditions, is_open = 0, set(), result is not None
    return rows


def _seconds(numbers: dict[str, str]) -> float:
    return float(numbers.get("seconds") or 0) + MINUTE_S * float(numbers.get("minutes") or 0)


def _numbers(numbers: dict[str, str]) -> dict[str, str]:
    """Printed numbers by metric; without latencies whose mean is not their sum over their count."""
    values = {name: text for name, text in numbers.items() if name in ("nopm", "tpm", TPS)}
    if "ops" in numbers:
        values["nopm"] = f"{float(numbers['ops']) * MINUTE_S:.1f}"
    if "avg" not in numbers:
        return values
    mean, avg = float(numbers["sum"]) / max(1, int(numbers["count"])), float(numbers["avg"])
    if abs(mean - avg) > max(1.0, MEANS_OFF * mean):
        return {**values, "latency_ms_avg": f"{mean:.1f}"}
    latencies = numbers.get("latencies", "")
    quantiles = {quantile_of(percent): text for percent, text in QUANTILE.findall(latencies)}
    largest = {"latency_ms_max": match[1]} if (match := MAXIMUM.search(latencies)) else {}
    return {**values, "latency_ms_avg": numbers["avg"], **quantiles, **largest}
