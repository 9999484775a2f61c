import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UsageError
from dbdyno.servers.postgres import settings
from dbdyno.servers.reference import find

OLD, NEW = find("postgres:17.11"), find("postgres:18.6")


def test_the_users_keys_are_laid_over_the_common_ones_in_any_spelling():
    whole = settings.effective(NEW, {"Shared-Buffers": "1GB", "jit": False, "work_mem": 4096})
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
def test_a_mistake_is_told_before_anything_is_made(asked, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        settings.effective(NEW, asked)


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
def test_initdb_is_told_what_cannot_be_changed_later(entry, asked, options):
    assert settings.initdb_options(entry, settings.effective(entry, asked)) == options


def test_the_configuration_is_written_so_that_a_value_stays_one_value(tmp_path):
    where = settings.places_of(tmp_path, tmp_path / 'a "b", c', 5432)
    text = settings.render({"a": r"it's \n", "data_checksums": "on", **where})
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
    line = settings.render({"name": value})
    assert line.startswith("name = '")
    assert line.endswith("'\n")
    inner = line.removeprefix("name = '").removesuffix("'\n")
    assert "\n" not in inner
    assert unquoted(inner) == value
