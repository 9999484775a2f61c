import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UnknownSystemError, UsageError
from dbdyno.servers import open
from dbdyno.servers.reference import EndpointReference, credentials, is_endpoint, read

ONE = EndpointReference("bench", (("db1", 3306),), "sbtest")


@pytest.mark.parametrize(
    ("reference", "wanted"),
    [
        ("mysql://bench@db1/sbtest", ONE),
        (" MySQL://bench@db1:3306/sbtest ", ONE),
        (
            "mysql://root@10.0.0.1:4000,10.0.0.2:4000,tidb-3/sb_2",
            EndpointReference(
                "root", (("10.0.0.1", 4000), ("10.0.0.2", 4000), ("tidb-3", 3306)), "sb_2"
            ),
        ),
        ("mysql://u@[::1]:3307/d", EndpointReference("u", (("::1", 3307),), "d")),
    ],
)
def test_a_reference_says_who_where_and_what(reference, wanted):
    assert is_endpoint(reference)
    assert read(reference) == wanted
    assert open.check(reference) is None


def test_several_addresses_are_one_endpoint_with_others():
    endpoint = read("mysql://u@a:1,b:2,c:3/d").endpoint
    assert (endpoint.host, endpoint.port) == ("a", 1)
    assert [(other.host, other.port) for other in endpoint.others] == [("b", 2), ("c", 3)]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mysql://db1:3306/sbtest", "lacks a user"),
        ("mysql://bench@db1", "lacks a database"),
        ("mysql://bench@db1/", "lacks a database"),
        ("mysql://bench@/sbtest", "no address"),
        ("mysql://bench@db1:0/sbtest", "'db1:0' is no address"),
        ("mysql://bench@db1:99999/sbtest", "no address"),
        ("mysql://bench@db1,/sbtest", "'' is no address"),
        ("mysql://bench@db1/a`b", "odd one"),
        ("postgres://bench@db1/sbtest", "postgres:// is no endpoint that dbdyno can load"),
        ("mariadb://bench@db1/sbtest", "mariadb:// is no endpoint"),
    ],
)
def test_a_mistake_is_told_with_the_form(reference, message):
    with pytest.raises(UnknownSystemError) as caught:
        open.check(reference)
    assert message in caught.value.message
    assert caught.value.wanted == "mysql://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE"


def test_a_password_is_refused_and_not_repeated():
    with pytest.raises(UnknownSystemError, match="holds a password") as caught:
        open.check("mysql://bench:hunter@2:x/y@db1/sbtest")
    assert "hunter" not in str(caught.value)
    assert "MYSQL_PWD" in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = read(f"mysql://{text}")
    except UnknownSystemError:
        return
    assert found.user
    assert found.addresses
    assert not set("'`\\") & set(found.database)


def test_the_password_comes_from_the_named_variable_or_the_clients_own(monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "common")
    monkeypatch.setenv("DB1", "own")
    assert credentials(ONE, "DB1").password == "own"
    assert credentials(ONE, "").password == "common"
    monkeypatch.delenv("MYSQL_PWD")
    assert credentials(ONE, "").password == ""
    with pytest.raises(UsageError, match="the password of bench is not there") as caught:
        credentials(ONE, "DB2")
    assert "DB2" in (caught.value.wanted or "")
