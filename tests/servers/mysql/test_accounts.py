from dataclasses import replace

import pytest

from dbdyno.servers.base import Credentials
from dbdyno.servers.mysql.server import accounts_sql
from dbdyno.servers.reference import find

MIDDLE, NEW = find("mysql:5.7.22"), find("mysql:8.0.15")
OLD = replace(MIDDLE, version="5.6.24")
MARIADB = replace(MIDDLE, product="mariadb", version="11.4.5")
ROOT, LOAD = Credentials("root", "aa"), Credentials("dbdyno", "bb")


@pytest.mark.parametrize(
    ("entry", "plugin"), [(MIDDLE, "mysql_native_password"), (NEW, "caching_sha2_password")]
)
def test_the_load_user_logs_in_as_the_version_does_by_itself(entry, plugin):
    sql = accounts_sql(entry, ROOT, LOAD)
    assert f"ALTER USER 'dbdyno'@'%' IDENTIFIED WITH {plugin} BY 'bb';" in sql
    assert "CREATE DATABASE IF NOT EXISTS sbtest;" in sql
    assert sql.splitlines()[0] == "SET SESSION sql_log_bin = 0;"


@pytest.mark.parametrize("entry", [OLD, MARIADB])
def test_where_no_user_can_be_altered_a_grant_sets_the_password(entry):
    assert accounts_sql(entry, ROOT, LOAD).splitlines() == [
        "SET SESSION sql_log_bin = 0;",
        "GRANT ALL ON *.* TO 'root'@'localhost' IDENTIFIED BY 'aa' WITH GRANT OPTION;",
        "GRANT ALL ON *.* TO 'dbdyno'@'%' IDENTIFIED BY 'bb';",
        "CREATE DATABASE IF NOT EXISTS sbtest;",
    ]
