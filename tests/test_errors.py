"""Errors say what was wanted, what was found and what to try, and each has its exit status."""

from __future__ import annotations

import pytest

from dbdyno import errors
from dbdyno.errors import DbdynoError, PlanError, PlanMistake, most_alike

STATUS = {
    "UsageError": 2,
    "UnknownSystemError": 2,
    "PlanError": 2,
    "ProvisionError": 1,
    "ServerError": 1,
    "LoadError": 1,
    "CellError": 1,
    "LostError": 1,
    "StoreError": 1,
    "BundleError": 1,
    "Interrupted": 1,
    "GateError": 3,
    "VoidError": 4,
}


def test_every_error_has_the_exit_status_that_the_tree_draws() -> None:
    kinds = {
        name: kind.exit_status
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, DbdynoError) and kind is not DbdynoError
    }
    assert kinds == STATUS
    assert all(name in (errors.__doc__ or "") for name in STATUS)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "it broke"),
        ({"hint": "mend it"}, "it broke\n  hint: mend it"),
        (
            {"wanted": "an egg", "found": "a hen", "hint": "wait"},
            "it broke\n  wanted: an egg\n  found: a hen\n  hint: wait",
        ),
    ],
)
def test_a_message_has_only_the_parts_that_are_known(parts: dict[str, str], text: str) -> None:
    assert str(DbdynoError("it broke", **parts)) == text


def test_what_is_quoted_does_not_steer_the_terminal() -> None:
    error = DbdynoError("a\x1b[2Jb", found="c\x9b31m\td\u202e\u200f", hint="1\n2")
    assert str(error) == "a [2Jb\n  found: c 31m\td  \n  hint: 1\n2"
    assert error.one_line == "a [2Jb; 1\n2"


def test_mistakes_of_a_plan_come_in_the_order_of_their_lines() -> None:
    error = PlanError(
        "plan.yaml",
        [
            PlanMistake("load.threads", "must be above 0", line=9),
            PlanMistake("systems[0]", "unknown system mysql:4", line=2),
        ],
    )
    assert str(error).splitlines() == [
        "plan.yaml: 2 mistakes",
        "  line 2: systems[0]: unknown system mysql:4",
        "  line 9: load.threads: must be above 0",
    ]
    assert str(PlanError("x", [PlanMistake("seed", "is no number")])).startswith("x: 1 mistake\n")


WORKLOADS = (
    *("bulk_insert", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write"),
    *("oltp_update_non_index", "oltp_write_only", "select_random_points"),
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("oltp_rw", "oltp_read_write"),
        ("oltp_ro", "oltp_read_only"),
        ("oltp_wo", "oltp_write_only"),
        ("readonly", "oltp_read_only"),
        ("oltp_reed_only", "oltp_read_only"),
        ("bul", "bulk_insert"),
        ("oltp_read", "oltp_read_only"),
        ("qqq", ""),
        ("", ""),
    ],
)
def test_a_mistyped_name_means_what_it_begins_abbreviates_or_nearly_is(
    typed: str, meant: str
) -> None:
    assert most_alike(typed, WORKLOADS) == meant
