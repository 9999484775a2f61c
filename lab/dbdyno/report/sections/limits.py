"""Limitations of a run, and its generator's certificate.

Each limitation is a sentence with its condition; those that hold for this run are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.judge.checks.design import WINDOW_S_MIN, lacks_control
from dbdyno.judge.checks.settings import cache_bytes, is_postgres
from dbdyno.judge.finding import Level
from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.language.words import Text, count, listed, name, say
from dbdyno.measurement.certificate import PRODUCTS, CertificateFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.outcome import RunFacts
from dbdyno.plan.plan import BLOCKS_FEW, Plan, comparisons
from dbdyno.plan.systems import endpoints
from dbdyno.plan.template import statement_counts
from dbdyno.plan.workload import has_own_tables, scripts_of
from dbdyno.report.numbers import mebibytes, number, seconds
from dbdyno.report.rows import State, attempts


def limits(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Iterator[Text]:
    """The limits that hold for this run, the gravest first."""
    yield from _of_record(plan, measurements, judgement, run)
    yield from _of_design(plan, measurements)
    yield from _of_scripts(plan)
    yield from _of_place(plan, measurements)
    yield from _of_loops(plan)
    yield say(
        "Generated rows and queries are not your application; a difference here need not be the "
        "difference there."
    )


def _of_scripts(plan: Plan) -> Iterator[Text]:
    """Of what was made of a template the statements are known."""
    scripts = [w.label for w in plan.workloads if w.script and not statement_counts(w.script)]
    if scripts:
        yield say(
            "What a script sends is known only as it runs: of {scripts} neither statements per "
            "event nor query plans were checked.",
            scripts=listed(scripts),
        )


def is_saturated(plan: Plan) -> bool:
    """Whether connections of a closed loop send without a pause, so that the server is never idle.

    Those of a template with think times, and of a script with a loop of its own, may rest.
    """
    return bool(plan.load.threads) and not any(one.may_rest for one in plan.workloads)


def _of_loops(plan: Plan) -> Iterator[Text]:
    if is_saturated(plan):
        yield say(
            "A closed loop hides stalls: requests that would have arrived during one are never "
            "sent. Its latencies are service times at saturation."
        )
    elif plan.load.threads:
        yield say(
            "A closed loop hides stalls: requests that would have arrived during one are never "
            "sent."
        )
    if plan.load.is_open:
        yield say(
            "Random arrivals over {connections} are independent users; real ones may"
            " come in larger bursts, or wait for each other.",
            connections=count(plan.load.connections, "connection"),
        )
    else:
        yield say("Latency at a given arrival rate needs an open loop, which this run did not use.")


def _of_record(
    plan: Plan, measurements: Sequence[Measurement], judgement: Judgement, run: RunFacts
) -> Iterator[Text]:
    made = attempts(measurements, judgement)
    if not run.complete:
        yield say("The run is incomplete.{further}", further=_cost_of_stopping(plan))
    tried = {a.measurement.trial.key for a in made if a.state is not State.REPEATED}
    sound = {a.measurement.trial.key for a in made if a.state is State.SOUND}
    if tried - sound:
        yield say(
            "{trials} of {all} gave no usable measurement. If what spoiled them depends on the "
            "system, what is left is a selection.",
            trials=count(len(tried - sound), "trial"),
            all=len(tried),
        )
    if any(finding.level is Level.DOUBTFUL for finding in judgement.findings):
        yield say("Some trials that count are doubtful; see Findings.")


def _cost_of_stopping(plan: Plan) -> Text:
    """Intervals of a run until decided allow for any end."""
    narrow = say(" Stopping when the numbers please makes intervals too narrow.")
    return narrow if plan.design.stop == "blocks" else name("")


def blocks_run(plan: Plan, measurements: Sequence[Measurement]) -> int:
    """Those that were measured; the plan's before any was."""
    return len({m.trial.block for m in measurements if m.failure is None}) or plan.design.blocks


