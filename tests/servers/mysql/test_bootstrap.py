import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.mysql.instance import system_tables_sql


def parts(share, **texts):
    for name, text in texts.items():
        (share / f"{name}.sql").write_text(text + "\n")
    return system_tables_sql(share).splitlines()


def test_the_makers_sql_is_fed_in_its_order_and_strangers_go_last(tmp_path):
    lines = parts(
        tmp_path,
        mysql_system_tables_data="-- rows",
        mysql_system_tables="-- tables",
        mysql_performance_tables="-- performance",
        fill_help_tables="-- help",
    )
    told = [line for line in lines if line.startswith("--")]
    assert told == ["-- tables", "-- performance", "-- rows", "-- help"]
    assert lines[0] == "USE mysql;"
    assert lines[-3] == "DELETE FROM mysql.user WHERE Host <> 'localhost' OR User = '';"


def test_newer_versions_keep_accounts_elsewhere_and_name_files_anew(tmp_path):
    lines = parts(
        tmp_path,
        mariadb_system_tables="CREATE TABLE global_priv",
        mariadb_system_tables_data="-- rows",
        mariadb_sys_schema="-- sys",
    )
    assert "-- sys" in lines
    assert "DELETE FROM mysql.global_priv WHERE Host <> 'localhost' OR User = '';" in lines


def test_a_folder_without_the_sql_is_an_error(tmp_path):
    with pytest.raises(ProvisionError, match="lacks the SQL") as caught:
        parts(tmp_path, mysql_system_tables="-- tables")
    assert caught.value.found == "mysql_system_tables.sql"
