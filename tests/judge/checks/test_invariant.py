"""Statements of one event, against the counts that sysbench itself prints."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.counts import commits_per_event, statements_per_event
from support import making


@pytest.mark.parametrize(
    ("workload", "options", "statements", "commits"),
    [
        ("oltp_read_write", {}, 20, 1),
        ("oltp_read_only", {}, 16, 1),
        ("oltp_write_only", {}, 6, 1),
        ("oltp_point_select", {}, 1, 0),
        ("oltp_point_select", {"point_selects": 10}, 1, 0),
        ("oltp_insert", {}, 1, 0),
        ("oltp_update_index", {}, 1, 0),
        ("oltp_update_index", {"index_updates": 3}, 3, 0),
        ("oltp_update_non_index", {}, 1, 0),
        ("select_random_ranges", {}, 1, 0),
        ("oltp_read_write", {"skip_trx": True}, 18, 0),
        ("oltp_read_write", {"skip-trx": "on"}, 18, 0),
        ("oltp_read_write", {"range_selects": False}, 16, 1),
        ("oltp_read_only", {"range_selects": "off", "skip_trx": "on"}, 10, 0),
        ("oltp_read_only", {"point_selects": 1, "sum_ranges": 0}, 6, 1),
        ("oltp_write_only", {"delete_inserts": 2}, 8, 1),
        ("mine", {}, None, 0),
    ],
)
def test_statements_and_commits(workload, options, statements, commits):
    plan = making.plan(workloads=(workload,), options=options)
    made = making.measurement(workload=workload)
    assert statements_per_event(made, plan) == statements
    assert commits_per_event(made, plan) == commits


def test_label_that_the_plan_does_not_have_is_taken_as_the_workloads_name():
    imported = making.measurement(workload="oltp_read_only")
    assert statements_per_event(imported, making.plan(workloads=("oltp_read_write",))) == 16
