"""The count of right causes, on made outcomes; `validation.causes` measures real ones."""

from __future__ import annotations

import pytest
from validation import causes


def outcome(case: str, first: str, function: str | None = None) -> dict[str, object]:
    return {"case": case, "first": first, "function": function}


def test_right_causes_and_functions_are_counted() -> None:
    hot = "planted_reference::planted_hot_function"
    told = causes.summary(
        [
            outcome("hot", "work", hot),
            outcome("hot", "switches", "base_work"),
            outcome("sync", "syncs", "fdatasync"),
            outcome("equal", "", ""),
            outcome("equal", "syncs", ""),
        ]
    )
    assert told.splitlines()[2:] == [
        "| hot | 1 of 2 | work 1, switches 1 |",
        f"| hot, function | 1 of 2 | {hot} 1, base_work 1 |",
        "| sync | 1 of 1 | syncs 1 |",
        "| equal | 1 of 2 | none 1, syncs 1 |",
        "| equal, function | 2 of 2 | none 2 |",
    ]


@pytest.mark.parametrize("case", causes.REAL)
def test_real_systems_differ_in_one_thing(case: str) -> None:
    first, second = causes.real_plan(case, 1, 3, 1.0).systems
    differing = {
        name for name in type(first).model_fields if getattr(first, name) != getattr(second, name)
    }
    assert differing in ({"label", "settings"}, {"label", "after_start"})
    assert first.settings.keys() == second.settings.keys()
