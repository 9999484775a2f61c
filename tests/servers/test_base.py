"""Answers of servers, and those that are none."""

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, count_of, row_of
from support.fake_members import FakeMember


def test_no_password_is_printed_with_its_owner():
    assert repr(Credentials("dbdyno", "secret")) == "Credentials(user='dbdyno')"


def answering(*rows):
    """A server that gives every question one answer."""
    return FakeMember("odd", {"": list(rows)})


def test_an_answer_is_a_row_or_a_number():
    assert row_of(answering(("1", "x"), ("2", "y")), "SELECT a, b", 2) == ("1", "x")
    assert [count_of(answering((text,)), "SELECT n") for text in ("7", "32768.0", "")] == [
        *(7, 32768, 0)
    ]


@pytest.mark.parametrize(
    ("rows", "found"),
    [((), "none"), (((),), "rows such as ()"), ((("x",),), "'x'"), ((("1e999.",),), "'1e999.'")],
)
def test_an_odd_answer_is_an_error_in_words(rows, found):
    with pytest.raises(ServerError, match="odd: the server answered 'SELECT n' with") as caught:
        count_of(answering(*rows), "SELECT n")
    assert caught.value.found == found
