"""How often does the judge name a cause where there is none, and is a planted cause named first?

Simulated trials of two systems have 150 counters of a server: constant, even or noisy from trial to
trial, counted a thousand times in a transaction or once in a thousand. Equal systems differ by
chance alone. Others have a planted cause: syncs, reads, rows, CPU, or waiting that nothing counts.
All are judged by the judge's own code.

    .venv/bin/python -m validation.claims.causes_rates --equal 1000 --planted 200     # some minutes
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from validation.noise import Numbers

from dbdyno.judge.beside.causes import Causes, causes_of
from dbdyno.judge.estimate import Sample, estimated
from dbdyno.judge.interval import FIXED
from dbdyno.judge.verdict import Verdict, Word, verdict_of
from dbdyno.measurement.measurement import Cell, EngineFacts, Measurement, ServerFacts, Trial
from dbdyno.measurement.metric import PRIMARY
from dbdyno.measurement.parts import Interval, Phase, ProcessWork

Kind = Literal["even", "heavy tails", "shared starts", "bad starts"]
KINDS: Final[tuple[Kind, ...]] = ("even", "heavy tails", "shared starts", "bad starts")
"""Noise from trial to trial: normal; Student's t with 3 degrees of freedom; with a part that a
start has in many counters; with one start in twenty whose counters are far off together."""
BLOCKS: Final = (4, 5, 8)
COUNTERS: Final = 150
START_SD, BAD_SHARE, BAD_SD = 0.05, 0.05, 0.3
TYPICAL_SD, SPREAD_SD = 0.02, 1.2
"""Standard deviation of a typical counter from trial to trial, and that of its logarithm."""
CELL: Final = Cell(workload="oltp_read_write", threads=8)
SYSTEMS: Final = ("A", "B")
WINDOW_S, RATE_PER_S = 60.0, 1000.0
CPU_US, SWITCHES, ROWS, SYNCS, READ_BYTES = 1500.0, 30.0, 414.0, 0.01, 500.0
"""Of a transaction of the baseline."""
KNOWN: Final[Mapping[str, float]] = {
    "Innodb_rows_read": ROWS,
    "Innodb_rows_inserted": 1.0,
    "Innodb_rows_updated": 2.0,
    "Innodb_rows_deleted": 1.0,
    "Innodb_data_read": READ_BYTES,
    "Innodb_pages_read": READ_BYTES / 16e3,
    "Innodb_data_written": 9000.0,
    "Innodb_os_log_written": 2000.0,
    "Innodb_data_fsyncs": SYNCS,
    "Innodb_os_log_fsyncs": SYNCS,
}
EQUAL_MAX, PLANTED_MIN = 0.05, 0.95


@dataclass(frozen=True)
class Planted:
    """A cause in the second system.

    Attributes:
        throughput: ratio of the systems' throughputs; cpu: of their CPU per transaction.
        counts: count per transaction of the second system, by counter.
        names: causes of which any is right.
    """

    throughput: float
    cpu: float
    counts: Mapping[str, float]
    names: tuple[str, ...]


NOTHING: Final = Planted(1.0, 1.0, {}, ())
PLANTED: Final[Mapping[str, Planted]] = {
    "a sync in each transaction": Planted(
        0.6, 1.0, {"Innodb_data_fsyncs": 1.01, "Innodb_os_log_fsyncs": 1.01}, ("syncs",)
    ),
    "four pages read in each transaction": Planted(
        0.3, 1.1, {"Innodb_data_read": 64e3, "Innodb_pages_read": 4.0}, ("read_kb",)
    ),
    "ten times the rows": Planted(0.29, 1 / 0.29, {"Innodb_rows_read": 4140.0}, ("rows_read",)),
    "a hot function": Planted(1 / 1.5, 1.5, {}, ("server_cpu_us", "work")),
    "a longer critical section": Planted(0.6, 1.0, {}, ("waiting",)),
}


def judged(
    random: np.random.Generator, blocks: int, kind: Kind, planted: Planted, forced: bool = False
) -> Causes:
    """The causes of a simulated comparison.

    Args:
        forced: the verdict is better or worse, whatever the throughputs are.
    """
    names = [*KNOWN, *(f"Counter_{place}" for place in range(COUNTERS - len(KNOWN)))]
    per_event = np.empty((2, len(names)))
    per_event[:] = np.exp(random.uniform(math.log(1e-3), math.log(1e3), len(names)))
    per_event[:, : len(KNOWN)] = list(KNOWN.values())
    for name, count in planted.counts.items():
        per_event[1, names.index(name)] = count
    # Throughput, CPU and switches are noisy, too: the last three columns.
    noise = _noise(random, blocks, kind, len(names) + 3)
    ratios = np.array([1.0, planted.throughput])[:, None]
    rates = RATE_PER_S * ratios * np.exp(noise[..., -1])
    counts = random.poisson(
        WINDOW_S * rates[..., None] * per_event[:, None] * np.exp(noise[..., : len(names)])
    )
    cpu_us = CPU_US * np.array([1.0, planted.cpu])[:, None] * np.exp(noise[..., -2])
    switches = SWITCHES * np.exp(noise[..., -3])
    both = []
    for block in range(blocks):
        below, above = (
            _trial(arm, block, rates, cpu_us, switches, dict(zip(names, row, strict=True)))
            for arm, row in enumerate(counts[:, block])
        )
        both.append((below, above))
    logs = [[math.log(of(above) / of(below)) for below, above in both] for of in (_events, _cpu_s)]
    factors = {
        "work": [rate - cpu for rate, cpu in zip(*logs, strict=True)],
        "waiting": logs[1],
    }
    return causes_of(both, _verdict(logs[0], forced), factors, FIXED)


def _noise(random: np.random.Generator, blocks: int, kind: Kind, columns: int) -> Numbers:
    """Logarithms of (arm, block, column)."""
    shape = (2, blocks, columns)
    sds = TYPICAL_SD * np.exp(SPREAD_SD * random.standard_normal(columns))
    sds[random.random(columns) < 0.2] = 1e-4  # constant
    sds[-3:] = TYPICAL_SD
    if kind == "heavy tails":
        return np.asarray(sds * random.standard_t(3, shape) / math.sqrt(3))
    shared = np.zeros((2, blocks, 1))
    if kind == "shared starts":
        shared = START_SD * random.standard_normal(shared.shape)
    elif kind == "bad starts":
        shared = BAD_SD * (random.random(shared.shape) < BAD_SHARE)
    loads = random.standard_normal(columns)
    loads[-3:] = 0.0
    return np.asarray(sds * random.standard_normal(shape) + shared * loads)


def _trial(
    arm: int,
    block: int,
    rates: Numbers,
    cpu_us: Numbers,
    switches: Numbers,
    status: Mapping[str, float],
) -> Measurement:
    events = round(float(rates[arm, block]) * WINDOW_S)
    return Measurement(
        trial=Trial(
            run_id="simulated",
            sequence=2 * block + arm,
            block=block,
            position=arm,
            system=SYSTEMS[arm],
            cell=CELL,
            seed=block,
        ),
        started_at="",
        warmup_s=0,
        window_s=WINDOW_S,
        engine=EngineFacts(
            version="",
            reactor="",
            threads=1,
            cpu_s=0,
            cpu_share_max=0,
            distribution="",
            prepared_statements=False,
        ),
        server=ServerFacts(
            version="",
            settings={},
            status={name: float(count) for name, count in status.items()},
            cpu_s=float(cpu_us[arm, block]) * events / 1e6,
            process=ProcessWork(
                switches_voluntary=round(float(switches[arm, block]) * events),
                switches_involuntary=0,
            ),
        ),
        intervals=(
            Interval(
                phase=Phase.MEASURED,
                start_s=0,
                end_s=WINDOW_S,
                events=events,
                reads=events,
                writes=0,
                others=0,
            ),
        ),
    )


def _events(measurement: Measurement) -> float:
    return measurement.events


def _cpu_s(measurement: Measurement) -> float:
    return measurement.server.cpu_s


def _verdict(logs: Sequence[float], forced: bool) -> Verdict:
    """The verdict on throughput; if forced, by the sign of its ratio."""
    sample = Sample(CELL, PRIMARY.name, *SYSTEMS, dict(enumerate(logs)))
    ((estimate, held),) = estimated([sample])
    verdict = verdict_of(estimate, FIXED.margin, held=held)
    word = Word.BETTER if (estimate.ratio or 1.0) > 1 else Word.WORSE
    return verdict.model_copy(update={"word": word}) if forced else verdict


def share_claimed(kind: Kind, blocks: int, runs: int, forced: bool) -> float:
    """Share of comparisons of equal systems in which a counter is named as a cause."""
    random = np.random.default_rng([48, KINDS.index(kind), blocks])
    claims = [bool(judged(random, blocks, kind, NOTHING, forced).changes) for _ in range(runs)]
    return sum(claims) / runs


def share_first(cause: str, kind: Kind, blocks: int, runs: int) -> float:
    """Share of comparisons in which the planted cause is named first."""
    random = np.random.default_rng([49, [*PLANTED].index(cause), KINDS.index(kind), blocks])
    firsts = [judged(random, blocks, kind, PLANTED[cause]).first for _ in range(runs)]
    return sum(first is not None and first.name in PLANTED[cause].names for first in firsts) / runs


def main() -> int:
    """Prints both tables; exit status 1 where a target is missed, bad starts apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--equal", type=int, default=1000)
    parser.add_argument("--planted", type=int, default=200)
    options = parser.parse_args()
    is_missed = False
    print("| equal systems | blocks | a counter is named | with any verdict |")
    print("| --- | ---: | ---: | ---: |")
    for kind in KINDS:
        for blocks in BLOCKS:
            gated, forced = (
                share_claimed(kind, blocks, options.equal, is_forced) for is_forced in (False, True)
            )
            print(f"| {kind} | {blocks} | {gated:.1%} | {forced:.1%} |", flush=True)
            is_missed |= forced > EQUAL_MAX
    print("\n| planted | noise | blocks | named first |\n| --- | --- | ---: | ---: |")
    for cause in PLANTED:
        for kind in KINDS:
            for blocks in BLOCKS:
                share = share_first(cause, kind, blocks, options.planted)
                print(f"| {cause} | {kind} | {blocks} | {share:.1%} |", flush=True)
                is_missed |= share < PLANTED_MIN and kind != "bad starts"
    return int(is_missed)


if __name__ == "__main__":
    raise SystemExit(main())
