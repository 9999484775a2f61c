"""Unequal settings, promises and memory: by accident, on purpose, and not at all."""

from __future__ import annotations

import pytest

from dbdyno.judge.checks.settings import (
    FLUSH,
    Kept,
    Promised,
    cache_bytes,
    changed_versions,
    durability,
    unequal_settings,
)
from dbdyno.judge.finding import Level
from dbdyno.plan.systems import SystemPlan
from support import making
from support.making import A, B

PLAN = making.plan()
POOL = "innodb_buffer_pool_size"
MIB = 1024**2


def cases(found):
    return [difference["case"] for difference in found.values["differences"]]


def two(of_a, of_b):
    return [
        making.measurement(A, settings=of_a),
        making.measurement(B, settings=of_b, sequence=1, position=1),
    ]


def asking(**settings):
    systems = (PLAN.systems[0], SystemPlan(label=B, reference=B, settings=settings))
    return PLAN.model_copy(update={"systems": systems})


@pytest.mark.parametrize(
    ("of_b", "case", "kept"),
    [
        ({FLUSH: "2"}, "commit", ("before-answer", "within-second")),
        ({"log_bin": "ON"}, "binary-log", ("not-written", "synced-each-commit")),
        ({"innodb_doublewrite": "OFF"}, "torn-pages", ("mended", "stay-torn")),
    ],
)
def test_a_weaker_promise_is_doubtful(of_b, case, kept):
    (found,) = unequal_settings(two({}, of_b), PLAN)
    assert (found.check, found.level, found.system) == ("unequal-settings", Level.DOUBTFUL, B)
    systems = {A: [(kept[0], "")], B: [(kept[1], "")]}
    assert found.values == {"differences": [{"case": case, "systems": systems}]}


def test_equal_promises_are_no_finding_whatever_a_log_that_is_off_would_do():
    assert not list(unequal_settings(two({"sync_binlog": "1"}, {"sync_binlog": "0"}), PLAN))
    assert not list(unequal_settings(two({"innodb_doublewrite": "on"}, {}), PLAN))


def test_what_the_plan_asks_for_is_a_note_beside_what_it_does_not():
    of_b = {FLUSH: "2", "innodb_doublewrite": "OFF"}
    plan = asking(**{"innodb-flush-log-at-trx-commit": 2})
    by_accident, on_purpose = unequal_settings(two({}, of_b), plan)
    assert (by_accident.level, on_purpose.level) == (Level.DOUBTFUL, Level.NOTE)
    assert cases(by_accident) == ["torn-pages"]
    assert cases(on_purpose) == ["commit"]


@pytest.mark.parametrize(
    ("of_a", "of_b", "asked"),
    [
        ({"log_bin": "ON"}, {}, {"settings": {"skip-log-bin": True}}),
        ({}, {FLUSH: "2"}, {"workload_settings": {"oltp_write_only": {FLUSH: "2"}}}),
        ({}, {"innodb_flush_method": "fsync"}, {"settings": {"innodb-flush-method": "fsync"}}),
        (
            {"thread_handling": "one-thread"},
            {"thread_handling": "loaded-dynamically"},
            {"settings": {"plugin_load_add": "thread_pool.so"}},
        ),
    ],
)
def test_switches_skipped_plugins_and_settings_of_one_workload_are_asked_for(of_a, of_b, asked):
    system = SystemPlan.model_validate({"label": B, "reference": B, **asked})
    plan = PLAN.model_copy(update={"systems": (PLAN.systems[0], system)})
    for asking, level in ((plan, Level.NOTE), (PLAN, Level.DOUBTFUL)):
        assert [found.level for found in unequal_settings(two(of_a, of_b), asking)] == [level]


