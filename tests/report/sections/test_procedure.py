from __future__ import annotations

from dbdyno.measurement.parts import Step
from dbdyno.report.parts import Items, Table
from dbdyno.report.sections import method
from support import making

RESTORE = Step(name="restore", seconds=1.0)
SLOW = Step(name="restore", seconds=3.0)
UNDONE = Step(name="drop caches", seconds=0.5, done=False, detail="refused")


def test_steps_are_counted_and_timed_for_each_system() -> None:
    measured = [
        making.measurement(making.A).model_copy(update={"procedure": (RESTORE, UNDONE)}),
        making.measurement(making.A, 1).model_copy(update={"procedure": (SLOW,)}),
        making.measurement(making.B).model_copy(update={"procedure": (RESTORE,)}),
    ]
    table = method.procedure_table(making.plan(), measured)
    assert table is not None
    assert table.rows == (
        (making.A, "restore", "2", "0", "2.0", "3.0", "4.0"),
        (making.A, "drop caches", "1", "1", "0.500", "0.500", "0.500"),
        (making.B, "restore", "1", "0", "1.0", "1.0", "1.0"),
    )
    shown = method.how_measured(making.plan(), measured).parts
    assert table in shown


def test_without_steps_there_is_no_table() -> None:
    assert method.procedure_table(making.plan(), [making.measurement()]) is None
    parts = method.how_measured(making.plan(), [making.measurement()]).parts
    assert len([part for part in parts if isinstance(part, Table)]) == 2


def test_only_what_the_plan_asks_for_is_said() -> None:
    plain = making.plan()
    assert list(method.asked_procedure(plain)) == []
    whole = plain.model_copy(
        update={
            "procedure": plain.procedure.model_copy(
                update={
                    "fresh_data": "once",
                    "drop_caches": True,
                    "purge_binlogs": True,
                    "settle_cap_s": 60,
                }
            ),
            "trial": plain.trial.model_copy(update={"until_steady": True, "warmup_cap_s": 300}),
        }
    )
    told = list(method.asked_procedure(whole))
    assert len(told) == 5
    assert "60 s at most" in told[3]
    assert "300 s at most" in told[4]
    (items,) = (p for p in method.how_measured(whole, []).parts if isinstance(p, Items))
    assert set(told) <= set(items.items)


def test_one_who_restores_once_does_not_say_that_every_start_has_fresh_data() -> None:
    plan = making.plan()
    once = plan.procedure.model_copy(update={"fresh_data": "once"})
    (items,) = (
        part
        for part in method.how_measured(plan.model_copy(update={"procedure": once}), []).parts
        if isinstance(part, Items)
    )
    assert not any("on a restored dataset" in item for item in items.items)
