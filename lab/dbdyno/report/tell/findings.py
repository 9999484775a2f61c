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
from dbdyno.report.tell.measured import METRICS, cell_title, certificate_faults

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
ROWS_LOST: Final = phrase("the system wrongly lost, kept or changed rows: report this fault")

FINDINGS: Final[Mapping[str, Telling]] = {
    "cell-cannot-run": Telling(
        (VOID,),
        "the system does not support the cell's setting, or cannot take its load",
        lambda values: name(values["reason"]) if values["reason"] else say("it could not be run"),
        phrase(
            "change the setting, the load or the system; resume tries this cell again only with "
            "--retry"
        ),
    ),
    "no-events": Telling(
        (VOID,),
        "no transaction was completed in the measured window although statements were answered, "
        "or no statement was sent",
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
        "no statement was answered for half of the measured window or more although transactions "
        "ran; if some transactions were completed, 10 or more must have been expected in that "
        "time; a note if none was completed, which is [a "
        "result](../how-it-works/verdicts.md#a-system-that-stands-still)",
        lists.stands_still,
        phrase(
            "the numbers include the standstill; look for what the statements waited for: a lock, "
            "a replica, a full disk"
        ),
    ),
    "step-undone": Telling(
        (DOUBTFUL,),
        "a [step before the trial](../how-it-works/procedure.md) failed or was not completed in "
        "time",
        lists.step_undone,
        phrase(
            "give dbdyno the permission for this step, or the step more time, or leave it out of "
            "the plan"
        ),
    ),
    "script-check": Telling(
        (VOID, DOUBTFUL),
        "after a trial the command `check` of a [script](../how-to/scripts.md#in-a-comparison) "
        "found rows that break its rules; doubtful: the check could not be run",
        {
            VOID: phrase("the script's check found rows that break its rules"),
            DOUBTFUL: phrase("the script's check could not be run: {reason}"),
        },
        {VOID: ROWS_LOST, DOUBTFUL: phrase("run the check by hand and look at what it prints")},
    ),
    "errors": Telling(
        (VOID, NOTE),
        "over 0.1 % of the statements failed and were not retried; a note if fewer failed, if "
        "transactions were retried (`retries`), or if a script itself counts errors (`script`); "
        "lock wait timeouts do not count if no transaction was completed",
        lists.errors,
        phrase("remove the cause, or compare at a load level where it does not happen"),
    ),
    "retries": Telling(
        (DOUBTFUL, NOTE),
        "over 0.1 % of the transactions were retried after an error such as a deadlock, a lock "
        "wait timeout or a write conflict; a note if fewer were",
        lists.retries,
        phrase("use more rows or fewer connections, unless you want to compare contention"),
    ),
    "client-bound": Telling(
        (VOID,),
        "a thread of the load generator used over 70 % of a core",
        phrase(
            "the busiest generator thread used {share:.0%} of a core (limit {limit:.0%}, threads in"
            " all: {threads})"
        ),
        phrase(
            "use several load generators (load.generators), give the generator cores of its own "
            "(procedure.pin), or lower the load"
        ),
    ),
    "near-ceiling": Telling(
        (DOUBTFUL,),
        "closed loop: the trial's throughput is over 50 % of what the load generator reached in "
        "this run on a built-in server that answers at once",
        phrase(
            "{rate_per_s:.0f} transactions/s are {share:.0%} of the {ceiling_per_s:.0f} that this "
            "load generator reaches on a server that answers at once (limit {limit:.0%})"
        ),
        phrase(
            "give the generator more cores or another host; the server may be faster than "
            "measured here"
        ),
    ),
    "timer-late": Telling(
        (DOUBTFUL,),
        "open loop: the load generator sent transactions late although a connection was free: p99 "
        "of its delay is over 0.2 ms and over 5 % of the median latency",
        phrase(
            "the load generator sent transactions late although a connection was free: p99 of its "
            "delay {late_ms:.2f} ms (limit {limit_ms:.2f} ms, median latency {median_ms:.2f} ms)"
        ),
        phrase("give the generator cores of its own (procedure.pin) or load from another host"),
    ),
    "certificate-failed": Telling(
        (VOID,),
        "[`dbdyno certify`](../how-to/certify.md) found the load generator beyond a limit on this "
        "machine, and the machine has not changed since",
        lambda values: say(
            "the load generator failed its certification of {made}: {faults}",
            made=values["made_at"],
            faults=listed(certificate_faults(values["wrong"], values["late"]), "; "),
        ),
        phrase(
            "stop other programs on this machine, run `dbdyno certify` until it passes, then "
            "measure again"
        ),
    ),
    "rate-not-sustained": Telling(
        (DOUBTFUL, NOTE),
        "open loop: the backlog of transactions not yet sent grew over the second half of the "
        "measured window; a note if the rate was tried only to find a limit ([open "
        "loop](../how-to/open-loop.md))",
        phrase(
            "{rate_per_s:g} transactions/s were due and {answered_per_s:.1f} were completed: over "
            "the second half of the window the backlog grew by {growth_per_s:.1f} a second (limit "
            "{limit_per_s:.1f}), to {backlog}"
        ),
        phrase(
            "compare latency at a lower rate; at this rate latency depends on the window's length"
        ),
    ),
    "few-requests": Telling(
        (DOUBTFUL,),
        "open loop: fewer than 100 requests are slower than the compared percentile",
        lambda values: say(
            "{requests} requests; {percentile} needs {needed}, of which 100 are slower",
            **{**values, "percentile": METRICS[values["metric"]]},
        ),
        phrase("use a window of {window_s} s or more at this rate, or a lower percentile"),
    ),
    "commits-unflushed": Telling(
        (VOID,),
        "the settings promise a flush before each commit is acknowledged, but for N commits of C "
        "connections the server synced its log fewer than 0.9 × N / C times, with half a second "
        "allowed for the time of reading ([why](../how-to/durability.md))",
        lambda values: say(
            "{events} commits of {connections} need at least {needed:.0f} flushes of the log, but "
            "the server made {flushes:.0f} ({share:.1%})",
            events=values["commits"],
            connections=count(values["connections"], "connection"),
            needed=values["needed"],
            flushes=values["flushes"],
            share=values["share"],
        ),
        phrase(
            "look for what swallows syncs (nosync, eatmydata, tmpfs): this system does less work "
            "than its settings promise"
        ),
    ),
    "unseen-flushes": Telling(
        (DOUBTFUL, NOTE),
        "the machine's disks counted flushes for under 10 % of a system's syncs, and for over 50 "
        "% of another system's; a note if for no system over 50 %",
        phrase(
            "the machine's disks counted flushes for {share:.0%} of the syncs that the system "
            "made or promised"
        ),
        phrase(
            "put all systems on the same kind of disk; a disk without a volatile cache (write "
            "through) reports no flushes, and neither does memory used as a disk (tmpfs)"
        ),
    ),
    "trial-failed": Telling(
        (VOID,),
        "the trial did not end as planned",
        phrase("{window_s:.1f} s into the measured window: {failure}"),
        phrase("look at the server's log; a resumed run repeats the trial and keeps this attempt"),
        {Fact.ELSEWHERE: phrase("read the end of the log; import a complete run")},
    ),
    "server-restarted": Telling(
        (VOID, DOUBTFUL),
        "the server's uptime grew by over 2 s less than the measured window lasted (one that never "
        "moves is not judged); doubtful: by over 5 s more than warm-up and window together",
        phrase(
            "the server's uptime grew by {uptime_s:.0f} s over a window of {window_s:.1f} s"
            " ({least_s:.0f} to {most_s:.0f} s expected)"
        ),
        {
            VOID: phrase("look for a crash or a restart in the server's log"),
            DOUBTFUL: phrase("the counters were read late; is the machine overloaded?"),
        },
    ),
    "stall": Telling(
        (DOUBTFUL,),
        "no statement was answered for half a second although transactions ran, or no transaction "
        "was completed in a second (not judged if connections pause between transactions); 10 or "
        "more transactions were expected in that time",
        lists.stall,
        phrase(
            "look in the server's log for a checkpoint or flush at that time; if the system "
            "stalls regularly, use windows long enough for several stalls"
        ),
    ),
    "unequal-load": Telling(
        (VOID,),
        "the systems of one block got requests of different seed, distribution or use of prepared "
        "statements",
        lists.unequal_load,
        phrase("run the block again with one plan and one version of dbdyno"),
    ),
    "imported-run": Telling(
        (DOUBTFUL,),
        "another tool measured the run (`dbdyno import`): order, settings and machine are unknown",
        phrase(
            "imported from another tool's record: the order of trials, the servers' settings and "
            "the machine are unknown, so there are numbers and ratios but no verdict"
        ),
        phrase("measure with `dbdyno compare` to get a verdict"),
    ),
    "incomplete-run": Telling(
        (DOUBTFUL,),
        "planned trials are missing; in a run that ends when decided, only those of blocks that "
        "were begun count as missing",
        lists.incomplete_run,
        phrase("resume the run; stopping when the numbers look good makes intervals too narrow"),
    ),
    "sequential-design": Telling(
        (DOUBTFUL,),
        "two blocks or more were measured, but all trials of a system came before, or all after, "
        "those of the baseline",
        phrase("{system} and {baseline} did not take turns: all trials of one came first"),
        phrase(
            "any change of the machine meanwhile looks like a difference between the systems; "
            "measure them in blocks"
        ),
    ),
    "split-block": Telling(
        (DOUBTFUL,),
        "more than half an hour, and ten times as long as usual, passed between two trials of a "
        "block; or, after an interrupt or a failed trial, one system's server was restarted "
        "between its cells and another's was not; or the server of an endpoint was up for less "
        "than the time since the block's trial before",
        {
            "started-again": phrase(
                "the server of {arm} was restarted within block {block}: its later cells began on "
                "a cold server, those of the other systems on a warm one"
            ),
            "restarted": phrase(
                "the server of {system} was restarted within block {block}, or another answered: "
                "it had been up for {uptime_s:.0f} s, and {since_s:.0f} s before it was in use"
            ),
            "paused": phrase(
                "{hours:.1f} h passed between two trials of block {block}; {usual_s:.0f} s are "
                "usual"
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
        "the throughput of all systems together rose or fell by over 2 % in the course of the "
        "run, p < 0.01 (with 8 trials or more)",
        phrase(
            "in the course of the run the throughput of all systems together changed by "
            "{change:+.1%} (line fitted to {trials} trials, p = {chance:.4f})"
        ),
        phrase("ratios within blocks are not affected; absolute rates are"),
    ),
    "uncontrolled-server": Telling(
        (DOUBTFUL,),
        "a system is an endpoint: dbdyno does not restart it or restore its rows",
        lists.uncontrolled_server,
        phrase(
            "restart and reload it between runs yourself, keep others off it, or measure a system"
            " that dbdyno can start"
        ),
    ),
    "unequal-settings": Telling(
        (DOUBTFUL, NOTE),
        "a system's settings promise other durability of commits or binary log, or other repair "
        "of torn pages, than the baseline's; caches of data pages differ by over 1 %; I/O method, "
        "instrumentation, query cache or connection handling differ; a note if the plan asks for "
        "the difference",
        durability.unequal_settings,
        {
            DOUBTFUL: phrase(
                "set them equal in the plan; else the systems do not do the same work"
            ),
            NOTE: ASKED,
        },
        {
            Fact.OTHERS: {
                DOUBTFUL: phrase(
                    "have them set equal at the endpoint; else the systems do not do the same work"
                ),
                NOTE: ASKED,
            }
        },
    ),
    "changed-versions": Telling(
        (DOUBTFUL,),
        "a system or the load engine had two versions within the run",
        lists.changed_versions,
        phrase("begin a new run; a resumed run needs the same versions of all programs"),
    ),
    "little-law": Telling(
        (VOID,),
        "closed loop: throughput × mean latency differs from the number of connections by over 1 "
        "% more than transactions across the window's edges, or without an end, explain; if "
        "connections pause between transactions, only if it is larger; not for imported trials",
        phrase(
            "{rate_per_s:.1f} transactions/s × {latency_ms:.3f} ms = {busy:.2f} busy connections, "
            "but the load had {connections}: off by {off:+.1%} (tolerance {tolerance:.1%})"
        ),
        phrase(
            "negative: connections stood idle (generator too slow, or reconnecting); positive: "
            "transactions or time were miscounted"
        ),
    ),
    "statements-of-event": Telling(
        (VOID,),
        "the number of statements per transaction differs from that of the workload or template "
        "by over 0.1 % more than the window's edges, retries and errors explain; not for imported "
        "trials",
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
        "between two readings of its counters, the server's number of commits differs from the "
        "load generator's by over 0.5 % more than the time that a reading takes explains",
        phrase(
            "the server's {counter} rose by {seen:.0f}, but the load generator counted {counted}: "
            "off by {off:+.0f}, {share:+.1%} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "another program used the server, or the load did not reach it; use a server without "
            "other clients"
        ),
    ),
    "unequal-dataset": Telling(
        (VOID,),
        "after loading, a system held fewer rows than it was sent, or other rows (by digest) than "
        "the first system that holds all",
        lists.unequal_dataset,
        phrase("remove the servers' data (`dbdyno runs clean`), and begin a new run"),
        {Fact.OTHERS: phrase("drop its tables at the endpoint, and begin a new run")},
    ),
    "rows-not-kept": Telling(
        (VOID,),
        "after a system's last trial, its tables do not have the rows that the workloads should "
        "leave: after reads the same rows (by digest), after updates and whole transactions the "
        "same number",
        lists.rows_not_kept,
        ROWS_LOST,
        {
            Fact.OTHERS: phrase(
                "keep other clients off its tables; if none wrote there, report this fault"
            )
        },
    ),
    "unequal-plans": Telling(
        (NOTE,),
        "a kind of statement, or a statement of a "
        "[template](../how-to/templates.md#how-it-is-run), has another query plan than on the "
        "baseline (access, index or extra of `EXPLAIN`)",
        lists.unequal_plans,
        phrase(
            "part of the difference may come from the optimizer's choice of plan, not from the "
            "storage engine"
        ),
    ),
    "replicas-missing": Telling(
        (VOID,),
        "not all replicas replicated at the start and end of the measured window, or no reading "
        "shows that they did",
        lists.replicas_missing,
        phrase("look into the replicas' error logs; the trial did less work than it was meant to"),
    ),
    "commits-not-waited": Telling(
        (VOID,),
        "a commit did not wait for a replica as the plan says, or waited at another point than "
        "planned, or no replica acknowledged a commit although the load wrote "
        "([topology](../how-to/topology.md))",
        lists.commits_not_waited,
        lambda values: lists.WAIT_ADVICE[values["reasons"][0]["case"]],
    ),
    "replica-lags": Telling(
        (DOUBTFUL,),
        "the slowest replica was behind by more than the commits of one second",
        phrase(
            "the slowest replica was {behind:.0f} transactions behind at the end of the window, "
            "{behind_s:.1f} s of the load (limit {limit_s:.0f} s)"
        ),
        phrase(
            "let the replica apply in parallel, or lower the load: only the primary sustains this "
            "rate"
        ),
    ),
    "disturbed": Telling(
        (VOID, NOTE),
        "in the measured window other processes and stolen time took more of the machine's CPU "
        "than `design.disturbance_max` (10 %), or stolen time alone if the server's CPU is "
        "unknown; a note on a cell that was measured again for this reason, or was not because "
        "the run had no repeats left",
        lists.disturbed,
        {
            **dict.fromkeys(
                ("attributed", "stolen"),
                phrase(
                    "stop other programs on this machine and measure again; "
                    "design.disturbance_max sets another limit"
                ),
            ),
            **dict.fromkeys(
                ("others", "lost", "other-limit", "used-up"),
                phrase(
                    "the counted measurements are not affected; a quiet machine needs no repeats"
                ),
            ),
        },
    ),
    "machine": Telling(
        (DOUBTFUL, NOTE),
        "in a trial the machine was shared, slowed down or unlike in the run's other trials "
        "([limits](#limits-of-machine))",
        lists.machine,
        lists.machine_advice,
    ),
    "uneven-disturbance": Telling(
        (DOUBTFUL,),
        "in a block, other processes took over 5 % more of the machine's CPU during one system's "
        "trial of a cell than during another's (their CPU, steal, and I/O wait for bytes that the "
        "server did not ask for)",
        lists.uneven_disturbance,
        phrase("this distorts the ratio: stop other programs on this machine and measure again"),
    ),
    "not-steady": Telling(
        (DOUBTFUL, NOTE),
        "a system's throughput was still changing when its windows began, so [all windows of the "
        "cell](../how-it-works/verdicts.md#where-a-window-begins-and-what-a-warm-up-leaves-in-it) "
        "count from a later second; doubtful if the counted part may still be over 0.5 % off the "
        "final throughput, for which the verdict's interval allows",
        lists.not_steady,
        {
            DOUBTFUL: phrase("warm up for about {until_s:.0f} s, or use a longer window"),
            NOTE: phrase("warm up for longer (--warmup, trial.warmup)"),
        },
    ),
}
"""Rows in the order of docs/reference/findings.md."""
