"""What every server and instance owes, and answers that are none."""

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Instance, Server, count_of, row_of
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.server import MysqlServer


def owed(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_a_mysql_server_has_everything_a_server_owes():
    made_at_start = {"label", "pid", "endpoint", "credentials"}
    assert owed(Server) - made_at_start <= set(dir(MysqlServer))


def test_a_mysql_instance_has_everything_an_instance_owes():
    assert owed(Instance) - {"spec", "folder"} <= set(dir(MysqlInstance))


def test_no_password_is_printed_with_its_owner():
    assert repr(Credentials("dbdyno", "secret")) == "Credentials(user='dbdyno')"


class OneAnswer:
    """A server that gives every question one answer."""

    label = "odd"

    def __init__(self, *rows):
        self.rows = list(rows)

    def ask(self, sql):
        return self.rows


def test_an_answer_is_a_row_or_a_number():
    assert row_of(OneAnswer(("1", "x"), ("2", "y")), "SELECT a, b", 2) == ("1", "x")
    assert [count_of(OneAnswer((text,)), "SELECT n") for text in ("7", "32768.0", "")] == [
        *(7, 32768, 0)
    ]


@pytest.mark.parametrize(
    ("rows", "found"),
    [((), "none"), (((),), "rows such as ()"), ((("x",),), "'x'"), ((("1e999.",),), "'1e999.'")],
)
def test_an_odd_answer_is_an_error_in_words(rows, found):
    with pytest.raises(ServerError, match="odd: the server answered 'SELECT n' with") as caught:
        count_of(OneAnswer(*rows), "SELECT n")
    assert caught.value.found == found
