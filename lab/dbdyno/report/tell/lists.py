"""Evidence that lists several items: a function for each check beyond a single template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbdyno.language.words import Said, count, listed, name, phrase, say
from dbdyno.measurement.measurement import Cell
from dbdyno.report.tell.measured import METRICS, cell_title, load_words
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
        "{failed} of {statements} statements failed, {share:.3%} (limit {limit:.1%}); error "
        "codes: {codes}",
        **{**values, "codes": listed(codes)},
    )


def few_requests(values: Values) -> Said:
    """Evidence of `few-requests`."""
    return say(
        "{requests} requests were measured; {percentile} needs {needed}, of which 100 are slower",
        **{**values, "percentile": METRICS[values["metric"]]},
    )


def commits_unflushed(values: Values) -> Said:
    """Evidence of `commits-unflushed`."""
    return say(
        "{events} commits of {connections} need at least {needed:.0f} flushes of the log, but "
        "the server made {flushes:.0f} ({share:.1%})",
        events=values["commits"],
        connections=count(values["connections"], "connection"),
        needed=values["needed"],
        flushes=values["flushes"],
        share=values["share"],
    )


def retries(values: Values) -> Said:
    """Evidence of `retries`."""
    return say(
        "{again} had to be retried after an error such as a deadlock or a write conflict, "
        "{share:.3%} of all (limit {limit:.1%}); throughput counts only successful ones",
        again=count(values["events"], "transaction"),
        share=values["share"],
        limit=values["limit"],
    )


def stands_still(values: Values) -> Said:
    """Evidence of `stands-still`."""
    parts = [
        say(
            "no statement was answered for {silent_s:.1f} s of a window of {window_s:.1f} s while "
            "{events} ran",
            silent_s=values["silent_s"],
            window_s=values["window_s"],
            events=count(values["events"], "transaction"),
        )
    ]
    if counters := values["counters"]:
        most = (say("{counter} up to {most:.0f}", counter=c, most=m) for c, m in counters.items())
        parts.append(say("the server's counters: {counters}", counters=listed(most)))
    if values["late_s"]:
        parts.append(
            say("reading the server's counters took {waited_s:.1f} s", waited_s=values["late_s"])
        )
    if statements := values["statements"]:
        ordered = sorted(statements.items(), key=lambda item: (-item[1], item[0]))
        waited = (say("{times} × {statement}", times=n, statement=name(s)) for s, n in ordered)
        parts.append(
            say(
                "statements waiting at the end of the window: {statements}",
                statements=listed(waited),
            )
        )
    if values["is_mute"]:
        parts.append(say("the server did not answer requests for its counters either"))
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
        "{count} of {total} kinds of statements have another query plan: {parts}",
        count=values["differing"],
        total=values["kinds"],
        parts=listed(parts, " | "),
    )


def rows_not_kept(values: Values) -> Said:
    """Evidence of `rows-not-kept`."""
    tables = values["tables"]
    has = (say("{table} has {rows}", table=table, rows=rows) for table, rows in tables.items())
    return say(
        "after its workloads, each table should have {wanted} rows; at the end of the run: {seen}",
        wanted=values["rows"],
        seen=listed(has) if tables else say("the same number, but other rows"),
    )


def unequal_dataset(values: Values) -> Said:
    """Evidence of `unequal-dataset`."""
    if values["case"] == "digest":
        return say(
            "digest of the rows of {system}: {digests}; of {baseline}: {digests_of_baseline}",
            system=values["system"],
            digests=list_of(values["digests"]),
            baseline=values["baseline"],
            digests_of_baseline=list_of(values["digests_of_baseline"]),
        )
    tables = (say("{table}: {rows}", table=t, rows=rows) for t, rows in values["tables"].items())
    return say(
        "{system} was sent {sent:,} rows for each table and holds fewer of their ids: {tables}",
        system=values["system"],
        sent=values["sent"],
        tables=listed(tables),
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
    return say("the trial ran without a step of the plan: {steps}", steps=listed(steps, "; "))


def stall(values: Values) -> Said:
    """Evidence of `stall`."""
    if values["case"] == "silent":
        seen = say(
            "no statement was answered for up to {longest_s:.2f} s while transactions ran",
            longest_s=values["longest_s"],
        )
    else:
        seen = say(
            "no transaction was completed in {empty} of {all} measured seconds",
            empty=values["empty"],
            all=values["seconds"],
        )
    return say(
        "{seen} (on average {rate:.1f} transactions/s), at these seconds after the load began: "
        "{seconds}",
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
        what=arm if values["system"] else say("the load engine"),
        count=len(values["versions"]),
        versions=list_of(values["versions"]),
    )


def disturbed(values: Values) -> Said:
    """Evidence of `disturbed`."""
    if values["case"] == "attributed":
        return say(
            "processes besides server and generator used {others:.1%} of the host's CPU in the "
            "window, and the hypervisor took {steal:.1%} (limit {limit:g} % together)",
            **values,
        )
    if values["case"] == "stolen":
        return say("the hypervisor took {steal:.1%} of the CPU (limit {limit:g} %)", **values)
    if values["case"] == "used-up":
        return say(
            "disturbed trials of {places} were not repeated, because the run had no repeats left",
            places=count(values["cells"], "cell"),
        )
    if values["case"] == "others":
        why = say(
            "other processes and steal took {share:.1%} of the host's CPU during the trial of "
            "{arm}",
            **values,
        )
    elif values["case"] == "lost":
        why = say("contact with a machine was lost")
    else:
        why = say("other processes took more CPU than the limit at that time allowed")
    cell = Cell.model_validate(values["cell"])
    return say(
        "{workload}, {load}, in block {block} was measured again {times} because {why}; only the "
        "last measurement counts, the others are stored",
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
            if "cpu" in arm
            else say("{arm} {all:.1%} (steal alone: a server's CPU is unknown)", **arm)
            for arm in uneven["arms"]
        )
        blocks.append(say("block {block}: {shares}", block=uneven["block"], shares=listed(shares)))
    return say(
        "in {uneven} of {blocks} other processes took unequal shares of the host's CPU during the "
        "systems' trials, over {limit:g} percentage points apart (their CPU, steal and I/O wait "
        "together): {figures}",
        uneven=len(blocks),
        blocks=count(values["blocks"], "block"),
        limit=values["limit"],
        figures=list_of(blocks, "; ", most=BLOCKS_NAMED),
    )


def not_steady(values: Values) -> Said:
    """Evidence of `not-steady`."""
    if not values["left"]:
        return say(
            "throughput was still changing when the measured windows began, so every window of "
            "the cell counts only from {seconds:.0f} s after the load began, {cut} s later than "
            "planned",
            cut=values["cut_s"],
            seconds=values["from_s"],
        )
    off = (
        say("{system} {low:+.1%} to {high:+.1%}", system=system, low=low, high=high)
        for system, (low, high) in values["left"].items()
    )
    return say(
        "throughput still changed within the measured windows of all blocks; the first {cut} s "
        "of each count as warm-up, and the final throughput may differ from the counted "
        "throughput by: {off}; the verdict's interval allows for this",
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
        "{seen}, but the plan has {replicas} ({kind})",
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
            state = (
                say("was on")
                if reason["is_on"]
                else say("was off at the start or end of the window")
            )
            part = say(
                "{alone} did not wait for a replica and {waited:.0f} did; the primary gave up "
                "waiting for replicas {ended}, semi-synchronous replication {state}",
                alone=count(reason["alone"], "commit"),
                waited=reason["waited"],
                ended=count(reason["ended"], "time"),
                state=state,
            )
        elif reason["case"] == "unproven":
            part = say(
                "{wrote} writing statements, but no replica acknowledged a commit",
                wrote=reason["wrote"],
            )
        else:
            part = say(
                "commits waited at {found}, but the plan says {wanted}",
                found=reason["at"],
                wanted=reason["wanted"],
            )
        parts.append(part)
    return listed(parts, "; ")


def uncontrolled_server(values: Values) -> Said:
    """Evidence of `uncontrolled-server`."""
    apart = say("processes, disks and other clients")
    text = say(
        "an endpoint: in {blocks} dbdyno did not restart its servers or restore its rows, and did "
        "not see its {unseen}",
        blocks=count(values["blocks"], "block"),
        unseen=say("other clients") if values["is_seen"] else apart,
    )
    if not values["balanced"]:
        return text
    balanced = say(
        "{addresses}: a balancer before several servers, whose counters and costs are unknown",
        addresses=listed(values["balanced"]),
    )
    return listed((text, balanced), "; ")


DISTURBED_ADVICE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("attributed", "stolen"),
        phrase(
            "stop other programs on this machine and measure again; "
            "design.disturbance_max in the plan sets another limit"
        ),
    ),
    **dict.fromkeys(
        ("others", "lost", "other-limit", "used-up"),
        phrase("measurements that count are not affected; a quiet machine needs no repeats"),
    ),
}

WAIT_ADVICE: Final = {
    "alone": say(
        "find out why the replica was slow or gone; a longer topology.timeout_s makes commits "
        "wait rather than go on alone"
    ),
    "unproven": say("check that the load's tables are replicated"),
    "wait-point": say("remove the setting of the system that changes the wait point"),
}

MACHINE: Final[Mapping[str, tuple[str, Said]]] = {
    "steal": (
        phrase("the hypervisor took {value:.2%} of the CPU in the window (limit {limit:.1%})"),
        say("use a machine that is not shared, or repeat at a quieter time"),
    ),
    "others": (
        phrase(
            "processes besides server and generator used {value:.1%} of the host's CPU ({used:.2f}"
            " of {cores:.1f} cores; limit {limit:.0%})"
        ),
        say("stop other programs on this machine"),
    ),
    "busy": (
        phrase(
            "only {idle:.1%} of the CPU was idle on the load generator's machine (lower limit "
            "{idle_limit:.0%}), the generator used {generator:.1%}"
        ),
        say(
            "the ratio of two systems is still valid, but their throughput is valid only for this "
            "machine; pin the load generator to cores of its own, or run it on another host"
        ),
    ),
    "quota": (
        phrase("a CPU quota was used up {times} in the window (limit 0)"),
        say("raise or remove cpu.max of the control group: the quota limited throughput"),
    ),
    "heat": (
        phrase("cores were slowed down because of heat {times} in the window"),
        say(
            "cool the machine, or fix its clock rate at a frequency that it can keep, and "
            "mention this beside the results"
        ),
    ),
    "memory": (
        phrase("for {value:.2%} of the window some task waited for memory (limit {limit:.0%})"),
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
            "the cores' clock differed from its usual {usual_mhz:.0f} MHz by {value:+.1%} (limit "
            "{limit:.0%})"
        ),
        say("fix the clock (governor performance, no turbo), then measure again"),
    ),
    "arithmetic": (
        phrase(
            "before these trials a test computation took {by:.0%} {longer} than usual in this run "
            "(limit {limit:.0%})"
        ),
        say("find out which other program ran at that time; the block's ratio may be affected"),
    ),
    "sync": (
        phrase(
            "before these trials a test sync took {by:.0%} {longer} than usual in this run (limit "
            "{limit:.0%})"
        ),
        say("find out which other program ran at that time; the block's ratio may be affected"),
    ),
}
"""Evidence and advice for each quantity of `machine`."""


def machine(values: Values) -> Said:
    """Evidence of `machine`."""
    parts = []
    for row in values["rows"]:
        words = {
            "times": count(round(row["value"]), "time"),
            "by": abs(row["value"]),
            "longer": say("longer") if row["value"] > 0 else say("shorter"),
            "idle_limit": 1 - row["limit"],
            "pages": count(row.get("pages", 0), "page"),
        }
        parts.append(Said(MACHINE[row["what"]][0], {**row, **words}))
    return listed(parts, "; ")


def machine_advice(values: Values) -> Said:
    """Advice of `machine`, a clause for each quantity."""
    return listed(dict.fromkeys(MACHINE[row["what"]][1] for row in values["rows"]), "; ")
