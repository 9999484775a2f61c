"""Names and paths of tests: built-in ones are recognised, files of the user's never replaced."""

import pytest

from dbdyno.sysbench.legacy import SCRIPTS, recognised
from dbdyno.sysbench.options.values import Refusal

OURS = ("oltp_read_write", "oltp_read_only", "bulk_insert", "select_random_points")


def of(typed, *, is_option=True, version="1.0"):
    return recognised(typed, is_option=is_option, version=version, ours=OURS)


KNOWN = {
    "oltp_read_write": "oltp_read_write",
    "oltp_read_write.lua": "oltp_read_write",
    "/usr/share/nowhere/oltp_read_write.lua": "oltp_read_write",
    "../src/lua/oltp_read_only": "oltp_read_only",
    "oltp_common": "oltp_common",
    "/opt/sysbench/oltp_common.lua": "oltp_common",
    "oltp": "oltp",
    "oltp.lua": "legacy_oltp",
    "./tests/db/oltp.lua": "legacy_oltp",
    "/usr/share/doc/sysbench/tests/db/oltp": "legacy_oltp",
    "select": "legacy_select",
    "tests/db/update_non_index.lua": "legacy_update_non_index",
    "/usr/share/sysbench/tests/include/oltp_legacy/parallel_prepare.lua": "legacy_parallel_prepare",
    # Names that both ages have: the folder tells.
    "bulk_insert": "bulk_insert",
    "/usr/share/nowhere/bulk_insert.lua": "bulk_insert",
    "./tests/db/bulk_insert.lua": "legacy_bulk_insert",
    "oltp_legacy/select_random_points.lua": "legacy_select_random_points",
}


@pytest.mark.parametrize("typed", KNOWN)
def test_names_and_paths_of_machines_long_gone(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert of(typed) == KNOWN[typed]


@pytest.mark.parametrize("typed", ["otlp.lua", "tests/db/common.lua", "", "tests/db/", "./x/y"])
def test_what_is_no_test(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match="Cannot find benchmark"):
        of(typed)


def test_a_bare_script_s_name_needs_the_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in {*SCRIPTS} - {*OURS, "select_random_ranges"}:
        with pytest.raises(Refusal, match=f"Cannot find benchmark '{name}'"):
            of(name, is_option=False)
    assert of("tests/db/oltp.lua", is_option=False) == "legacy_oltp"


@pytest.mark.parametrize(
    "typed", ["oltp.lua", "db/oltp.lua", "oltp_read_write", "mine/oltp_read_only.lua", "oltp"]
)
def test_a_script_of_the_user_s_is_not_replaced(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / (typed if typed.endswith(".lua") else f"{typed}.lua")
    place.parent.mkdir(exist_ok=True)
    place.write_text("function event() end")
    with pytest.raises(Refusal, match="Lua scripts; built in are oltp_read_write, "):
        of(typed)


def test_sysbench_s_own_files_are_the_built_in_tests(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, beside, script, name in (
        ("tests/db", "common.lua", "oltp.lua", "legacy_oltp"),
        ("oltp_legacy", "common.lua", "bulk_insert.lua", "legacy_bulk_insert"),
        ("share/sysbench", "oltp_common.lua", "oltp_read_write.lua", "oltp_read_write"),
        ("src/lua", "oltp_common.lua", "oltp_common.lua", "oltp_common"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        for file in (beside, script):
            (tmp_path / folder / file).touch()
        assert of(f"{folder}/{script}") == name
        assert of(str(tmp_path / folder / script)) == name


def test_1_1_has_no_tests_of_before_1_0(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=r"leave --compat=1.1 out"):
        of("tests/db/oltp.lua", version="1.1")
    assert of("/usr/share/nowhere/oltp_read_only.lua", version="1.1") == "oltp_read_only"
