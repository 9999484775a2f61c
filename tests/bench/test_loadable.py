import pytest

from dbdyno.bench import loadable
from dbdyno.errors import UnknownSystemError


def test_what_the_engine_speaks_to_passes():
    assert loadable.check("mysql:8.0.15") is None
    assert loadable.refuse_unspoken("mariadb:from-another-dbdyno") is None


def test_postgresql_is_known_and_refused_in_plain_words():
    with pytest.raises(UnknownSystemError) as caught:
        loadable.check("Postgres:18.6")
    assert caught.value.message == (
        "Postgres:18.6 cannot be measured yet: dbdyno's engine does not speak PostgreSQL"
    )
    assert caught.value.exit_status == 2


def test_what_is_not_known_is_told_as_such():
    with pytest.raises(UnknownSystemError, match="knows no version '99'"):
        loadable.check("postgres:99")
