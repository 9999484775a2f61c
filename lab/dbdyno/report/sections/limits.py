"""Limitations of a run, and its generator's certificate. `LIMITS` has the facts each one needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dbdyno.judge.checks.design import WINDOW_S_MIN, lacks_control
from dbdyno.judge.checks.settings import cache_bytes, is_postgres
from dbdyno.judge.judgement import Judgement, cells_of
from dbdyno.language.words import Text, count, listed, say
from dbdyno.measurement.certificate import PRODUCTS, CertificateFacts
from dbdyno.measurement.measurement import Measurement
from dbdyno.plan.known import Fact, Known
from dbdyno.plan.plan import Plan, comparisons
from dbdyno.plan.workload import MIXES
from dbdyno.report.numbers import mebibytes, number, seconds
from dbdyno.report.rows import State, attempts


class LimitedRun(NamedTuple):
    """A run as its limits see it."""

    plan: Plan
    measurements: Sequence[Measurement]
    known: Known

    @property
    def cells(self) -> int:
        return len(cells_of(self.plan, self.measurements))

    def servers(self, fact: Fact) -> Text:
        """The servers for which a fact holds, told apart where others run some."""
        if not self.known.has(Fact.OTHERS):
            return say("each system")
        return listed(self.known[fact])


def limits(plan: Plan, measurements: Sequence[Measurement], judgement: Judgement) -> Iterator[Text]:
    """The limitations of this run, the gravest first."""
    yield from _lost(measurements, judgement)
    for limit in judgement.known.kept(LIMITS):
        yield from limit(LimitedRun(plan, measurements, judgement.known))


def _lost(measurements: Sequence[Measurement], judgement: Judgement) -> Iterator[Text]:
    every = attempts(measurements, judgement)
    tried = {a.measurement.trial.key for a in every if a.state is not State.REPEATED}
    sound = {a.measurement.trial.key for a in every if a.state is State.VALID}
    if tried - sound:
        yield say(
            "{trials} of {all} gave no usable measurement. If the cause depends on the system, "
            "the remaining trials are a biased selection.",
            trials=count(len(tried - sound), "trial"),
            all=len(tried),
        )


def _design(run: LimitedRun) -> Iterator[Text]:
    if lacks_control(run.plan):
        yield say(
            "There is no A/A control: no system was compared with itself, so the run does not "
            "show how often it would report a difference where there is none."
        )
    if run.cells * len(comparisons(run.plan)) > 1:
        yield say(
            "In 95 of 100 runs, all verdicts on a system's {cells} are correct together, and so "
            "are all verdicts on its workloads. If you read the verdicts on several systems, or "
            "other intervals as well, it is more likely that some of them are wrong.",
            cells=count(run.cells, "cell"),
        )
    if run.plan.trial.window_s < WINDOW_S_MIN:
        yield say(
            "Windows of {window} are too short for several checkpoints, so the cost of "
            "checkpoints may be missed.",
            window=seconds(run.plan.trial.window_s),
        )


def _starts(run: LimitedRun) -> Iterator[Text]:
    blocks = blocks_run(run.plan, run.measurements)
    if run.plan.procedure.restart == "block" and run.cells > 1:
        yield say(
            "All cells of a block ran on the same server start, so a bad start affects all of "
            "them. The cells are not independent evidence."
        )
    yield say(
        "{starts} of {systems} are too few to detect rare bad starts: even if all of these were "
        "good, up to {share} % of all starts may be bad.",
        starts=count(blocks, "start"),
        systems=run.servers(Fact.OURS),
        share=number((1 - 0.05 ** (1 / blocks)) * 100, 0),  # the rule of three
    )


def _scripts(run: LimitedRun) -> Iterator[Text]:
    yield say(
        "What a script sends is known only while it runs: for {scripts}, neither statements per "
        "transaction nor query plans were checked.",
        scripts=listed(run.known[Fact.UNTOLD]),
    )


def _shared_machine(run: LimitedRun) -> Iterator[Text]:
    values = {"systems": run.servers(Fact.BESIDE), "delay_ms": run.plan.network.client_ms}
    if run.plan.network.client_ms:
        yield say(
            "The load generator and the servers of {systems} shared one machine: they take CPU "
            "from each other, and latencies contain no network time except the added delay "
            "of {delay_ms:g} ms.",
            **values,
        )
    elif not run.plan.fleet.generators:
        yield say(
            "The load generator and the servers of {systems} shared one machine and talked over "
            "loopback: they take CPU from each other, and latencies contain no network time.",
            **values,
        )


def _unseen(run: LimitedRun) -> Iterator[Text]:
    yield say(
        "The processes of {systems} could not be watched, because their containers run in another "
        "machine: their CPU per transaction and the CPU of other processes there are unknown.",
        systems=listed(run.known[Fact.UNSEEN]),
    )


def _machines(run: LimitedRun) -> Iterator[Text]:
    if len({measurement.machine for measurement in run.measurements}) > 1:
        yield say(
            "The run used these machines only: with other processors, disks or memory, the "
            "systems may rank differently."
        )
    elif not run.known.has(Fact.OTHERS):
        yield say(
            "The run used one machine: with other processors, disks or memory sizes, the "
            "systems may rank differently."
        )


def _size(run: LimitedRun) -> Iterator[Text]:
    data_bytes, pools = run.plan.dataset.bytes_about, pools_of(run.measurements)
    settings = {m.trial.system: m.server.settings for m in run.measurements if m.server.settings}
    if unknown := [system for system, own in settings.items() if cache_bytes(own) is None]:
        yield say(
            "Whether the dataset (about {data}) fits into the cache of {systems} is unknown.",
            data=mebibytes(data_bytes),
            systems=listed(unknown),
        )
    if not pools:
        return
    sizes = {"data": mebibytes(data_bytes), "pool": mebibytes(pools[0])}
    if data_bytes >= pools[0]:
        yield say(
            "The dataset (about {data}) is larger than the buffer pool ({pool}), but the "
            "operating system's cache may have served reads.",
            **sizes,
        )
    elif not run.known.has(Fact.SCRIPTED):
        yield say(
            "The dataset (about {data}) fits into the buffer pool ({pool}): reads from disk "
            "were not measured.",
            **sizes,
        )


def _plans(run: LimitedRun) -> Iterator[Text]:
    plans: dict[str, set[str]] = {}
    for m in run.measurements:
        if m.failure is None:
            plans.setdefault(m.trial.system, set()).update(m.evidence.query_plans)
    every: set[str] = set().union(*plans.values())
    unknown = [system for system, own in plans.items() if not own or every - own]
    explained = [w for w in run.plan.workloads if MIXES.get(w.name, {}).keys() - {"inserts"}]
    if unknown and (every or explained):
        yield say(
            "Query plans of {systems} are unknown, because EXPLAIN was refused there, or dbdyno "
            "could not read its answer. So the report shows no difference of indexes or sorts.",
            systems=listed(unknown),
        )


def _saturation(run: LimitedRun) -> Iterator[Text]:
    yield say(
        "A closed loop hides stalls: requests that users would send during a stall are never "
        "sent. The measured latencies are therefore lower than users would see if requests kept "
        "arriving at a fixed rate."
    )


def _stalls(run: LimitedRun) -> Iterator[Text]:
    if run.plan.load.threads:
        yield say(
            "A closed loop hides stalls: requests that users would send during a stall are never "
            "sent."
        )


def _arrivals(run: LimitedRun) -> Iterator[Text]:
    if run.plan.load.is_open:
        yield say(
            "Requests arrive at random over {connections}, as from independent users. Real users "
            "may come in larger bursts or depend on each other. Latency may then be higher.",
            connections=count(run.plan.load.connections, "connection"),
        )
    else:
        yield say("Latency at a given arrival rate needs an open loop, which this run did not use.")
    yield say(
        "Rows and queries were generated. With the data and queries of your application, the "
        "systems may differ more, less or the other way."
    )


LIMITS: Final[Mapping[Callable[[LimitedRun], Iterator[Text]], tuple[Fact, ...]]] = {
    _design: (Fact.HERE,),
    _starts: (Fact.OURS,),
    _scripts: (Fact.UNTOLD,),
    _shared_machine: (Fact.BESIDE,),
    _unseen: (Fact.UNSEEN,),
    _machines: (Fact.OURS,),
    _size: (Fact.ROWS, Fact.SETTINGS),
    _plans: (Fact.HERE, Fact.EVENTS),
    _saturation: (Fact.BUSY,),
    _stalls: (Fact.RESTING,),
    _arrivals: (Fact.HERE,),
}
"""Limits with the facts they need."""


def blocks_run(plan: Plan, measurements: Sequence[Measurement]) -> int:
    """Number of measured blocks; the plan's number before the first."""
    return len({m.trial.block for m in measurements if m.failure is None}) or plan.design.blocks


