"""The sentences of findings: one row for each check, from which every output follows.

A check of the judge gives its name, a level and values. Its row here has the rule for the docs, the
template of its evidence and its advice. Reports, stdout, report.json, docs/reference/findings.md
and the catalogues of other languages all take them from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dbdyno.judge.finding import Finding, Level
from dbdyno.judge.judgement import ArmTrials
from dbdyno.language.words import Said, clauses, count, listed, name, phrase, say
from dbdyno.plan.known import Fact, Known
from dbdyno.report.tell import durability, lists
from dbdyno.report.tell.lists import Values
from dbdyno.report.tell.measured import cell_title, certificate_faults

Template = str | Mapping[str, str] | Callable[[Values], Said]
"""A template of a finding's values; one for each level, or each `case` among the values; or a
function, for evidence that lists several things."""


@dataclass(frozen=True)
class Telling:
    """A check in words.

    Attributes:
        levels: the levels that it gives, the gravest first.
        rule: when it gives them, as Markdown for the docs.
        evidence, advice: templates of a finding's sentences.
        advice_of: advice in place of it on systems of a fact, such as on servers of others.
    """

    levels: tuple[Level, ...]
    rule: str
    evidence: Template
    advice: Template
    advice_of: Mapping[Fact, Template] = field(default_factory=dict)


def evidence(finding: Finding) -> Said:
    """The finding's evidence as a sentence."""
    return _filled(FINDINGS[finding.check].evidence, finding)


def advice(finding: Finding, known: Known) -> Said:
    """The remedy, as a clause; it presumes nothing of the system that is not known."""
    telling = FINDINGS[finding.check]
    own = (text for fact, text in telling.advice_of.items() if finding.system in known[fact])
    return _filled(next(own, telling.advice), finding)


def check_name(check: str) -> Said:
    """A check's name, to which catalogues of other languages add its meaning."""
    return Said(check, {})


def place(finding: Finding) -> Said:
    """The system, the cell, and the block counted from 1."""
    places = (finding.system, cell_title(finding.cell) if finding.cell else None, _block(finding))
    return clauses(part for part in places if part)


def _block(finding: Finding) -> Said | None:
    if not finding.trial:
        return None
    return say("block {block}", block=int(finding.trial.split("/", 1)[0]) + 1)


