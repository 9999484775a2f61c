"""The legacy tests' options stand beside today's global ones without a collision."""

from dbdyno.sysbench.options.table import GLOBAL_TABLE, LEGACY_OPTIONS, of_test
from dbdyno.sysbench.options.values import canonical


def test_no_name_stands_twice():
    names = [canonical(option.name) for option in LEGACY_OPTIONS]
    assert len(names) == len(set(names))
    assert not set(names) & set(GLOBAL_TABLE)


def test_all_legacy_tests_have_them_and_no_other_test():
    assert set(of_test("oltp")) == set(of_test("legacy_select")) == set(LEGACY_OPTIONS)
    assert not set(of_test("oltp_read_write")) & set(LEGACY_OPTIONS)


def test_they_are_listed(sysbench):
    assert sysbench("--test=tests/db/oltp.lua help") == 0
    assert "legacy_oltp options:" in sysbench.stdout
    assert "--oltp-table-size=N " in sysbench.stdout