def _of_design(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[Text]:
    blocks = blocks_run(plan, measurements)
    if blocks < BLOCKS_FEW:
        yield say(
            "{blocks} only: intervals are wide, and differences of a few percent cannot be "
            "settled.",
            blocks=count(blocks, "block"),
        )
    if lacks_control(plan):
        yield say(
            "There is no A/A control: no system ran twice, "
            "so the run does not measure how often it would err."
        )
    cells = len(cells_of(plan, measurements))
    if cells * len(comparisons(plan)) > 1:
        yield say(
            "The verdicts on a system's {cells} hold together at 95 %; those on "
            "another system, and all intervals but those of verdicts, do not allow for one "
            "another.",
            cells=count(cells, "cell"),
        )
    others = endpoints(plan.systems)
    started = [system.label for system in plan.systems if system.label not in others]
    if plan.procedure.restart == "block" and cells > 1 and started:
        yield say(
            "Cells of one block ran on one server start, so what befell that start befell all of "
            "them; the cells are not independent evidence."
        )
    if plan.trial.window_s < WINDOW_S_MIN:
        yield say(
            "Windows of {window} are too short to hold several checkpoints; a cost that comes in "
            "waves may be missed.",
            window=seconds(plan.trial.window_s),
        )
    if started:
        yield say(
            "{starts} of {systems} say little about rare bad starts: even if none was seen, a "
            "share of up to {share} % is not excluded.",
            starts=count(blocks, "start"),
            systems=listed(started) if others else say("each system"),
            share=_rule_of_three(blocks),
        )


def _rule_of_three(starts: int) -> Text:
    """The share that none seen in so many starts does not exclude at 95 %: 1 − 0.05^(1/n)."""
    return number((1 - 0.05 ** (1 / starts)) * 100, 0)


def _of_place(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[Text]:
    are_ours = any(measurement.server.pid is not None for measurement in measurements)
    if are_ours and plan.network.client_ms:
        yield say(
            "Load generator and server shared one machine: they take CPU from each other, and of a "
            "network only its delay of {delay_ms:g} ms is in the latencies.",
            delay_ms=plan.network.client_ms,
        )
    elif are_ours and not plan.fleet.generators:
        yield say(
            "Load generator and server shared one machine and talked over loopback: they take CPU "
            "from each other, and no network is in the latencies."
        )
    if unseen := _unseen(plan, measurements):
        yield say(
            "The processes of {systems} were not seen, as their containers run in another machine: "
            "what a transaction costs them in CPU is unknown, and what others used beside them.",
            systems=listed(unseen),
        )
    if len({measurement.machine for measurement in measurements}) > 1:
        yield say(
            "These machines: other processors, disks and memory may rank the systems differently."
        )
    else:
        yield say(
            "One machine: other processors, disks and memory sizes may rank the systems "
            "differently."
        )
    if pools := pools_of(measurements):
        yield from _of_size(plan, pools[0])


def _unseen(plan: Plan, measurements: Sequence[Measurement]) -> list[str]:
    """Systems that the lab started and whose processes it could not read."""
    ours = [s.label for s in plan.systems if not (s.is_endpoint or s.is_imported)]
    seen = {m.trial.system: m.server.pid or m.server.cpu_s for m in measurements if not m.failure}
    return [label for label in ours if not seen.get(label, True)]


# The data: the plan's tables, and those of scripts, of whose size nothing is known.


def dataset(plan: Plan) -> Text:
    """What is loaded."""
    scripts = listed(scripts_of(plan.workloads))
    own = {
        "tables": count(plan.dataset.tables, "table"),
        "rows": count(plan.dataset.rows, "row"),
    }
    if not has_own_tables(plan.workloads):
        return say(
            "Dataset: the rows that {scripts} make; their size is not known.", scripts=scripts
        )
    if scripts:
        return say(
            "Dataset: {tables} of {rows} each, and the rows that {scripts} make, whose size is "
            "not known.",
            scripts=scripts,
            **own,
        )
    return say("Dataset: {tables} of {rows} each.", **own)


def _of_size(plan: Plan, pool_bytes: int) -> Iterator[Text]:
    data_bytes = plan.dataset.bytes_about
    sizes = {"data": mebibytes(data_bytes), "pool": mebibytes(pool_bytes)}
    if data_bytes >= pool_bytes and has_own_tables(plan.workloads):
        yield say(
            "The dataset (about {data}) is larger than the buffer pool ({pool}), but the "
            "operating system's cache may have served it.",
            **sizes,
        )
    elif not scripts_of(plan.workloads):
        yield say(
            "The dataset (about {data}) fits into the buffer pool ({pool}): reads from disk "
            "were not measured.",
            **sizes,
        )


def pools_of(measurements: Sequence[Measurement]) -> list[int]:
    """Every size that the memory for data pages had, in bytes, the smallest first."""
    sizes = {cache_bytes(measurement.server.settings) for measurement in measurements}
    return sorted(size for size in sizes if size is not None)


# The certificate of the machine's load generator (`dbdyno certify`).


def certified(measurements: Sequence[Measurement]) -> list[Text]:
    """What the machine's certificate says; nothing of runs that did not look for one."""
    facts = next((one.certificate for one in measurements if one.certificate), None)
    if facts is None:
        return []
    if not facts.digest:
        return [say("The generator has no certificate on this machine: `dbdyno certify` makes it.")]
    quoted = say(
        "certificate {digest} of {made}, at most {most}",
        digest=facts.digest[:12],
        made=facts.made_at,
        most=_most(facts, measurements),
    )
    if facts.changed:
        changed = listed(facts.changed)
        return [
            say(
                "The generator's {quoted}; since then changed: {changed}. Run `dbdyno certify` "
                "again.",
                quoted=quoted,
                changed=changed,
            )
        ]
    if facts.failed:
        return [say("The generator's {quoted}: it did not pass.", quoted=quoted)]
    return [say("The generator's {quoted}: it passed.", quoted=quoted)]


def _most(facts: CertificateFacts, measurements: Sequence[Measurement]) -> Text:
    """What it reached in each protocol of the run's servers; in MySQL's for one not tried."""
    rates = {"mysql": facts.queries_per_s, "pgsql": facts.pgsql_queries_per_s}
    spoken = {
        "pgsql" if rates["pgsql"] and is_postgres(one.server.settings) else "mysql"
        for one in measurements
        if one.server.settings
    }
    return listed(
        say(
            "{rate} queries/s in {product}'s protocol",
            rate=number(rates[driver], 0),
            product=PRODUCTS[driver],
        )
        for driver in sorted(spoken or {"mysql"})
    )
