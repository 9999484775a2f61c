"""Evidence that lists several items: a function for each check beyond a single template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbdyno.language.words import Said, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Cell
from dbdyno.report.tell.measured import cell_title, load_words
from dbdyno.report.tell.terms import step_name

Values = Mapping[str, Any]
"""Values of a finding, or of a part of one."""


def list_of(items: Iterable[object], sign: str = ", ", most: int | None = None) -> Said:
    """Items in a list; an ellipsis stands for items beyond `most`."""
    texts = [item if isinstance(item, Said) else name(str(item)) for item in items]
    more = [name("…")] if most is not None and len(texts) > most else []
    return listed([*texts[:most], *more], sign)


def errors(values: Values) -> Said:
    """Evidence of `errors`."""
    codes = (say("{code}: {times}", code=c, times=n) for c, n in sorted(values["codes"].items()))
    return say(
        "{failed} of {statements} statements failed, {share:.3%} (limit {limit:.1%}); by code"
        " {codes}",
        **{**values, "codes": listed(codes)},
    )


def stands_still(values: Values) -> Said:
    """Evidence of `stands-still`."""
    parts = [
        say(
            "nothing was answered for {silent_s:.1f} s of a window of {window_s:.1f} s while"
            " {events} ran",
            silent_s=values["silent_s"],
            window_s=values["window_s"],
            events=count(values["events"], "event"),
        )
    ]
    if counters := values["counters"]:
        most = (say("{counter} up to {most:.0f}", counter=c, most=m) for c, m in counters.items())
        parts.append(say("the server's counters: {counters}", counters=listed(most)))
    if values["late_s"]:
        parts.append(say("who asked for them waited {waited_s:.1f} s", waited_s=values["late_s"]))
    if statements := values["statements"]:
        ordered = sorted(statements.items(), key=lambda item: (-item[1], item[0]))
        waited = (say("{times} × {statement}", times=n, statement=name(s)) for s, n in ordered)
        parts.append(
            say("statements that waited at its end: {statements}", statements=listed(waited))
        )
    if values["is_mute"]:
        parts.append(say("the server did not answer who asked for its counters either"))
    return listed(parts, "; ")


def unequal_plans(values: Values) -> Said:
    """Evidence of `unequal-plans`."""
    parts = []
    for kind, plans in values["plans"].items():
        (baseline, wanted), (system, other) = plans.items()
        of = {"baseline": name(baseline), "wanted": name(wanted), "system": name(system)}
        parts.append(
            say("{kind}: {baseline} {wanted}; {system} {found}", kind=kind, **of, found=name(other))
        )
    return say(
        "{count} of {total} kinds of statements take another way: {parts}",
        count=values["differing"],
        total=values["kinds"],
        parts=listed(parts, " | "),
    )


def rows_not_kept(values: Values) -> Said:
    """Evidence of `rows-not-kept`."""
    tables = values["tables"]
    has = (say("{table} has {rows}", table=table, rows=rows) for table, rows in tables.items())
    return say(
        "its workloads leave {wanted} rows in each table; at the run's end: {seen}",
        wanted=values["rows"],
        seen=listed(has) if tables else say("as many, but others"),
    )


def step_undone(values: Values) -> Said:
    """Evidence of `step-undone`."""
    steps = (
        say(
            "{step}: {why}",
            step=step_name(step),
            why=why or say("no reason given"),
        )
        for step, why in values["steps"].items()
    )
    return say("the trial began without what the plan asks for: {steps}", steps=listed(steps, "; "))


def stall(values: Values) -> Said:
    """Evidence of `stall`."""
    if values["case"] == "silent":
        seen = say(
            "no statement was answered for up to {longest_s:.2f} s while events ran",
            longest_s=values["longest_s"],
        )
    else:
        seen = say(
            "no event in {empty} of {all} measured seconds",
            empty=values["empty"],
            all=values["seconds"],
        )
    return say(
        "{seen}, at {rate:.1f} events/s on average; seconds since the load began: {seconds}",
        seen=seen,
        rate=values["rate_per_s"],
        seconds=list_of(values["at_s"], most=10),
    )


def unequal_load(values: Values) -> Said:
    """Evidence of `unequal-load`."""
    seen = []
    for system, (seed, distribution, is_prepared) in values["loads"].items():
        load = say(
            "seed {seed}, {distribution}, {statements}",
            seed=seed,
            distribution=distribution,
            statements=say("prepared statements") if is_prepared else say("plain statements"),
        )
        seen.append(say("{system}: {load}", system=system, load=load))
    return say(
        "systems of block {block} got different requests: {seen}",
        block=values["block"],
        seen=listed(seen, "; "),
    )


def incomplete_run(values: Values) -> Said:
    """Evidence of `incomplete-run`."""
    named = [
        say(
            "block {block}, {system}, {cell}",
            **{**trial, "cell": cell_title(Cell.model_validate(trial["cell"]))},
        )
        for trial in values["trials"]
    ]
    return say("planned trials are missing: {named}", named=list_of(named, "; ", most=5))


def changed_versions(values: Values) -> Said:
    """Evidence of `changed-versions`."""
    arm = say("{system} ({setting})", system=values["system"], setting=values["setting"])
    return say(
        "{what} had {count} versions within the run: {versions}",
        what=arm if values["system"] else say("the engine"),
        count=len(values["versions"]),
        versions=list_of(values["versions"]),
    )


def disturbed(values: Values) -> Said:
    """Evidence of `disturbed`."""
    if values["case"] == "attributed":
        return say(
            "processes besides server and generator used {others:.1%} of the host's CPU in the "
            "window, and {steal:.1%} was stolen (limit {limit:g} % together)",
            **values,
        )
    if values["case"] == "stolen":
        return say("{steal:.1%} of the host's CPU was stolen (limit {limit:g} %)", **values)
    if values["case"] == "used-up":
        return say(
            "{places} stayed disturbed, with all repeats used that a run of this length has",
            places=count(values["cells"], "cell"),
        )
    if values["case"] == "others":
        why = say("others disturbed it: {share:.1%} of the host's CPU beside {arm}", **values)
    elif values["case"] == "lost":
        why = say("a machine was lost")
    else:
        why = say("others disturbed it: the limit was another one then")
    cell = Cell.model_validate(values["cell"])
    return say(
        "{workload}, {load}, in block {block} was measured again, {times}, because {why}; its last"
        " measurement counts, the others are stored",
        workload=cell.workload,
        load=load_words(cell),
        block=values["block"],
        times=count(values["times"], "time"),
        why=why,
    )


BLOCKS_NAMED: Final = 3


def uneven_disturbance(values: Values) -> Said:
    """Evidence of `uneven-disturbance`."""
    blocks = []
    for uneven in values["uneven"]:
        shares = (
            say("{arm} {all:.1%} (CPU {cpu:.1%}, steal {steal:.1%}, wait {wait:.1%})", **arm)
            for arm in uneven["arms"]
        )
        blocks.append(say("block {block}: {shares}", block=uneven["block"], shares=listed(shares)))
    return say(
        "in {uneven} of {blocks} others took unequal shares of the host's CPU beside the "
        "systems, by more than {limit:g} points (their CPU, steal and I/O wait together): "
        "{figures}",
        uneven=len(blocks),
        blocks=count(values["blocks"], "block"),
        limit=values["limit"],
        figures=list_of(blocks, "; ", most=BLOCKS_NAMED),
    )


def not_steady(values: Values) -> Said:
    """Evidence of `not-steady`."""
    if not values["left"]:
        return say(
            "the systems were not steady when their windows began; all windows of the cell count "
            "{cut} s later, from {seconds:.0f} s of load on",
            cut=values["cut_s"],
            seconds=values["from_s"],
        )
    off = (
        say("{system} {low:+.1%} to {high:+.1%}", system=system, low=low, high=high)
        for system, (low, high) in values["left"].items()
    )
    return say(
        "the rate still changed in the windows, over all blocks; the first {cut} s of each "
        "count as warm-up, and from what counts to where the rate would settle may be: {off}; "
        "the interval of the verdict allows for that",
        cut=values["cut_s"],
        off=listed(off),
    )


def replicas_missing(values: Values) -> Said:
    """Evidence of `replicas-missing`."""
    running = values["running"]
    kinds = {
        "async": say("asynchronous"),
        "semisync": say("semi-synchronous"),
        "group": say("group"),
    }
    return say(
        "{seen}, the plan has {replicas} ({kind})",
        seen=say("no reading of replication")
        if running is None
        else say("{count:.0f} running", count=running),
        replicas=count(values["replicas"], "replica"),
        kind=kinds[values["kind"]],
    )


def commits_not_waited(values: Values) -> Said:
    """Evidence of `commits-not-waited`."""
    parts = []
    for reason in values["reasons"]:
        if reason["case"] == "alone":
            state = say("was on") if reason["is_on"] else say("was off at an edge of the window")
            part = say(
                "{alone} did not wait for a replica and {waited:.0f} did; the primary "
                "ended waiting {ended}, semi-synchronous replication {state}",
                alone=count(reason["alone"], "commit"),
                waited=reason["waited"],
                ended=count(reason["ended"], "time"),
                state=state,
            )
        elif reason["case"] == "unproven":
            part = say(
                "{wrote} writing statements, and no commit that a replica acknowledged",
                wrote=reason["wrote"],
            )
        else:
            part = say(
                "commits waited at {found}, the plan says {wanted}",
                found=reason["at"],
                wanted=reason["wanted"],
            )
        parts.append(part)
    return listed(parts, "; ")


WAIT_ADVICE: Final = {
    "alone": say(
        "find out why the replica was slow or gone; a longer topology.timeout_s makes commits "
        "wait rather than go on alone"
    ),
    "unproven": say("see whether the load's tables are among what is replicated"),
    "wait-point": say("let no setting of the system change the wait point"),
}

MACHINE: Final[Mapping[str, tuple[str, Said]]] = {
    "steal": (
        phrase("{value:.2%} of the host's CPU was stolen in the window (limit {limit:.1%})"),
        say("use a machine that is not shared, or repeat at a quieter time"),
    ),
    "others": (
        phrase(
            "processes besides server and generator used {value:.1%} of the host's CPU ({used:.2f}"
            " of {cores:.1f} cores; limit {limit:.0%})"
        ),
        say("stop what else runs on this machine"),
    ),
    "busy": (
        phrase(
            "generator and server share the machine: {idle:.1%} of the host's CPU was idle (limit"
            " {idle_limit:.0%}), the generator used {generator:.1%}"
        ),
        say(
            "the ratio of two systems still stands, the absolute rate is this machine's; pin the "
            "generator to cores of its own or load from another host"
        ),
    ),
    "quota": (
        phrase("a CPU quota was used up {times} in the window (limit 0)"),
        say("raise or remove cpu.max of the control group: what was measured is the quota"),
    ),
    "heat": (
        phrase("cores were slowed down for heat {times} in the window"),
        say("cool the machine, or fix its clock below the limit and say so"),
    ),
    "memory": (
        phrase("in {value:.2%} of the window some task waited for memory (limit {limit:.0%})"),
        say("give the machine more memory, or the servers smaller caches"),
    ),
    "swap": (
        phrase(
            "{pages} moved to or from swap in the window, {value:.2f} a second (limit {limit:g})"
        ),
        say("switch swap off (swapoff -a), or give the servers smaller caches"),
    ),
    "clock": (
        phrase(
            "the cores' clock was off its usual {usual_mhz:.0f} MHz by {value:+.1%} (limit"
            " {limit:.0%})"
        ),
        say("fix the clock (governor performance, no turbo), then measure again"),
    ),
    "arithmetic": (
        phrase(
            "before its trials a computation took another time than usual in this run: {value:+.0%}"
            " (limit {limit:.0%})"
        ),
        say("look what else ran then; the block's ratio may carry it"),
    ),
    "sync": (
        phrase(
            "before its trials a sync took another time than usual in this run: {value:+.0%} (limit"
            " {limit:.0%})"
        ),
        say("look what else ran then; the block's ratio may carry it"),
    ),
}
"""Evidence and advice for each quantity of `machine`."""


def machine(values: Values) -> Said:
    """Evidence of `machine`."""
    parts = []
    for row in values["rows"]:
        words = {
            "times": count(round(row["value"]), "time"),
            "idle_limit": 1 - row["limit"],
            "pages": count(row.get("pages", 0), "page"),
        }
        parts.append(Said(MACHINE[row["what"]][0], {**row, **words}))
    return listed(parts, "; ")


def machine_advice(values: Values) -> Said:
    """Advice of `machine`, a clause for each quantity."""
    return listed(dict.fromkeys(MACHINE[row["what"]][1] for row in values["rows"]), "; ")
