from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dbdyno.errors import UnknownSystemError
from dbdyno.experiment.engine import spec
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.postgres.instance import PostgresInstance
from support.fakes import FakeInstance


def test_what_the_engine_speaks_to_passes():
    assert spec.check("mysql:8.0.15") is None
    assert spec.refuse_unspoken("mariadb:from-another-dbdyno") is None


def test_postgresql_is_known_and_refused_in_plain_words():
    with pytest.raises(UnknownSystemError) as caught:
        spec.check("Postgres:18.6")
    assert caught.value.message == (
        "Postgres:18.6 cannot be measured yet: dbdyno's engine does not speak PostgreSQL"
    )
    assert caught.value.exit_status == 2


def test_what_is_not_known_is_told_as_such():
    with pytest.raises(UnknownSystemError, match="knows no version '99'"):
        spec.check("postgres:99")


def test_a_folder_that_turns_out_to_hold_postgresql_is_refused_by_its_own_name():
    made = PostgresInstance.__new__(PostgresInstance)
    made.spec = ServerSpec("pg", "path:/opt/server")
    with pytest.raises(UnknownSystemError, match=r"^path:/opt/server cannot be measured yet"):
        spec.refuse_unspoken_instance(made)
    with TemporaryDirectory() as folder:
        fake = FakeInstance(ServerSpec("my", "path:/opt/other"), Path(folder), [], ())
        assert spec.refuse_unspoken_instance(fake) is None