def test_another_product_is_compared_by_what_it_promises():
    trials = two({}, {})
    for settings, findings in (
        ({"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}, 0),
        ({"fsync": "on", "synchronous_commit": "off", "full_page_writes": "on"}, 1),
    ):
        server = trials[1].server.model_copy(update={"settings": settings})
        changed = [trials[0], trials[1].model_copy(update={"server": server})]
        assert len(list(unequal_settings(changed, PLAN))) == findings


def test_a_failed_trial_promises_nothing():
    trials = two({}, {"innodb_doublewrite": "OFF"})
    failed = trials[1].model_copy(update={"failure": "died"})
    assert not list(unequal_settings([trials[0], failed], PLAN))


def test_more_memory_is_doubtful_or_a_note():
    of_b = {POOL: str(512 * MIB)}
    (found,) = unequal_settings(two({}, of_b), PLAN)
    assert (found.check, found.level, found.system) == ("unequal-settings", Level.DOUBTFUL, B)
    (difference,) = found.values["differences"]
    assert difference == {"case": "cache", "systems": {A: 256 * MIB, B: 512 * MIB}}
    (found,) = unequal_settings(two({}, of_b), asking(**{POOL: "512M"}))
    assert found.level is Level.NOTE


@pytest.mark.parametrize("bytes_of_b", [256 * MIB, 258 * MIB, 254 * MIB])
def test_what_servers_round_is_equal(bytes_of_b):
    assert not list(unequal_settings(two({}, {POOL: str(bytes_of_b)}), PLAN))


def test_memory_that_nobody_knows_is_no_finding():
    assert not list(unequal_settings(two({}, {POOL: "much"}), PLAN))


# Settings read as promises: the same words for every product, each published value once.


INNODB = {
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "sync_binlog": "1",
    "innodb_doublewrite": "ON",
}
POSTGRES = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def kept(settings):
    return {promise.what: (promise.kept, promise.value) for promise in durability(settings)}


def test_everything_on_disk_at_each_commit():
    assert kept(INNODB) == {
        Promised.COMMIT: (Kept.BEFORE_ANSWER, ""),
        Promised.BINARY_LOG: (Kept.SYNCED_EACH_COMMIT, ""),
        Promised.TORN_PAGES: (Kept.MENDED, ""),
    }


def test_postgres_promises_the_same_without_a_second_log():
    assert kept(POSTGRES) == kept({**INNODB, "log_bin": "OFF"})


@pytest.mark.parametrize(
    ("changed", "what", "extent", "value"),
    [
        ({FLUSH: "2"}, Promised.COMMIT, Kept.WITHIN_SECOND, ""),
        ({FLUSH: "0"}, Promised.COMMIT, Kept.LOST_WITH_SERVER, ""),
        ({FLUSH: "3"}, Promised.COMMIT, Kept.BEFORE_ANSWER, ""),
        ({FLUSH: "9"}, Promised.COMMIT, Kept.UNKNOWN, "9"),
        ({"sync_binlog": "0"}, Promised.BINARY_LOG, Kept.SYNCED_BY_SYSTEM, ""),
        ({"sync_binlog": "100"}, Promised.BINARY_LOG, Kept.SYNCED_EACH_COMMITS, "100"),
        ({"log_bin": "OFF"}, Promised.BINARY_LOG, Kept.NOT_WRITTEN, ""),
        ({"innodb_doublewrite": "OFF"}, Promised.TORN_PAGES, Kept.STAY_TORN, ""),
        ({"innodb_doublewrite": "DETECT_ONLY"}, Promised.TORN_PAGES, Kept.STAY_TORN, ""),
        ({"innodb_doublewrite": "fast"}, Promised.TORN_PAGES, Kept.WRITTEN_TWICE, "FAST"),
        ({"innodb_doublewrite": "DETECT_AND_RECOVER"}, Promised.TORN_PAGES, Kept.MENDED, ""),
    ],
)
def test_each_value_of_innodb_s(changed, what, extent, value):
    assert kept({**INNODB, **changed})[what] == (extent, value)


@pytest.mark.parametrize(
    ("changed", "what", "extent"),
    [
        ({"synchronous_commit": "off"}, Promised.COMMIT, Kept.WITHIN_SECOND),
        ({"synchronous_commit": "remote_apply"}, Promised.COMMIT, Kept.BEFORE_ANSWER),
        ({"fsync": "off"}, Promised.COMMIT, Kept.BY_SYSTEM),
        ({"full_page_writes": "off"}, Promised.TORN_PAGES, Kept.STAY_TORN),
    ],
)
def test_each_value_of_postgres_s(changed, what, extent):
    assert kept({**POSTGRES, **changed})[what] == (extent, "")


def test_an_unknown_product_promises_nothing_that_could_be_compared():
    assert durability({"tidb_txn_mode": "pessimistic"}) == ()
    assert cache_bytes({"tidb_mem_quota_query": "1073741824"}) is None


def test_the_cache_in_each_product_s_units():
    assert cache_bytes({"innodb_buffer_pool_size": "268435456"}) == 256 * 1024**2
    assert cache_bytes({"shared_buffers": "256MB"}) == 256 * 1024**2
    assert cache_bytes({"shared_buffers": "lots"}) is None


@pytest.mark.parametrize(
    ("key", "of_a", "of_b", "values"),
    [
        ("innodb_flush_method", "", "O_DIRECT", ("fsync", "o_direct")),
        ("performance_schema", "OFF", "ON", ("OFF", "ON")),
    ],
)
def test_settings_that_differ_are_doubtful(key, of_a, of_b, values):
    (found,) = unequal_settings(two({key: of_a}, {key: of_b}), PLAN)
    assert (found.level, found.system, found.check) == (Level.DOUBTFUL, B, "unequal-settings")
    (difference,) = found.values["differences"]
    assert difference == {"case": key, "systems": {A: [values[0]], B: [values[1]]}}


def test_spellings_of_one_value_are_equal():
    of_a = {"performance_schema": "on", "innodb_flush_method": ""}
    of_b = {"performance_schema": "TRUE", "innodb_flush_method": "fsync"}
    assert not list(unequal_settings(two(of_a, of_b), PLAN))


def test_one_version_per_system_is_right_and_two_are_doubtful():
    trials = making.pairs((1.0, 1.0))
    assert not list(changed_versions(trials, PLAN))
    upgraded = trials[3].server.model_copy(update={"version": "8.0.16"})
    trials[3] = trials[3].model_copy(update={"server": upgraded})
    (found,) = changed_versions(trials, PLAN)
    assert found.level is Level.DOUBTFUL
    assert (found.values["system"], found.values["setting"]) == (B, "default")
    assert found.values["versions"] == ["8.0.15", "8.0.16"]