def pools_of(measurements: Sequence[Measurement]) -> list[int]:
    """Distinct sizes of the servers' memory for data pages, in bytes, rising."""
    sizes = {cache_bytes(measurement.server.settings) for measurement in measurements}
    return sorted(size for size in sizes if size is not None)


# The certificate of the machine's load generator (`dbdyno certify`).


def certified(measurements: Sequence[Measurement]) -> list[Text]:
    """Sentences on the machine's certificate; empty for runs that did not look for it."""
    facts = next((one.certificate for one in measurements if one.certificate), None)
    if facts is None:
        return []
    if not facts.digest:
        return [say("The load generator was not certified on this machine: run `dbdyno certify`.")]
    quoted = say(
        "certificate {digest} of {made} (highest rate {most})",
        digest=facts.digest[:12],
        made=facts.made_at,
        most=_most(facts, measurements),
    )
    if facts.changed:
        changed = listed(facts.changed)
        return [
            say(
                "The load generator was tested before the machine changed ({changed}): {quoted}. "
                "Run `dbdyno certify` again.",
                quoted=quoted,
                changed=changed,
            )
        ]
    if facts.failed:
        return [say("The load generator failed its accuracy test: {quoted}.", quoted=quoted)]
    return [say("The load generator passed its accuracy test: {quoted}.", quoted=quoted)]


def _most(facts: CertificateFacts, measurements: Sequence[Measurement]) -> Text:
    """The generator's highest rate in each protocol of the run's servers; MySQL's by default."""
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
