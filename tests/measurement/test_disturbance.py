"""What others took of the host beside a trial, and which blocks are measured again for it."""

from __future__ import annotations

import pytest

from dbdyno.measurement.disturbance import (
    current,
    disturbance_of,
    disturbed,
    place_of,
    repeats_max,
    repeats_of,
    to_repeat,
)
from dbdyno.measurement.measurement import Cell
from support import making
from support.making import A, B

LOAD = "oltp_read_write/threads=8"
CELL = f"{LOAD}/default"
QUIET, LOUD = 0.08, 1.0  # of four cores: 2 % and 25 %


def again(made, repeat=1):
    return making.changed(made, trial=made.trial.model_copy(update={"repeat": repeat}))


def block(number, *cores, repeat=0):
    """One block of A and B, with so many cores in others' hands beside each."""
    made = [
        making.measurement(system, block=number, other_cpu=cpu)
        for system, cpu in zip((A, B), cores, strict=True)
    ]
    return [again(one, repeat) for one in made] if repeat else made


def test_shares_are_of_the_whole_host():
    seen = disturbance_of(making.measurement(other_cpu=0.4, steal=0.2))
    assert (seen.others, seen.steal, seen.cores) == pytest.approx((0.1, 0.05, 4.0))
    assert seen.share == pytest.approx(0.15)


def test_replicas_and_the_network_between_them_are_no_others():
    seen = disturbance_of(making.with_replicas(making.measurement(other_cpu=1.5), cpu=1.5))
    assert seen.others == pytest.approx(0.0)
    assert seen.waiting is None  # their bytes are not counted


def merged(first, second):
    """One sample over the time of two."""
    rates = {"length_s": 2.0, "at_s": (first.at_s + second.at_s) / 2}
    for name in type(first).model_fields:
        if name.startswith(("host_", "server_cpu", "generator_cpu", "replicas_cpu")):
            rates[name] = (getattr(first, name) + getattr(second, name)) / 2
    return first.model_copy(update=rates)


def test_a_reading_that_came_ten_seconds_late_counts_for_eleven():
    made = making.measurement(window_s=60, warmup_s=0)
    stolen = 40 / 11  # all four cores for ten seconds
    late = {"at_s": 5.5, "length_s": 11.0, "host_cpu_steal": stolen, "host_cpu_idle": 4 - stolen}
    idle = {"host_cpu_user": 0.0, "host_cpu_system": 0.0, "server_cpu": 0.0, "generator_cpu": 0.0}
    watch = (made.watch[0].model_copy(update={**idle, **late}), *made.watch[11:])
    seen = disturbance_of(making.changed(made, watch=watch))
    assert (seen.steal, seen.cores) == pytest.approx((1 / 6, 4.0))


def test_shares_are_the_same_however_long_the_samples_are():
    made = making.measurement(window_s=60, warmup_s=0, other_cpu=1.5, steal=0.4)
    made = making.with_replicas(made, cpu=1.0)
    pairs = zip(made.watch[::2], made.watch[1::2], strict=True)
    halved = making.changed(made, watch=tuple(merged(*pair) for pair in pairs))
    assert len(halved.watch_measured) == 30
    assert disturbance_of(halved) == pytest.approx(disturbance_of(made))
    assert disturbance_of(halved).others == pytest.approx(0.125)


def test_a_server_whose_cpu_nobody_sees_is_no_disturbance():
    made = making.measurement(other_cpu=2.0, steal=0.2)
    blind = tuple(sample.model_copy(update={"server_cpu": 0.0}) for sample in made.watch)
    seen = disturbance_of(making.changed(made, watch=blind))
    assert seen.others > 0.5
    assert seen.share == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("apart", "others", "share"),
    [
        (False, 0.6, 0.15),  # charged to the processes: others are others
        (True, 0.6, 0.05),  # counted apart, so in what is left of the host
        (None, 0.6, 0.05),  # nobody knows: they get the benefit of the doubt
        (None, 0.2, 0.05),  # less is left than there are interrupts: they are charged
    ],
)
def test_interrupts_are_nobodys_processes(apart, others, share):
    made = making.measurement(other_cpu=others)
    samples = tuple(s.model_copy(update={"host_cpu_softirq": 0.4}) for s in made.watch)
    evidence = made.evidence.model_copy(update={"irq_apart": apart})
    seen = disturbance_of(making.changed(made, watch=samples, evidence=evidence))
    assert seen.share == pytest.approx(share)


@pytest.mark.parametrize(("disk_mb", "waiting"), [(10, 0.0), (40, 0.075)])
def test_waits_are_others_by_the_bytes_that_the_server_did_not_ask_for(disk_mb, waiting):
    made = making.measurement()
    samples = tuple(
        sample.model_copy(
            update={
                "host_cpu_iowait": 0.4,
                "host_cpu_idle": sample.host_cpu_idle - 0.4,
                "disk_read_bytes_per_s": 0.0,
                "disk_written_bytes_per_s": disk_mb * 1e6,
                "server_read_bytes_per_s": 0.0,
                "server_written_bytes_per_s": 10e6,
            }
        )
        for sample in made.watch
    )
    assert disturbance_of(making.changed(made, watch=samples)).waiting == pytest.approx(waiting)


