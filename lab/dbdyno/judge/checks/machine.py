"""Did the machine and the generator leave the server alone? (method.md 1.g)"""

from __future__ import annotations

from typing import Final

from dbdyno.judge.finding import Finding, Level, on_trial
from dbdyno.language.words import say
from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import WatchSample
from dbdyno.measurement.replication import REPLICAS_CPU_S
from dbdyno.plan.plan import Plan

GENERATOR_CPU_MAX: Final = 0.70
STEAL_SHARE_NOTE: Final = 0.005
STEAL_SHARE_DOUBTFUL: Final = 0.02
"""Above the method's 0.5 % a note, as most virtual machines lose that much in one trial of a dozen;
what can move a rate by the usual margin throws doubt."""
OTHER_SHARE_NOTE: Final = 0.02
OTHER_SHARE_DOUBTFUL: Final = 0.10
"""Above the method's 2 % a note: kernel work done for the server counts as another's too."""
IDLE_SHARE_MIN: Final = 0.05


def client_bound(measurement: Measurement, plan: Plan) -> Finding | None:
    """Void: a generator thread was so busy that it may have been what was measured."""
    share = measurement.engine.cpu_share_max
    if share <= GENERATOR_CPU_MAX:
        return None
    return on_trial(
        measurement,
        "client-bound",
        Level.VOID,
        say(
            "the busiest generator thread used {share:.0%} of a core (limit {limit:.0%}, threads "
            "in all: {threads})",
            share=share,
            limit=GENERATOR_CPU_MAX,
            threads=measurement.engine.threads,
        ),
        say("give the generator more threads or cores of its own, or lower the load"),
    )


def steal(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note or doubtful: the hypervisor gave this machine's time to others."""
    samples = measurement.watch_measured
    total = sum(map(_host_cpu, samples))
    if total <= 0:
        return None
    share = sum(s.host_cpu_steal for s in samples) / total
    if share <= STEAL_SHARE_NOTE:
        return None
    return on_trial(
        measurement,
        "steal",
        Level.DOUBTFUL if share > STEAL_SHARE_DOUBTFUL else Level.NOTE,
        say(
            "{share:.2%} of the host's CPU was stolen in the window (limit {limit:.1%})",
            share=share,
            limit=STEAL_SHARE_NOTE,
        ),
        say("use a machine that is not shared, or repeat at a quieter time"),
    )


def other_processes(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note or doubtful: the host was busier than server and generator together."""
    samples = measurement.watch_measured
    total = sum(map(_host_cpu, samples))
    if total <= 0:
        return None
    busy = sum(s.host_cpu_user + s.host_cpu_system for s in samples)
    own = sum(s.server_cpu + s.generator_cpu for s in samples)
    own += measurement.server.replication.get(REPLICAS_CPU_S, 0)  # a sample is of one second
    share = (busy - own) / total
    if share <= OTHER_SHARE_NOTE:
        return None
    cores = total / len(samples)
    return on_trial(
        measurement,
        "other-processes",
        Level.DOUBTFUL if share > OTHER_SHARE_DOUBTFUL else Level.NOTE,
        say(
            "processes besides server and generator used {share:.1%} of the host's CPU "
            "({used:.2f} of {cores:.1f} cores; limit {limit:.0%})",
            share=share,
            used=share * cores,
            cores=cores,
            limit=OTHER_SHARE_NOTE,
        ),
        say("stop what else runs on this machine"),
    )


def shared_machine(measurement: Measurement, plan: Plan) -> Finding | None:
    """Note: server and generator together left no core idle, so each slowed the other down."""
    samples = measurement.watch_measured
    total = sum(map(_host_cpu, samples))
    if total <= 0:
        return None
    idle = sum(s.host_cpu_idle + s.host_cpu_iowait for s in samples) / total
    generator = sum(s.generator_cpu for s in samples) / total
    if idle >= IDLE_SHARE_MIN or generator <= 0:
        return None
    return on_trial(
        measurement,
        "shared-machine",
        Level.NOTE,
        say(
            "generator and server share the machine: {idle:.1%} of the host's CPU was idle "
            "(limit {limit:.0%}), the generator used {generator:.1%}",
            idle=idle,
            limit=IDLE_SHARE_MIN,
            generator=generator,
        ),
        say(
            "the ratio of two systems still stands, the absolute rate is this machine's; pin the "
            "generator to cores of its own or load from another host"
        ),
    )


def _host_cpu(sample: WatchSample) -> float:
    return (
        sample.host_cpu_user
        + sample.host_cpu_system
        + sample.host_cpu_iowait
        + sample.host_cpu_steal
        + sample.host_cpu_idle
    )
