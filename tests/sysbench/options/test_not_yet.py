"""What sysbench has and dbdyno has not: refused by name, unless it would do nothing anyway."""

import pytest

from dbdyno.sysbench.options.table import (
    GLOBAL_TABLE,
    OPTIONS_NOT_YET,
    OWN,
    WORKLOAD,
    by_name,
    driven,
)

NOT_YET = {
    "oltp_read_write --pgsql-host=h run": "--pgsql-host: ",
    "oltp_read_write --db-driver=pgsql run": "--db-driver=pgsql: ",
    "oltp_read_write --mysql-compression --mysql-compression-algorithms=zstd run": (
        "--mysql-compression-algorithms=zstd: "
    ),
    "--test=oltp --oltp-test-mode=sp run": "--oltp-test-mode=sp: ",
    "--test=oltp --oltp-table-name=t run": "--oltp-table-name=t: ",
    "fileio run": "fileio: ",
    "": "no test: ",
}


@pytest.mark.parametrize("line", NOT_YET)
def test_what_is_not_driven_yet_is_said_by_name(sysbench, engine, line):
    assert sysbench(line) == 1
    expected = NOT_YET[line] + "this version of dbdyno does not do this yet: "
    told = [it for it in sysbench.stderr.splitlines() if not it.startswith("WARNING: the --test")]
    assert told[0].startswith(expected)
    assert len(told) == 1
    assert engine.specs == []


def test_a_script_is_told_from_a_name_that_is_nothing(sysbench, tmp_path):
    script = tmp_path / "my.lua"
    script.write_text("function event() end")
    assert sysbench(f"{script} run") == 1
    assert "does not do this yet: Lua scripts" in sysbench.stderr


def test_an_option_is_driven_or_not_yet_but_never_both():
    names = [option.name for option in OPTIONS_NOT_YET]
    assert len(names) == len(set(names))
    own = by_name(option for several in (WORKLOAD, *OWN.values()) for option in several)
    assert not set(names) & {*GLOBAL_TABLE, *own}


def test_what_does_nothing_is_dropped_and_the_rest_kept():
    typed = {"pgsql-port": "5432", "threads": "8", "unheard-of": None}
    assert driven(typed) == {"threads": "8", "unheard-of": None}
