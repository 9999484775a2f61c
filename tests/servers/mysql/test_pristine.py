from dataclasses import replace

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.mysql.instance import pristine
from dbdyno.servers.reference import find

NEW = find("mysql:8.0.15")
MARIADB = replace(NEW, product="mariadb", version="10.2.11")
INITIALISES = """#!/bin/sh
folder=$(sed -n 's/^datadir=//p' "${1#--defaults-file=}")
mkdir -p "$folder/mysql"
echo made > "$folder/ibdata1"
echo mine > "$folder/auto.cnf"
echo "$2" > "$folder/option"
"""
BOOTSTRAPS = """#!/bin/sh
folder=$(sed -n 's/^datadir=//p' "${1#--defaults-file=}")
echo "$2" > "$folder/option"
cat > "$folder/mysql/fed"
"""
FAILS = "#!/bin/sh\necho '[ERROR] page size 3K is not possible'\nexit 1\n"


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    share = tmp_path / "home" / "share"
    for folder in (tmp_path / "home" / "bin", share / "charsets"):
        folder.mkdir(parents=True)
    (share / "charsets" / "Index.xml").touch()
    for part in ("mysql_system_tables", "mysql_system_tables_data"):
        (share / f"{part}.sql").write_text(f"-- {part}\n")

    def with_program(script):
        program = tmp_path / "home" / "bin" / "mysqld"
        program.write_text(script)
        program.chmod(0o755)
        return tmp_path / "home"

    return with_program


def test_a_data_directory_is_made_once_per_deciding_settings(home):
    said: list[str] = []
    programs = home(INITIALISES)
    first = pristine(NEW, programs, {"sync_binlog": "1"}, None, said.append)
    assert (first / "ibdata1").read_text() == "made\n"
    assert (first / "option").read_text() == "--initialize-insecure\n"
    assert pristine(NEW, programs, {"sync_binlog": "0"}, None, said.append) == first
    assert said == ["mysql:8.0.15: initialising a data directory"]
    assert pristine(NEW, programs, {"innodb_page_size": "8K"}, None, said.append) != first


def test_a_server_that_cannot_initialise_itself_is_fed_its_makers_sql(home):
    data = pristine(MARIADB, home(BOOTSTRAPS), {}, None, str)
    assert (data / "option").read_text() == "--bootstrap\n"
    assert "-- mysql_system_tables_data\n" in (data / "mysql" / "fed").read_text()


def test_it_is_closed_to_others_and_holds_no_identity_of_a_server(home):
    data = pristine(NEW, home(INITIALISES), {}, None, str)
    assert data.parent.stat().st_mode & 0o777 == 0o700
    assert not (data / "auto.cnf").exists()


def test_a_failing_initialisation_is_quoted_and_leaves_nothing(home, tmp_path):
    with pytest.raises(ServerError, match=r"could not initialise .*exit code 1") as caught:
        pristine(NEW, home(FAILS), {"innodb_page_size": "3K"}, None, str)
    assert caught.value.wanted == "innodb_page_size = 3K"
    assert caught.value.found == "[ERROR] page size 3K is not possible"
    left = [path.suffix for path in (tmp_path / "cache" / "pristine").iterdir()]
    assert left == [".lock"]