def test_a_trial_beyond_the_limit_is_disturbed_and_a_failed_one_is_not():
    made = making.measurement(other_cpu=0.4)
    assert disturbed(made, 0.0999) is not None
    assert disturbed(made, 0.1001) is None
    assert disturbed(making.measurement(other_cpu=2.0, failure="died"), 0.1) is None
    assert disturbed(making.changed(made, watch=()), 0.1) is None


def test_a_repeat_is_a_trial_of_its_own_at_the_same_place():
    first = making.measurement(B, block=3).trial
    second = first.model_copy(update={"repeat": 2})
    assert second.key == f"{first.key}/again=2"
    assert (second.place, first.place) == (first.key, first.key)
    assert type(second).model_validate_json(second.model_dump_json()) == second
    assert repeats_of([(3, CELL, first.key), (3, CELL, second.key), (4, CELL, "4/b/c")]) == {
        (3, LOAD): 2,
        (4, LOAD): 0,
    }


def test_only_the_last_repeat_of_a_block_counts_even_if_it_is_not_whole():
    calm, loud = block(0, QUIET, QUIET), block(1, QUIET, LOUD)
    begun = block(1, QUIET, QUIET, repeat=1)[:1]
    assert current([*calm, *loud, *begun]) == [*calm, *begun]


def test_a_disturbed_block_is_repeated_until_the_repeats_are_used():
    stored = [*block(0, QUIET, LOUD), *block(1, QUIET, QUIET), *block(2, LOUD, LOUD)]
    assert to_repeat(stored, blocks=5, limit=0.1) == [(0, LOAD), (2, LOAD)]
    stored += block(0, LOUD, QUIET, repeat=1)
    assert to_repeat(stored, blocks=5, limit=0.1) == [(0, LOAD)]  # one of two is left
    stored += block(0, QUIET, QUIET, repeat=2)
    assert to_repeat(stored, blocks=5, limit=0.1) == []
    assert to_repeat(stored, blocks=12, limit=0.1) == [(2, LOAD)]
    assert to_repeat(stored, blocks=12, limit=1.0) == []


def test_a_pilot_is_not_measured_again_and_allows_no_repeats():
    pilot = making.measurement(other_cpu=LOUD)
    pilot = making.with_trial(pilot, block=-1, is_pilot=True, rate_per_s=100.0)
    stored = [pilot, *block(0, QUIET, LOUD), *block(0, LOUD, QUIET, repeat=1)]
    stored += [*block(0, QUIET, QUIET, repeat=2), *block(2, LOUD, LOUD)]
    assert to_repeat(stored, blocks=5, limit=0.1) == []


@pytest.mark.parametrize(("blocks", "most"), [(1, 2), (8, 2), (12, 3), (100, 25)])
def test_a_quarter_of_the_blocks_may_be_repeated_and_two_in_any_case(blocks, most):
    assert repeats_max(blocks, 1) == most
    assert repeats_max(blocks, 48) == 48 * most


@pytest.mark.parametrize(
    ("workload", "setting", "rate"),
    [("oltp_read_write", "durability=0/2", None), ("a/threads", "default", 12.5)],
)
def test_all_arms_of_a_load_in_a_block_are_one_place(workload, setting, rate):
    cell = Cell(workload=workload, threads=16, setting=setting, rate_per_s=rate)
    trial = making.measurement().trial.model_copy(update={"cell": cell, "block": 2})
    other = trial.model_copy(
        update={"system": "C", "cell": cell.model_copy(update={"setting": "x"})}
    )
    assert place_of(trial) == place_of(other)
    assert place_of(trial).load == cell.key.removesuffix(f"/{setting}")
    more = trial.model_copy(update={"cell": cell.model_copy(update={"threads": 17})})
    assert (
        len({place_of(trial), place_of(more), place_of(trial.model_copy(update={"block": 3}))}) == 3
    )


def test_only_the_disturbed_cell_of_a_block_is_repeated():
    def cells(*cores, threads):
        made = block(0, *cores)
        return [
            making.with_trial(m, cell=m.trial.cell.model_copy(update={"threads": threads}))
            for m in made
        ]

    stored = [*cells(QUIET, QUIET, threads=8), *cells(QUIET, LOUD, threads=64)]
    (place,) = to_repeat(stored, blocks=5, limit=0.1)
    assert place == (0, "oltp_read_write/threads=64")
    again = [making.with_trial(m, repeat=1) for m in cells(QUIET, QUIET, threads=64)]
    assert current([*stored, *again]) == [*stored[:2], *again]
    assert to_repeat([*stored, *again], blocks=5, limit=0.1) == []
