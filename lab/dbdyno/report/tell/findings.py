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

ASKED: Final = phrase("the plan asks for it; say so beside the numbers")
ROWS_LOST: Final = phrase("the system lost, kept or changed rows that it should not: report that")

FINDINGS: Final[Mapping[str, Telling]] = {
    "cell-cannot-run": Telling(
        (VOID,),
        "the system does not support the cell's setting, or cannot take its load",
        lambda values: name(values["reason"]) if values["reason"] else say("it could not be run"),
        phrase(
            "change the setting, the load or the system; resume tries it again only with --retry"
        ),
    ),
    "no-events": Telling(
        (VOID,),
        "no event was completed in the window, though statements were answered, or no statement"
        " was sent",
        lambda values: say(
            "{events} in a window of {window_s:.1f} s",
            events=count(values["events"], "event"),
            window_s=values["window_s"],
        ),
        phrase(
            "look at the trial's errors and the server's log; a slow system needs a longer window"
        ),
    ),
    "stands-still": Telling(
        (DOUBTFUL, NOTE),
        "no statement was answered for half of the window or more while events ran; if other"
        " events were completed, 10 must have been expected in that time; a note if none was"
        " completed, which is [a result](../how-it-works/verdicts.md#a-system-that-stands-still)",
        lists.stands_still,
        phrase(
            "the numbers stay as they are, a standstill included; look at what the statements"
            " waited for: a lock, a replica, a full disk"
        ),
    ),
    "step-undone": Telling(
        (DOUBTFUL,),
        "a [step before the trial](../how-it-works/procedure.md) could not be taken or completed",
        lists.step_undone,
        phrase("give dbdyno the right to it or the step more time, or leave it out of the plan"),
    ),
    "script-check": Telling(
        (VOID, DOUBTFUL),
        "after a trial the command `check` of a [script](../how-to/scripts.md#in-a-comparison)"
        " says that the rows break its rules; doubtful: the check could not be run",
        {
            VOID: phrase("the script's check says that the rows break its rules"),
            DOUBTFUL: phrase("the script's check could not be asked: {reason}"),
        },
        {VOID: ROWS_LOST, DOUBTFUL: phrase("run the check by hand and look at what it prints")},
    ),
    "errors": Telling(
        (VOID, NOTE),
        "over 0.1 % of the statements failed for good; a note below that, if events were retried"
        " (`retries`), or if a script itself counts errors (`script`); a lock wait timeout is no"
        " failure if no event was completed",
        lists.errors,
        phrase("remove the cause, or compare at a load level where it does not happen"),
    ),
    "retries": Telling(
        (DOUBTFUL, NOTE),
        "over 0.1 % of the events were retried after a deadlock or a lock wait timeout; a note"
        " below that",
        lambda values: say(
            "{again} had to begin again after a deadlock or a lock wait, {share:.3%} of all "
            "(limit {limit:.1%}); the rate counts those that succeeded",
            again=count(values["events"], "event"),
            share=values["share"],
            limit=values["limit"],
        ),
        phrase("use more rows or fewer connections, unless contention is what is compared"),
    ),
    "client-bound": Telling(
        (VOID,),
        "a thread of the generator used over 70 % of a core",
        phrase(
            "the busiest generator thread used {share:.0%} of a core (limit {limit:.0%}, threads in"
            " all: {threads})"
        ),
        phrase(
            "make the load with several generators (load.generators) or on cores of its own"
            " (procedure.pin), or lower it"
        ),
    ),
    "near-ceiling": Telling(
        (DOUBTFUL,),
        "closed loop: the trial's rate is over 50 % of the rate that the same generator reached in"
        " this run on a server that answers at once",
        phrase(
            "{rate_per_s:.0f} events/s are {share:.0%} of the {ceiling_per_s:.0f} that the same"
            " generator reaches on a server that answers at once (limit {limit:.0%})"
        ),
        phrase("give the generator more cores or another host; the server may be faster than this"),
    ),
    "timer-late": Telling(
        (DOUBTFUL,),
        "open loop: though a connection was free, p99 of the generator's own lateness is over 0.2"
        " ms and over 5 % of the median latency",
        phrase(
            "the generator began events late though a connection was free: p99 {late_ms:.2f} ms"
            " (limit {limit_ms:.2f} ms, median latency {median_ms:.2f} ms)"
        ),
        phrase("give the generator cores of its own (procedure.pin) or load from another host"),
    ),
    "certificate-failed": Telling(
        (VOID,),
        "[`dbdyno certify`](../how-to/certify.md) found numbers of the generator beyond their"
        " limits on this machine, which has not changed since",
        lambda values: say(
            "the generator's certificate of {made} did not pass: {faults}",
            made=values["made_at"],
            faults=listed(certificate_faults(values["wrong"], values["late"]), "; "),
        ),
        phrase("quiet the machine, run `dbdyno certify` until it passes, then measure again"),
    ),
    "rate-not-sustained": Telling(
        (DOUBTFUL, NOTE),
        "at a rate: the backlog of requests not yet started grew over the second half of the"
        " window; a note if the rate only helps to find a limit ([open"
        " loop](../how-to/open-loop.md))",
        phrase(
            "{rate_per_s:g} requests/s fell due and {answered_per_s:.1f} were answered: over the"
            " last half of the window the backlog grew by {growth_per_s:.1f} a second (limit"
            " {limit_per_s:.1f}), to {backlog}"
        ),
        phrase("compare latency at a lower rate; what is told here depends on the window's length"),
    ),
    "few-requests": Telling(
        (DOUBTFUL,),
        "at a rate: fewer than 100 requests lie beyond the percentile that is compared",
        lambda values: say(
            "{requests} requests, {percentile} needs {needed}: 100 beyond it",
            **{**values, "percentile": METRICS[values["metric"]]},
        ),
        phrase("use a window of {window_s} s or more at this rate, or a lower percentile"),
    ),
    "commits-unflushed": Telling(
        (VOID,),
        "the settings promise a flush before each answer, and N commits of C connections synced"
        " the log less than 0.9 × N / C times, half a second of skewed reading allowed"
        " ([why](../how-to/durability.md))",
        lambda values: say(
            "{events} commits of {connections} need {needed:.0f} flushes of the log at "
            "least, the server made {flushes:.0f}: {share:.1%}",
            events=values["commits"],
            connections=count(values["connections"], "connection"),
            needed=values["needed"],
            flushes=values["flushes"],
            share=values["share"],
        ),
        phrase(
            "look for what swallows syncs (nosync, eatmydata, tmpfs): this system does less work"
        ),
    ),
    "unseen-flushes": Telling(
        (DOUBTFUL, NOTE),
        "the machine's disks counted under 10 % of a system's syncs, and over 50 % of another's; a"
        " note if they counted over 50 % of no system's",
        phrase("the machine's disks saw {share:.0%} of the syncs that it made or promised"),
        phrase(
            "put all systems on the same kind of disk; one without a cache that can lose (write"
            " through) reports none, and memory is no disk (tmpfs)"
        ),
    ),
    "trial-failed": Telling(
        (VOID,),
        "the trial did not end as planned",
        phrase("after {window_s:.1f} s of the window: {failure}"),
        phrase("look at the server's log; a resumed run repeats the trial and keeps this attempt"),
        {Fact.ELSEWHERE: phrase("read the end of the log; import a run that was not broken off")},
    ),
    "server-restarted": Telling(
        (VOID, DOUBTFUL),
        "the server's uptime grew by less than the window (2 s allowed); doubtful: by over 5 s"
        " more than warm-up and window",
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
        "no statement was answered for half a second while events ran, or no event was completed"
        " in a second (not judged if connections rest between events); at least 10 events were"
        " expected in that time",
        lists.stall,
        phrase(
            "compare with the server's log (checkpoint, flush); a stall that belongs to the system"
            " needs windows that hold several of them"
        ),
    ),
    "unequal-load": Telling(
        (VOID,),
        "systems of one block got different requests: seed, distribution, prepared statements or"
        " not",
        lists.unequal_load,
        phrase("run the block again with one plan and one version of dbdyno"),
    ),
    "imported-run": Telling(
        (DOUBTFUL,),
        "another tool measured it (`dbdyno import`): order, settings and machine were not seen",
        phrase(
            "read from what another tool recorded: the order of runs, the servers' settings and the"
            " machine were not seen, so there are numbers and ratios and no verdict"
        ),
        phrase("measure the same with `dbdyno compare` for a verdict"),
    ),
    "incomplete-run": Telling(
        (DOUBTFUL,),
        "planned trials are missing; in a run until decided, only trials of blocks that were begun",
        lists.incomplete_run,
        phrase("resume the run; stopping where the numbers please makes intervals too narrow"),
    ),
    "sequential-design": Telling(
        (DOUBTFUL,),
        "all trials of a system came before, or after, all trials of the baseline, over two blocks"
        " or more",
        phrase("{system} and {baseline} did not take turns: all trials of one came first"),
        phrase(
            "whatever changed on the machine meanwhile looks like a difference of the systems;"
            " measure them in blocks"
        ),
    ),
    "split-block": Telling(
        (DOUBTFUL,),
        "more than half an hour, and ten times as long as usual, passed between two trials of a"
        " block; or one system's server was restarted between its cells, and another's was not, as"
        " after an interrupt or a failed trial",
        {
            "started-again": phrase(
                "the server of {arm} was started again within block {block}: cells after that began"
                " cold there, and on a server at work elsewhere"
            ),
            "paused": phrase(
                "{hours:.1f} h lie between trials of block {block}; {usual_s:.0f} s are usual"
            ),
        },
        {
            "started-again": phrase("measure again with one block more"),
            "paused": phrase(
                "the machine may have been another by then; measure again with one block more"
            ),
        },
    ),
    "machine-drift": Telling(
        (NOTE,),
        "the rates of all systems together changed by over 2 % along the run, p < 0.01 (8 trials or"
        " more)",
        phrase(
            "over the run the rates of all systems changed by {change:+.1%} together (line through"
            " {trials} trials, p = {chance:.4f})"
        ),
        phrase("ratios within blocks do not carry it; absolute rates do"),
    ),
    "uncontrolled-server": Telling(
        (DOUBTFUL,),
        "a system is an endpoint: not restarted, rows not restored",
        lambda values: say(
            "an endpoint: in {blocks} its servers were not restarted and its rows not restored; "
            "its processes, disks and other clients were not seen",
            blocks=count(values["blocks"], "block"),
        ),
        phrase(
            "restart and reload it between runs yourself, keep others off it, or measure a system"
            " that dbdyno can start"
        ),
    ),
    "unequal-settings": Telling(
        (DOUBTFUL, NOTE),
        "a system promises other durability of commits, binary log or pages after a crash than the"
        " baseline; caches of data pages differ by over 1 %; I/O method, instrumentation, result"
        " cache or connection handling differ; a note if the plan sets it",
        durability.unequal_settings,
        {
            DOUBTFUL: phrase("set them equal in the plan, or the systems do not do the same work"),
            NOTE: ASKED,
        },
        {
            Fact.OTHERS: {
                DOUBTFUL: phrase(
                    "have them set equal at the endpoint, or the systems do not do the same work"
                ),
                NOTE: ASKED,
            }
        },
    ),
    "changed-versions": Telling(
        (DOUBTFUL,),
        "a system or the engine had two versions within the run",
        lists.changed_versions,
        phrase("begin a new run; a run that is resumed must find the same programs"),
    ),
    "little-law": Telling(
        (VOID,),
        "closed loop: the number of connections differs from throughput × mean latency by over 1"
        " %, plus what events that cross the window's edges or never end explain; if connections"
        " rest between events, only if it is smaller; not of imported trials",
        phrase(
            "{rate_per_s:.1f} events/s × {latency_ms:.3f} ms = {busy:.2f} connections busy, the"
            " load had {connections}: off by {off:+.1%} (tolerance {tolerance:.1%})"
        ),
        phrase(
            "a negative figure means connections stood idle (generator too slow, or reconnecting),"
            " a positive one that events or time were miscounted"
        ),
    ),
    "statements-of-event": Telling(
        (VOID,),
        "statements per event differ from the workload's, or from those of a template's events, by"
        " over 0.1 % plus what edges, retries and errors explain; not of imported trials",
        phrase(
            "{statements} statements in {events} events are {per_event:.3f} an event, the workload"
            " has {per_event_wanted:g}: off by {off:+d} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "compare the workload's options with the plan's; both systems must do the same work"
        ),
    ),
    "commits-at-server": Telling(
        (DOUBTFUL,),
        "between two readings of its counters, the server counted other commits than the load, by"
        " over 0.5 % plus the skew of the readings",
        phrase(
            "the server's {counter} rose by {seen:.0f}, the load counted {counted}: off by"
            " {off:+.0f}, {share:+.1%} (tolerance {tolerance:.0f})"
        ),
        phrase(
            "something else used the server, or the load did not reach it; give it a server of its"
            " own"
        ),
    ),
    "unequal-dataset": Telling(
        (VOID,),
        "a system held other rows than the baseline, by the digest taken after loading",
        phrase("digest of the rows of {system}: {digests}; of {baseline}: {digests_of_baseline}"),
        phrase("remove the servers' data (`dbdyno runs clean`), and begin a new run"),
        {Fact.OTHERS: phrase("drop its tables at the endpoint, and begin a new run")},
    ),
    "rows-not-kept": Telling(
        (VOID,),
        "after a system's last trial, tables do not have the rows that its workloads leave: the"
        " same rows after reads (by digest), the same number after updates and whole transactions",
        lists.rows_not_kept,
        ROWS_LOST,
        {
            Fact.OTHERS: phrase(
                "keep other clients off its tables; if none wrote there, report that"
            )
        },
    ),
    "unequal-plans": Telling(
        (NOTE,),
        "a kind of statement, or a statement of a"
        " [template](../how-to/templates.md#how-it-is-run), has another query plan than on the"
        " baseline (`EXPLAIN`: access, index, extra)",
        lists.unequal_plans,
        phrase("part of the difference may be the optimizer's choice, not the engine's"),
    ),
    "replicas-missing": Telling(
        (VOID,),
        "not all replicas ran at both edges of the window, or there is no evidence that they did",
        lists.replicas_missing,
        phrase("look into the replicas' error logs; the trial did less work than it was meant to"),
    ),
    "commits-not-waited": Telling(
        (VOID,),
        "a commit did not wait for a replica as the plan says, or waited at another point, or the"
        " window wrote and no commit was acknowledged ([topology](../how-to/topology.md))",
        lists.commits_not_waited,
        lambda values: lists.WAIT_ADVICE[values["reasons"][0]["case"]],
    ),
    "replica-lags": Telling(
        (DOUBTFUL,),
        "the slowest replica was behind by more than one second's commits",
        phrase(
            "the slowest replica was {behind:.0f} transactions behind at the end of the window, "
            "{behind_s:.1f} s of the load (limit {limit_s:.0f} s)"
        ),
        phrase(
            "let the replica apply in parallel, or lower the load: this rate is the primary's alone"
        ),
    ),
    "disturbed": Telling(
        (VOID, NOTE),
        "other processes and stolen time took more of the machine's CPU in the window than"
        " `design.disturbance_max` (10 %); stolen time alone if the server's CPU is unknown; a"
        " note on a cell that was measured again for this reason, or not again because the run's"
        " repeats were used up",
        lists.disturbed,
        {
            **dict.fromkeys(
                ("attributed", "stolen"),
                phrase(
                    "stop what else runs on this machine and measure again; another limit is "
                    "design.disturbance_max"
                ),
            ),
            **dict.fromkeys(
                ("others", "lost", "other-limit", "used-up"),
                phrase("nothing is wrong with what counts; a quiet machine needs no repeats"),
            ),
        },
    ),
    "machine": Telling(
        (DOUBTFUL, NOTE),
        "in a trial the machine was shared, held back or unlike the run's other trials"
        " ([limits](#limits-of-machine))",
        lists.machine,
        lists.machine_advice,
    ),
    "uneven-disturbance": Telling(
        (DOUBTFUL,),
        "in a block, others took over 5 % more of the machine's CPU while one system of a cell was"
        " measured than while another was (their CPU, steal, and I/O wait as far as disks moved"
        " bytes that the server did not ask for)",
        lists.uneven_disturbance,
        phrase(
            "the ratio carries the difference: stop what else runs on this machine and measure "
            "again"
        ),
    ),
    "not-steady": Telling(
        (DOUBTFUL, NOTE),
        "a system's rate was still changing when its windows began, so [all windows of the"
        " cell](../how-it-works/verdicts.md#where-a-window-begins-and-what-a-warm-up-leaves-in-it)"
        " count from a later second; doubtful if it may change by over 0.5 % in the counted part,"
        " which the verdict's interval includes",
        lists.not_steady,
        {
            DOUBTFUL: phrase("warm up for about {until_s:.0f} s, or use a longer window"),
            NOTE: phrase("warm up for longer (--warmup, trial.warmup)"),
        },
    ),
}
"""Rows in the order of docs/reference/findings.md."""
