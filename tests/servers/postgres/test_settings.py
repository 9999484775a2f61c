"""Settings of a PostgreSQL: laid over the common ones, written, and proven."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError, UsageError
from dbdyno.servers.postgres import settings as readback
from dbdyno.servers.postgres.settings import Parameter
from dbdyno.servers.reference import find

OLD, NEW = find("postgres:17.11"), find("postgres:18.6")


def test_the_users_keys_are_laid_over_the_common_ones_in_any_spelling():
    whole = readback.effective(NEW, {"Shared-Buffers": "1GB", "jit": False, "work_mem": 4096})
    assert whole["shared_buffers"] == "1GB"
    assert whole["jit"] == "off"
    assert whole["work_mem"] == "4096"
    assert whole["max_connections"] == "1024"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"data_directory": "/x"}, "data_directory cannot be set: dbdyno decides"),
        ({"include": "/etc/passwd"}, "include cannot be set"),
        ({"work mem": 1}, "'work mem' is not the name of a setting"),
        ({"work_mem": "1MB\nssl = on"}, "cannot stand in a configuration file"),
        ({"work_mem": 1, "work-mem": 2}, "work_mem is given twice, the second time as work-mem"),
        ({"data_checksums": "maybe"}, "data_checksums takes no value but on or off"),
        ({"wal_segment_size": "3MB"}, "'3MB' is not a size of a log segment"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_made(asked, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        readback.effective(NEW, asked)


@pytest.mark.parametrize(
    ("entry", "asked", "options"),
    [
        (OLD, {}, ["--data-checksums"]),
        (NEW, {}, ["--data-checksums"]),
        (OLD, {"data_checksums": False}, []),
        (NEW, {"data_checksums": "no"}, ["--no-data-checksums"]),
        (OLD, {"wal_segment_size": "64MB"}, ["--data-checksums", "--wal-segsize=64"]),
        (OLD, {"wal_segment_size": "1GB"}, ["--data-checksums", "--wal-segsize=1024"]),
    ],
)
def test_initdb_gets_what_cannot_be_changed_later(entry, asked, options):
    assert readback.initdb_options(entry, readback.effective(entry, asked)) == options


def test_the_configuration_is_written_so_that_a_value_stays_one_value(tmp_path):
    where = readback.places_of(tmp_path, tmp_path / 'a "b", c', 5432)
    text = readback.render({"a": r"it's \n", "data_checksums": "on", **where})
    lines = text.splitlines()
    assert lines[0] == r"a = 'it''s \\n'"
    assert "data_checksums" not in text
    assert "port = '5432'" in lines
    assert f"""unix_socket_directories = '"{tmp_path}/a ""b"", c"'""" in lines
    assert "listen_addresses = '127.0.0.1'" in lines


def unquoted(text: str) -> str:
    """What PostgreSQL reads between quotes: doubled quotes, and escapes of C."""
    return re.sub(r"''|\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]) if m[1] else "'", text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_is_read_back_as_it_was(value):
    line = readback.render({"name": value})
    assert line.startswith("name = '")
    assert line.endswith("'\n")
    inner = line.removeprefix("name = '").removesuffix("'\n")
    assert "\n" not in inner
    assert unquoted(inner) == value


ROWS = [
    ("shared_buffers", "32768", "8kB", "integer"),
    ("max_wal_size", "512", "MB", "integer"),
    ("wal_segment_size", "16777216", "B", "integer"),
    ("checkpoint_timeout", "300", "s", "integer"),
    ("vacuum_cost_delay", "2", "ms", "real"),
    ("random_page_cost", "1.1", "", "real"),
    ("unix_socket_permissions", "0700", "", "integer"),
    ("fsync", "on", "", "bool"),
    ("synchronous_commit", "off", "", "enum"),
    ("wal_level", "replica", "", "enum"),
    ("wal_compression", "pglz", "", "enum"),
    ("wal_buffers", "2048", "8kB", "integer"),
    ("TimeZone", "UTC", "", "string"),
    ("DateStyle", "ISO, MDY", "", "string"),
]


SPELLINGS = {
    "shared_buffers": ["256MB", "262144kB", "0.25 GB", "32768", "0x8000"],
    "max_wal_size": ["512MB"],
    "wal_segment_size": ["16MB"],
    "checkpoint_timeout": ["5min"],
    "vacuum_cost_delay": ["2000us"],
    "random_page_cost": ["1.10", "11e-1"],
    "unix_socket_permissions": ["448"],
    "fsync": ["TRUE", "t"],
    "synchronous_commit": ["no"],
    "wal_level": ["REPLICA", "hot_standby"],
    "wal_compression": ["on", "True"],
    "wal_buffers": ["-1"],
    "timezone": ["utc"],
    "datestyle": ["iso,mdy"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in SPELLINGS.items() for text in texts]
)
def test_other_spellings_of_the_value_in_force_are_taken(name, text):
    assert readback.check("pg", {name: text}, ROWS) is None


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("shared_buffers", "255MB", "'32768 x 8kB'"),
        ("shared_buffers", "256kB", "'32768 x 8kB'"),
        ("shared_buffers", "256s", "'32768 x 8kB'"),
        ("shared_buffers", "many", "'32768 x 8kB'"),
        ("checkpoint_timeout", "5", "'300 s'"),
        ("fsync", "off", "'on'"),
        ("fsync", "o", "'on'"),
        ("synchronous_commit", "remote_apply", "'off'"),
        ("wal_compression", "off", "'pglz'"),
        ("wal_compression", "lz4", "'pglz'"),
        ("random_page_cost", "1e999999999", "'1.1'"),
        ("innodb_wonder", "1", "no such parameter"),
    ],
)
def test_another_value_is_an_error_with_both(name, text, found):
    with pytest.raises(ServerError, match=f"pg: the server did not take {name} as asked") as caught:
        readback.check("pg", {"wal_level": "replica", name: text}, ROWS)
    assert caught.value.wanted == f"{name} = {text}"
    assert caught.value.found == f"{name} = {found}"


@given(st.integers(0, 2**40))
def test_a_size_is_in_force_exactly_when_it_is_a_whole_number_of_the_unit(kilobytes):
    shown = Parameter("shared_buffers", str(kilobytes // 8), "8kB", "integer")
    assert readback.same_value(f"{kilobytes}kB", shown) == (kilobytes % 8 == 0)


@given(st.text(max_size=30), st.sampled_from(["integer", "real", "bool", "enum", "string"]))
def test_no_text_of_a_user_breaks_the_comparison(text, kind):
    shown = Parameter("x", "17", "kB", kind)
    assert readback.same_value(text, shown) in (True, False)
