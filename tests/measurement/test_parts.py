"""Parts of a measurement survive the store."""

from __future__ import annotations

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import (
    Kill,
    KilledServer,
    Probe,
    ProcessWork,
    StatusSeries,
    Step,
    TrialEvidence,
)
from support import making


def test_a_measurement_with_all_its_parts_comes_back_from_json() -> None:
    steps = (Step(name="settle", seconds=2.5, done=False, detail="cap"),)
    update = {"procedure": steps, "dataset": "ab", "impossible": True}
    made = making.measurement(histograms=False).model_copy(update=update)
    assert Measurement.model_validate_json(made.model_dump_json()) == made


def test_switches_are_both_kinds_or_unknown() -> None:
    assert ProcessWork(switches_voluntary=3, switches_involuntary=4).switches == 7
    assert ProcessWork(switches_voluntary=3).switches is None


def test_only_samples_of_the_window_are_measured() -> None:
    made = making.measurement(warmup_s=2, window_s=3)
    assert [sample.at_s for sample in made.watch_measured] == [2.5, 3.5, 4.5]
    assert made.model_copy(update={"intervals": ()}).watch_measured == ()


def test_evidence_and_counters_come_back_from_json_as_they_were() -> None:
    series = StatusSeries(at_s=(0.5, 1.5), took_ms=(2, 3), counters={"Questions": (10.0, None)})
    evidence = TrialEvidence(
        probe=Probe(cpu_ms=5.1, sync_ms=0.4),
        ceiling_per_s=9000.0,
        ceiling_threads=8,
        query_plans={"point_selects": "const PRIMARY"},
        rows_after={"sbtest1": 1000},
        dataset_after="abc",
    )
    made = making.changed(making.measurement(histograms=False), evidence=evidence)
    made = made.model_copy(update={"status_seconds": series})
    assert Measurement.model_validate_json(made.model_dump_json()) == made


def test_what_a_kill_left_comes_back_and_hides_the_settings() -> None:
    seen = KilledServer(
        system="a",
        version="8.0.15",
        settings={"secret_path": "/x"},
        connections=4,
        kills=(Kill(acknowledged=10, kept=10, load_s=1.0, recovery_s=2.0),),
    )
    assert KilledServer.model_validate_json(seen.model_dump_json()) == seen
    assert "secret_path" not in repr(seen)