def together(findings: Iterable[Finding], known: Known) -> list[list[Finding]]:
    """Findings with the same words, in groups that are told in a line each."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        words = (finding.check, finding.level, evidence(finding), advice(finding, known))
        groups.setdefault(words, []).append(finding)
    return [*groups.values()]


def place_of_all(findings: Sequence[Finding], arms: Sequence[ArmTrials]) -> Said:
    """The place of findings together: their common system, cell and block, their share of the run.

    Args:
        arms: number of trials of each system in each cell of the run.
    """
    if len({(one.system, one.cell, one.trial) for one in findings}) == 1:
        return place(findings[0])
    systems, cells, trials = (
        list(dict.fromkeys(getattr(one, part) for one in findings))
        for part in ("system", "cell", "trial")
    )
    system = systems[0] if len(systems) == 1 else None
    cell = cells[0] if len(cells) == 1 else None
    arms = [arm for arm in arms if system in (None, arm.system) and cell in (None, arm.cell)]
    blocks = dict.fromkeys(_block(one) for one in findings)
    block = next(iter(blocks)) if len(blocks) == 1 else None
    parts = [system, cell_title(cell) if cell else None, block]
    if None not in trials:
        every, in_all = (
            say("in every trial"),
            len(arms) if block else sum(arm.trials for arm in arms),
        )
        share = say("in {times} of {all}", times=len(trials), all=count(in_all, "trial"))
        parts.append(every if len(trials) == in_all else share)
    elif None not in cells and cell is None:
        every, all_cells = say("in every cell"), {arm.cell for arm in arms}
        share = say("in {times} of {all}", times=len(cells), all=count(len(all_cells), "cell"))
        parts.append(every if len(cells) == len(all_cells) else share)
    elif None not in systems and system is None:
        parts.append(listed(systems))
    return clauses(part for part in parts if part)


def _filled(template: Template, finding: Finding) -> Said:
    if callable(template):
        return template(finding.values)
    if isinstance(template, Mapping):
        template = template[finding.values.get("case", finding.level)]
    several = {
        key: lists.list_of(v) for key, v in finding.values.items() if isinstance(v, (list, tuple))
    }
    return Said(template, {**finding.values, **several})


VOID, DOUBTFUL, NOTE = Level.VOID, Level.DOUBTFUL, Level.NOTE

ASKED: Final = phrase("the plan asks for this difference; mention it beside the numbers")
ROWS_LOST: Final = phrase(
    "the server wrongly lost, kept or changed rows: report this to the server's maker"
)

FINDINGS: Final[Mapping[str, Telling]] = {
    "cell-cannot-run": Telling(
        (VOID,),
        "the system does not support the setting of the cell (a workload at a load level and "
        "setting), or cannot serve its number of connections",
        lambda values: name(values["reason"]) if values["reason"] else say("it could not be run"),
        phrase("change the setting, the load or the system, then use `dbdyno resume --retry`"),
    ),
    "no-events": Telling(
        (VOID,),
        "in the measured window, the server answered statements but completed no transaction, "
        "or the load generator sent no statement",
        lambda values: say(
            "{events} completed in a measured window of {window_s:.1f} s",
            events=count(values["events"], "transaction"),
            window_s=values["window_s"],
        ),
        phrase(
            "look at the trial's errors and the server's log; a slow system needs a longer window"
        ),
    ),
    "stands-still": Telling(
        (DOUBTFUL, NOTE),
        "transactions were in progress, but the server answered no statement for at least half of "
        "the measured window: doubtful if it completed transactions in the rest of the window (at "
        "a rate of at least 10 in the time of the gap), a note if it completed none, which is [a "
        "result](../how-it-works/verdicts.md#a-system-that-stands-still)",
        lists.stands_still,
        phrase(
            "the numbers include the standstill; find out what the statements waited for: a "
            "lock, a replica, a full disk"
        ),
    ),
    "step-undone": Telling(
        (DOUBTFUL,),
        "a [step of the procedure](../how-it-works/procedure.md) failed or took too long",
        lists.step_undone,
        phrase("give the step permission or more time, or leave it out of the plan"),
    ),
    "script-check": Telling(
        (VOID, DOUBTFUL),
        "after the measurement, the command `check` of a "
        "[script](../how-to/scripts.md#in-a-comparison) found broken rules; doubtful if `check` "
        "could not be run",
        {
            VOID: phrase("the script's check found rows that break the script's rules"),
            DOUBTFUL: phrase("the script's check could not be run: {reason}"),
        },
        {
            VOID: ROWS_LOST,
            DOUBTFUL: phrase("run the script's command `check` by hand and read its output"),
        },
    ),
    "errors": Telling(
        (VOID, NOTE),
        "over 0.1 % of the statements failed, and their transactions were not retried; a note for "
        "fewer failures, for retried transactions, and for errors that a script counts itself; "
        "lock wait timeouts do not count if no transaction was completed",
        lists.errors,
        phrase("remove the cause of the errors, or compare at a load level without errors"),
    ),
    "retries": Telling(
        (DOUBTFUL, NOTE),
        "over 0.1 % of the transactions were retried after an error such as a deadlock, a lock "
        "wait timeout or a write conflict; a note if fewer transactions were",
        lists.retries,
        phrase("use more rows or fewer connections, unless you want to compare contention"),
    ),
    "client-bound": Telling(
        (VOID,),
        "a thread of the load generator used over 70 % of a core",
        phrase(
            "the busiest thread of the load generator used {share:.0%} of a core (limit "
            "{limit:.0%}, threads in all: {threads})"
        ),
        phrase(
            "use several load generators (load.generators), give the generator cores of its own "
            "(procedure.pin), or lower the load"
        ),
    ),
    "near-ceiling": Telling(
        (DOUBTFUL,),
        "closed loop: throughput is over 50 % of the [ceiling](#where-the-evidence-comes-from), "
        "the highest throughput that the load generator can reach",
        phrase(
            "{rate_per_s:.0f} transactions/s are {share:.0%} of the {ceiling_per_s:.0f} that this "
            "load generator reaches on a server that answers at once (limit {limit:.0%})"
        ),
        phrase("the server may be faster: give the load generator more cores or another host"),
    ),
    "timer-late": Telling(
        (DOUBTFUL,),
        "open loop: the load generator sent requests late although a connection was free: p99 "
        "of the delay is over 0.2 ms and over 5 % of the median latency",
        phrase(
            "the load generator sent transactions late although a connection was free: p99 of its "
            "delay {late_ms:.2f} ms (limit {limit_ms:.2f} ms, median latency {median_ms:.2f} ms)"
        ),
        phrase(
            "give the load generator cores of its own (procedure.pin), or run it on another host"
        ),
    ),
    "certificate-failed": Telling(
        (VOID,),
        "[`dbdyno certify`](../how-to/certify.md) failed on this machine, and the machine has not "
        "changed since",
        lambda values: say(
            "the load generator failed its certification of {made}: {faults}",
            made=values["made_at"],
            faults=listed(certificate_faults(values["wrong"], values["late"]), "; "),
        ),
        phrase("stop other programs, run `dbdyno certify` until it passes, then measure again"),
    ),
    "rate-not-sustained": Telling(
        (DOUBTFUL, NOTE),
        "open loop: the backlog (transactions that are due and not yet sent) grew over the second "
        "half of the measured window; a note if the rate was tried only to find the highest rate "
        "for `--slo` ([open loop](../how-to/open-loop.md))",
        phrase(
            "{rate_per_s:g} transactions/s were due and {answered_per_s:.1f} were completed: over "
            "the second half of the window the backlog grew by {growth_per_s:.1f} a second (limit "
            "{limit_per_s:.1f}), to {backlog}"
        ),
        phrase("compare latency at a lower rate; here, latency grows with the measured time"),
    ),
    "few-requests": Telling(
        (DOUBTFUL,),
        "open loop: fewer than 100 requests are slower than the compared percentile",
        lists.few_requests,
        phrase("use a window of {window_s} s or more at this rate, or a lower percentile"),
    ),
    "commits-unflushed": Telling(
        (VOID,),
        "the settings promise a flush before each commit is acknowledged, but for N commits on C "
        "connections the server synced its log fewer than 0.9 × N / C times "
        "([why](../how-to/durability.md)), allowing for counters read half a second late",
        lists.commits_unflushed,
        phrase(
            "find out why syncs do not reach the disk (nosync, eatmydata, tmpfs): this system "
            "does less work than its settings promise"
        ),
    ),
    "unseen-flushes": Telling(
        (DOUBTFUL, NOTE),
        "the machine's disks counted flushes for under 10 % of this system's syncs, but for over "
        "50 % of another system's; a note if for no system over 50 %",
        phrase(
            "the machine's disks counted flushes for only {share:.0%} of the syncs that the "
            "system made or promised"
        ),
        phrase(
            "put all systems on the same kind of disk; a disk without a volatile cache (write "
            "through) reports no flushes, and neither does memory used as a disk (tmpfs)"
        ),
    ),
    "trial-failed": Telling(
        (VOID,),
        "the server or the load generator failed, so the measurement ended early",
        phrase("{window_s:.1f} s into the measured window: {failure}"),
        phrase("look at the server's log; `dbdyno resume` repeats the measurement"),
        {
            Fact.ELSEWHERE: phrase(
                "read the end of the imported log to see why; import a log of a complete run"
            )
        },
    ),
    "server-restarted": Telling(
        (VOID, DOUBTFUL),
        "the server restarted: its uptime grew in the measured window by over 2 s less than the "
        "window lasted (not checked if the uptime never changes); doubtful if it grew by over 5 s "
        "more than warm-up and window together",
        phrase(
            "the server's uptime grew by {uptime_s:.0f} s over a window of {window_s:.1f} s"
            " ({least_s:.0f} to {most_s:.0f} s expected)"
        ),
        {
            VOID: phrase("look for a crash or a restart in the server's log"),
            DOUBTFUL: phrase(
                "the server's counters were read late: check if the machine is overloaded"
            ),
        },
    ),
    "stall": Telling(
        (DOUBTFUL,),
        "transactions were in progress, but the server answered no statement for half a second, "
        "or completed no transaction for a second (not checked if connections pause between "
        "transactions), a time in which it usually completes at least 10 transactions",
        lists.stall,
        phrase(
            "look in the server's log for a checkpoint or flush at that time; if the system "
            "stalls regularly, use windows long enough for several stalls"
        ),
    ),
    "unequal-load": Telling(
        (VOID,),
        "within a block (a repetition), the systems' requests differed in random seed, "
        "distribution or use of prepared statements",
        lists.unequal_load,
        phrase("run the block again with one plan and one version of dbdyno"),
    ),
    "imported-run": Telling(
        (DOUBTFUL,),
        "another tool measured the run, and `dbdyno import` read its results: order of "
        "measurements, settings and machine are unknown",
        phrase(
            "imported from another tool's record: the order of trials, the servers' settings and "
            "the machine are unknown, so there are numbers and ratios but no verdict"
        ),
        phrase("measure with `dbdyno compare` to get a verdict"),
    ),
    "sampled-stacks": Telling(
        (DOUBTFUL,),
        "the servers' [stacks were sampled](../how-to/why.md#sample-the-stacks), which slows them; "
        "throughput and latency are not those of the servers alone",
        lambda values: say(
            "stacks were sampled in {trials}, which slowed the servers",
            trials=count(values["sampled"], "trial"),
        ),
        phrase("take throughput and latency from a run without sampled stacks"),
    ),
    "incomplete-run": Telling(
        (DOUBTFUL,),
        "planned measurements are missing (with `stop: decided`, measurements of blocks "
        "(repetitions) that were begun)",
        lists.incomplete_run,
        phrase("resume the run; stopping when the numbers look good makes intervals too narrow"),
    ),
    "sequential-design": Telling(
        (DOUBTFUL,),
        "at least two blocks (repetitions) were measured, but first all measurements of one of "
        "the two systems, then all of the other",
        phrase("{system} and {baseline} did not take turns: one was measured after the other"),
        phrase(
            "a change of the machine between the two looks like a difference between the "
            "systems; measure them in blocks"
        ),
    ),
    "split-block": Telling(
        (DOUBTFUL,),
        "within a block (a repetition), over half an hour and ten times the usual time passed "
        "between two measurements; or only one system's server was restarted, after an "
        "interruption or on an endpoint",
        {
            "started-again": phrase(
                "the server of {arm} was restarted within block {block}: its later measurements "
                "began on a cold server, the other systems' on a warm server"
            ),
            "restarted": phrase(
                "the server of {system} was restarted within block {block}, or another server "
                "answered: its uptime was {uptime_s:.0f} s, but the previous measurement had begun "
                "{since_s:.0f} s before"
            ),
            "paused": phrase(
                "{hours:.1f} h passed between two measurements of block {block}; {usual_s:.0f} "
                "s are usual"
            ),
        },
        {
            "started-again": phrase("measure again with one block more"),
            "restarted": phrase("measure again with one block more"),
            "paused": phrase("the machine may have changed; measure again with one block more"),
        },
    ),
    "machine-drift": Telling(
        (NOTE,),
        "in the course of the run, the throughput of all systems together rose or fell by over 2 "
        "%, with p < 0.01 (checked from 8 measurements on)",
        phrase(
            "in the course of the run the throughput of all systems together changed by "
            "{change:+.1%} (line fitted to {trials} trials, p = {chance:.4f})"
        ),
        phrase("ratios within blocks are not affected, but absolute throughput is"),
    ),
    "uncontrolled-server": Telling(
        (DOUBTFUL,),
        "the system is a running server of yours (endpoint): dbdyno cannot restart or restore it",
        lists.uncontrolled_server,
        phrase(
            "restart the server and reload its data between runs yourself, keep other clients "
            "off it, or measure a server that dbdyno can start"
        ),
    ),
    "unequal-settings": Telling(
        (DOUBTFUL, NOTE),
        "the system's settings differ from the baseline's in durability of commits or binary "
        "log, repair of torn pages, size of the buffer pool (by over 1 %), I/O method, "
        "instrumentation, query cache or connection handling; a note if the plan sets this "
        "difference",
        durability.unequal_settings,
        {
            DOUBTFUL: phrase(
                "set these settings equal in the plan; otherwise the systems do not do the same "
                "work"
            ),
            NOTE: ASKED,
        },
        {
            Fact.OTHERS: {
                DOUBTFUL: phrase(
                    "set these settings equal on your servers; otherwise the systems do not do "
                    "the same work"
                ),
                NOTE: ASKED,
            }
        },
    ),
    "changed-versions": Telling(
        (DOUBTFUL,),
        "the version of the server or of dbdyno's load generator changed within the run",
        lists.changed_versions,
        phrase("begin a new run; a resumed run needs the same versions of all programs"),
    ),
    "little-law": Telling(
        (VOID,),
        "closed loop: by Little's law, throughput × mean latency is the number of connections, "
        "but the product differs from it by over 1 % more than unfinished transactions explain "
        "(if connections pause between transactions, only a larger product counts); not checked "
        "for imported logs",
        phrase(
            "{rate_per_s:.1f} transactions/s × {latency_ms:.3f} ms = {busy:.2f} busy connections, "
            "but the load had {connections}: off by {off:+.1%} (tolerance {tolerance:.1%})"
        ),
        phrase(
            "if the difference is negative, connections were idle because the load generator was "
            "too slow or reconnected; if it is positive, transactions or time were miscounted"
        ),
    ),
    "statements-of-event": Telling(
        (VOID,),
        "the number of statements per transaction differs from that of the workload or template "
        "by over 0.1 % more than retries, errors and unfinished transactions explain; not checked "
        "for imported logs",
        phrase(
            "{statements} statements in {events} transactions are {per_event:.3f} per "
            "transaction, but the workload has {per_event_wanted:g}: off by {off:+d} statements "
            "(tolerance {tolerance:.0f})"
        ),
        phrase(
            "compare the workload's options with the plan's; both systems must do the same work"
        ),
    ),
    "commits-at-server": Telling(
        (DOUBTFUL,),
        "server and load generator counted different numbers of commits, by over 0.5 % more than "
        "the time of reading the server's counters explains",
        phrase(
            "the server's {counter} rose by {seen:.0f}, but the load generator counted {counted}: "
            "off by {off:+.0f}, {share:+.1%} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "another program used the server, or the load did not reach it; use a server without "
            "other clients"
        ),
    ),
    "uncommitted": Telling(
        (VOID,),
        "every transaction of the workload writes, but PostgreSQL counted under 10 % of the "
        "commits that the load generator counted (checked in windows of over 2 s, as PostgreSQL "
        "may count a second late)",
        phrase(
            "the server's {counter} rose by {seen:.0f}, but the load generator counted {events} "
            "transactions: {share:.1%} of them were committed (at least {limit:.0%} expected)"
        ),
        phrase(
            "a pooler or proxy before the server keeps transactions open, and their rows are lost: "
            "use another mode of the pooler, or name the server itself"
        ),
    ),
    "unequal-dataset": Telling(
        (VOID,),
        "after loading, the system held fewer rows than dbdyno had sent, or other rows (by "
        "checksum) than the first system that held all rows",
        lists.unequal_dataset,
        phrase("remove the servers' data (`dbdyno runs clean`), and begin a new run"),
        {Fact.OTHERS: phrase("drop the system's tables, and begin a new run")},
    ),
    "rows-not-kept": Telling(
        (VOID,),
        "after the system's last measurement, its tables do not hold the rows that the "
        "workloads should leave: after reads the same rows (by checksum), after updates and "
        "transactions the same number of rows",
        lists.rows_not_kept,
        ROWS_LOST,
        {
            Fact.OTHERS: phrase(
                "keep other clients off the system's tables; if no other client wrote there, "
                "report this to the server's maker"
            )
        },
    ),
    "unequal-plans": Telling(
        (NOTE,),
        "a statement of the workload or [template](../how-to/templates.md#how-it-is-run) has "
        "another query plan than on the baseline (type, key or Extra of `EXPLAIN`)",
        lists.unequal_plans,
        phrase(
            "part of the difference may come from the optimizer's choice of plan, not from the "
            "storage engine"
        ),
    ),
    "replicas-missing": Telling(
        (VOID,),
        "at the start or end of the measured window, not all replicas were replicating, or "
        "their state could not be read",
        lists.replicas_missing,
        phrase("look into the replicas' error logs; the system did less work than planned"),
    ),
    "commits-not-waited": Telling(
        (VOID,),
        "a commit did not wait for a replica as the plan says, or waited at another point than "
        "planned, or no replica acknowledged any commit ([topology](../how-to/topology.md))",
        lists.commits_not_waited,
        lambda values: lists.WAIT_ADVICE[values["reasons"][0]["case"]],
    ),
    "replica-lags": Telling(
        (DOUBTFUL,),
        "the slowest replica was behind the primary by more than the commits of one second",
        phrase(
            "the slowest replica was {behind:.0f} transactions behind at the end of the window, "
            "{behind_s:.1f} s of the load (limit {limit_s:.0f} s)"
        ),
        phrase("let the replica apply changes in parallel, or lower the load"),
    ),
    "disturbed": Telling(
        (VOID, NOTE),
        "in the measured window, other processes and the hypervisor (steal) took more of the "
        "machine's CPU than `design.disturbance_max` (10 %); if the server's CPU is unknown, only "
        "steal counts; a note if the measurement was repeated, or no repeats were left",
        lists.disturbed,
        lists.DISTURBED_ADVICE,
    ),
    "machine": Telling(
        (DOUBTFUL, NOTE),
        "during the measurement, the machine was shared or slow, or differed from the run's "
        "other measurements, beyond one of [these limits](#limits-of-machine)",
        lists.machine,
        lists.machine_advice,
    ),
    "uneven-disturbance": Telling(
        (DOUBTFUL,),
        "within a block (a repetition), other processes took over 5 % more of the machine's CPU "
        "while one system was measured than while another was (their CPU time, steal, and I/O "
        "wait that the server did not cause; only steal if a server's CPU is unknown)",
        lists.uneven_disturbance,
        phrase("this distorts the ratio: stop other programs on this machine and measure again"),
    ),
    "not-steady": Telling(
        (DOUBTFUL, NOTE),
        "a system's throughput was still changing when the measured window began, so [all windows "
        "of the "
        "cell](../how-it-works/verdicts.md#where-a-window-begins-and-what-a-warm-up-leaves-in-it) "
        "count from a later second; doubtful if throughput may still be over 0.5 % from its final "
        "value (the interval allows for this)",
        lists.not_steady,
        {
            DOUBTFUL: phrase("warm up for about {until_s:.0f} s, or use a longer window"),
            NOTE: phrase("warm up for longer (--warmup, trial.warmup)"),
        },
    ),
}
"""Rows in the order of docs/reference/findings.md."""
