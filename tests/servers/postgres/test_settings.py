import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import ServerError
from dbdyno.servers.postgres import settings as readback
from dbdyno.servers.postgres.settings import Parameter

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
    ("wal_buffers", "2048", "8kB", "integer"),
    ("TimeZone", "UTC", "", "string"),
    ("DateStyle", "ISO, MDY", "", "string"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shared_buffers", "256MB"),
        ("shared_buffers", "262144kB"),
        ("shared_buffers", "0.25 GB"),
        ("shared_buffers", "32768"),
        ("shared_buffers", "0x8000"),
        ("max_wal_size", "512MB"),
        ("wal_segment_size", "16MB"),
        ("checkpoint_timeout", "5min"),
        ("vacuum_cost_delay", "2000us"),
        ("random_page_cost", "1.10"),
        ("random_page_cost", "11e-1"),
        ("unix_socket_permissions", "448"),
        ("fsync", "TRUE"),
        ("fsync", "t"),
        ("synchronous_commit", "no"),
        ("wal_level", "REPLICA"),
        ("wal_buffers", "-1"),
        ("timezone", "utc"),
        ("datestyle", "iso,mdy"),
    ],
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
        ("random_page_cost", "1e999999999", "'1.1'"),
        ("innodb_wonder", "1", "no such"),
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
