"""Evidence travels with its measurement, and an older one without it is still read."""

from __future__ import annotations

from dbdyno.measurement.measurement import Measurement
from dbdyno.measurement.parts import (
    DoubledThreads,
    Evidence,
    Kill,
    KilledServer,
    Probe,
    ThreadsSlice,
)
from support import making


def test_evidence_comes_back_from_json_as_it_was() -> None:
    evidence = Evidence(
        probe=Probe(cpu_ms=5.1, sync_ms=0.4),
        ceiling_per_s=9000.0,
        ceiling_threads=8,
        query_plans={"point_selects": "const PRIMARY"},
        rows_after={"sbtest1": 1000},
        dataset_after="abc",
        doubled_threads=(
            DoubledThreads(
                workload="oltp_read_only",
                connections=8,
                setting="default",
                slice_s=3.0,
                slices=(ThreadsSlice(threads=1, rate_per_s=99.5),),
            ),
        ),
    )
    made = making.changed(making.measurement(histograms=False), evidence=evidence)
    assert Measurement.model_validate_json(made.model_dump_json()).evidence == evidence


def test_a_measurement_without_evidence_is_read() -> None:
    old = making.measurement(histograms=False).model_dump(exclude={"evidence"})
    assert Measurement.model_validate(old).evidence == Evidence()


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
