"""Command lines of sysbench 0.4 and 0.5 as people published them, and the specs they stand for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sysbench import test_request
from tests.sysbench.test_request import spec_of

from dbdyno import _engine
from dbdyno.sysbench import legacy
from dbdyno.sysbench.entry import main
from dbdyno.sysbench.legacy import SCRIPTS, name_of_test
from dbdyno.sysbench.options.values import Refusal

MYSQL = "--mysql-host=db --mysql-user=root --mysql-db=sbtest "
LOGIN = {**test_request.LOGIN, "user": "root"}
TIDB = (
    "--test=./tests/db/oltp.lua --mysql-host=db --mysql-user=root --mysql-db=sbtest"
    " --oltp-tables-count=16 --oltp-table-size=1000000 --num-threads=500 --max-requests=0"
    " --max-time=600 --report-interval=1 --percentile=99 --rand-init=on --db-driver=mysql "
)
EACH_ONE = (
    *("simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"),
    *("index_updates", "non_index_updates", "delete_inserts"),
)
ROW = {
    **{"tables": 16, "table_size": 1_000_000, "range_size": 100, "point_selects": 10},
    **dict.fromkeys(EACH_ONE, 1),
    **dict.fromkeys(("range_selects", "auto_inc"), True),
    **dict.fromkeys(("read_only", "write_only", "skip_trx", "table_locks"), False),
    **{"random_points": 10, "number_of_ranges": 10, "delta": 5},
}


INSTALLED = Path("/usr/share/sysbench")
needs_sysbench = pytest.mark.skipif(not INSTALLED.is_dir(), reason="sysbench is not installed")


def notes(sysbench):
    return [it for it in sysbench.stderr.splitlines() if it.startswith("note: ")]


def test_a_published_run(sysbench, engine):
    spec = spec_of(sysbench, engine, TIDB + "run")
    assert spec["workload"] == {"name": "legacy_oltp", "options": ROW}
    assert (spec["connections"], spec["window_s"], spec["events"]) == (500, 600, 0)
    assert (spec["interval_s"], spec["percentiles"]) == (1, [99])
    assert spec["distribution"]["name"] == "special"
    assert notes(sysbench) == []
    assert "SQL statistics:" in sysbench.stdout


def test_its_tables(sysbench, engine):
    spec = spec_of(sysbench, engine, TIDB + "--mysql-table-engine=tokudb prepare")
    assert spec == {
        **LOGIN,
        "tables": 16,
        "layout": "legacy",
        "table_size": 1_000_000,
        "threads": 500,
        "seed": 1,
        "distribution": spec["distribution"],
        "auto_inc": True,
        "secondary": False,
        "create_secondary": True,
        "engine": "tokudb",
        "max_rows": 1_000_000,
    }
    assert "Creating secondary indexes on 'sbtest16'...\n" in sysbench.stdout
    spec = spec_of(sysbench, engine, TIDB + "cleanup")
    assert spec == {**LOGIN, "tables": 16, "layout": "legacy"}
    assert sysbench.stdout.endswith("Dropping table 'sbtest16'...\n")


@pytest.mark.parametrize("script", sorted({*SCRIPTS} - {"parallel_prepare"}))
def test_each_script_has_a_workload(sysbench, engine, script):
    line = f"--test=tests/db/{script}.lua {MYSQL}--oltp-tables-count=3 --num-threads=2 "
    spec = spec_of(sysbench, engine, line + "run")
    assert spec["workload"]["name"] == f"legacy_{script}"
    tables = {"bulk_insert": 2, "select_random_points": 1, "select_random_ranges": 1}.get(script, 3)
    spec = spec_of(sysbench, engine, line + "prepare")
    layout = "bulk_insert" if script == "bulk_insert" else "legacy"
    assert (spec["tables"], spec["layout"]) == (tables, layout)
    assert spec.get("first_table", 1) == (0 if script == "bulk_insert" else 1)
    spec_of(sysbench, engine, line + "cleanup")
    assert f"Dropping table 'sbtest{1 if script == 'bulk_insert' else tables}'" in sysbench.stdout


def test_parallel_prepare_loads_in_its_run(sysbench, engine):
    line = "--test=tests/db/parallel_prepare.lua --oltp-tables-count=4 --num-threads=4"
    spec = spec_of(sysbench, engine, f"{line} --max-requests=4 {MYSQL} run")
    assert (spec["layout"], spec["tables"], spec["threads"]) == ("legacy", 4, 4)
    assert "Inserting 10000 records into 'sbtest4'\n" in sysbench.stdout


def test_options_of_the_scripts(sysbench, engine):
    line = (
        "--test=oltp.lua --oltp-read-only=on --oltp-skip-trx=on --oltp-range-selects=off"
        " --oltp_point_selects=3 --mysql-table-engine=myisam --oltp-delete-inserts=0 run"
    )
    options = spec_of(sysbench, engine, line)["workload"]["options"]
    assert (options["read_only"], options["skip_trx"], options["range_selects"]) == (1, 1, 0)
    assert (options["point_selects"], options["delete_inserts"]) == (3, 0)
    assert options["table_locks"] is True
    line = "--test=oltp.lua --oltp-secondary=on --mysql-table-options=CHARSET=ascii prepare"
    spec = spec_of(sysbench, engine, line + " --myisam-max-rows=7 --oltp-auto-inc=off")
    assert (spec["secondary"], spec["max_rows"], spec["auto_inc"]) == (True, 7, False)
    assert spec["table_options"] == "CHARSET=ascii"
    line = "--test=db/select_random_ranges.lua --random-ranges-delta=9 --number-of-ranges=2 run"
    options = spec_of(sysbench, engine, line)["workload"]["options"]
    assert (options["delta"], options["number_of_ranges"]) == (9, 2)


def test_values_the_scripts_do_not_know_are_heeded_with_a_note(sysbench, engine):
    line = "--test=oltp.lua --oltp-read-only --oltp-auto-inc=0 --oltp-secondary=off "
    options = spec_of(sysbench, engine, line + "--oltp-dist-type=uniform run")["workload"]
    assert options["options"]["read_only"] is True
    assert engine.specs[-1]["distribution"] == {"name": "uniform"}
    assert notes(sysbench) == [
        "note: --oltp-read-only is read as on; sysbench's script knows no value but =on and =off",
        "note: --oltp-auto-inc is read as off; sysbench's script knows no value but =on and =off",
        "note: --oltp-secondary=off is read as off, sysbench's script as on",
        "note: --oltp-dist-type is read as --rand-type; sysbench 1.0 ignores it",
    ]
    spec_of(sysbench, engine, "--test=oltp.lua --oltp-test-mode=complex run")
    assert notes(sysbench) == [
        "note: --oltp-test-mode is of sysbench 0.4's --test=oltp: no effect here"
    ]


MODES = {
    "": "legacy_oltp",
    "--oltp-test-mode=complex": "legacy_oltp",
    "--oltp-test-mode=simple": "legacy_oltp_simple",
    "--oltp-test-mode=nontrx": "legacy_select",
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=update_key": "legacy_update_index",
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=update_nokey": "legacy_update_non_index",
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=insert": "legacy_insert",
    "--oltp-test-mode=nontrx --oltp-nontrx-mode=delete": "legacy_delete",
}


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_0_4(sysbench, engine, mode):
    line = f"--test=oltp --oltp-table-size=500 --init-rng --max-requests=9 {mode} run"
    spec = spec_of(sysbench, engine, line)
    assert spec["workload"]["name"] == MODES[mode]
    assert spec["workload"]["options"]["one_table"] is True
    assert spec["prepared"] is True
    assert notes(sysbench) == []


def test_the_one_table_of_0_4(sysbench, engine):
    spec = spec_of(sysbench, engine, f"--test=oltp {MYSQL} --oltp-table-size=500 prepare")
    assert (spec["layout"], spec["tables"], spec["table_size"]) == ("legacy_one", 1, 500)
    assert "Creating 500 records in table 'sbtest'...\n" in sysbench.stdout
    spec = spec_of(sysbench, engine, f"--test=oltp {MYSQL} cleanup")
    assert spec == {**LOGIN, "tables": 1, "layout": "legacy_one"}
    assert sysbench.stdout.endswith("Dropping table 'sbtest'...\n")


def test_connecting_again_and_locks_of_0_4(sysbench, engine):
    for option in ("--oltp-reconnect-mode=transaction", "--oltp-reconnect=on"):
        spec = spec_of(sysbench, engine, f"--test=oltp {option} --mysql-engine-trx=no run")
        assert spec["reconnect_every"] == 1
        assert spec["workload"]["options"]["table_locks"] is True
    spec = spec_of(sysbench, engine, "--test=oltp --mysql-table-engine=myisam run")
    assert "reconnect_every" not in spec
    assert spec["workload"]["options"]["table_locks"] is True


FATAL = {
    "--test=oltp.lua --oltp-table-size=1M run": "Invalid value for --oltp-table-size: '1M'.",
    "--test=oltp.lua --oltp-read-only=on --oltp-write-only=on run": (
        "--oltp-read-only and --oltp-write-only are mutually exclusive"
    ),
    "--test=oltp --oltp-tables-count=4 run": "--test=oltp is sysbench 0.4's and has one table",
    "--test=oltp --oltp-test-mode=x run": "Invalid value for --oltp-test-mode: 'x'.",
    "oltp_common run": "`init' function failed: oltp_common has only prepare, cleanup and prewarm",
    "--test=oltp.lua": "Command is required.",
}


NOT_YET = "this version of dbdyno does not do this yet: "
REFUSED = {
    "oltp_read_write --mysql-compression --mysql-compression-algorithms=zstd run": (
        f"--mysql-compression-algorithms=zstd: {NOT_YET}"
    ),
    "--test=oltp --oltp-test-mode=sp run": f"--oltp-test-mode=sp: {NOT_YET}",
    "--test=oltp --oltp-table-name=t run": f"--oltp-table-name=t: {NOT_YET}",
    "--test=oltp --oltp-reconnect-mode=random run": f"--oltp-reconnect-mode=random: {NOT_YET}",
    "--test=oltp --oltp-user-delay-max=5 run": f"--oltp-user-delay-*: {NOT_YET}",
    "--test=oltp --oltp-table-sise=5 run": "invalid option: --oltp-table-sise=5",
    "--test=oltp --oltp-read-only=maybe run": "invalid option: --oltp-read-only=maybe",
}


@pytest.mark.parametrize("line", [*FATAL, *REFUSED])
def test_what_cannot_be_run(sysbench, engine, line):
    assert sysbench(line) == 1
    if line in FATAL:
        assert sysbench.stdout.splitlines()[-1].startswith(f"FATAL: {FATAL[line]}")
    else:
        told = [it for it in sysbench.stderr.splitlines() if not it.startswith("WARNING: ")]
        assert told[0].startswith(REFUSED[line])
        assert len(told) == 1 or NOT_YET not in told[0]
    assert engine.specs == []


def test_only_some_statements_are_prepared(sysbench, engine):
    assert [name for name in SCRIPTS if _is_prepared(f"legacy_{name}")] == [
        "select_random_points",
        "select_random_ranges",
    ]
    assert _is_prepared("oltp")


def _is_prepared(test):
    return legacy.Legacy(test, None, 1).is_prepared()


def test_the_tables_of_today_s_tests_by_their_common_module(sysbench, engine):
    line = f"oltp_common {MYSQL} --tables=3 --table-size=9 --threads=2 "
    spec = spec_of(sysbench, engine, line + "prepare")
    assert (spec["tables"], spec["table_size"], "layout" in spec) == (3, 9, False)
    assert spec_of(sysbench, engine, line + "cleanup") == {**LOGIN, "tables": 3}
    assert sysbench(line + "help") == 0
    assert "oltp_common options:" in sysbench.stdout


def test_without_a_server_nothing_is_made(sysbench, engine):
    spec = spec_of(sysbench, engine, "oltp_read_only --mysql-dry-run --reconnect=5 run")
    assert spec["dry_run"] is True
    assert "reconnect_every" not in spec, "there are no connections"
    for word in ("prepare", "cleanup", "prewarm"):
        assert sysbench(f"oltp_read_only --mysql-dry-run {word}") == 0
        assert notes(sysbench) == ["note: --mysql-dry-run: there is no server and nothing is done"]
    assert len(engine.specs) == 1


def test_debugging_a_driver_is_only_louder(sysbench, engine):
    spec_of(sysbench, engine, "oltp_read_only --verbosity=0 --mysql-debug run")
    assert "SQL statistics:" in sysbench.stdout
    spec_of(sysbench, engine, "oltp_read_only --verbosity=0 --db-debug run")
    assert sysbench.stdout == ""


# Names and paths of tests: built-in ones are recognised, files of the user's never replaced.


OURS = ("oltp_read_write", "oltp_read_only", "bulk_insert", "select_random_points")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working directory, which has no file of sysbench's or of the user's yet."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(typed, *, is_option=True, version="1.0"):
    return name_of_test(typed, is_option=is_option, version=version, ours=OURS)


KNOWN = {
    "oltp_read_write": "oltp_read_write",
    "oltp_read_write.lua": "oltp_read_write",
    "/usr/share/nowhere/oltp_read_write.lua": "oltp_read_write",
    "../src/lua/oltp_read_only": "oltp_read_only",
    "oltp_common": "oltp_common",
    "/opt/sysbench/oltp_common.lua": "oltp_common",
    "oltp": "oltp",
    "oltp.lua": "legacy_oltp",
    "./tests/db/oltp.lua": "legacy_oltp",
    "/usr/share/doc/sysbench/tests/db/oltp": "legacy_oltp",
    "select": "legacy_select",
    "tests/db/update_non_index.lua": "legacy_update_non_index",
    "/usr/share/sysbench/tests/include/oltp_legacy/parallel_prepare.lua": "legacy_parallel_prepare",
    # Names that both ages have: the folder tells.
    "bulk_insert": "bulk_insert",
    "/usr/share/nowhere/bulk_insert.lua": "bulk_insert",
    "./tests/db/bulk_insert.lua": "legacy_bulk_insert",
    "oltp_legacy/select_random_points.lua": "legacy_select_random_points",
}


@pytest.mark.parametrize("typed", KNOWN)
def test_names_and_paths_of_other_machines(typed):
    assert of(typed) == KNOWN[typed]


def test_a_published_copy_of_a_script_is_the_script_and_that_is_said(sysbench, engine, folder):
    # the prepare and the mixed load of the comparisons with MariaDB 10.1.10 and with TDSQL
    whole = MYSQL + (
        "--num-threads=500 --oltp-table-size=2180000 --oltp-tables-count=10 --oltp-point-selects=1"
        " --oltp-simple-ranges=0 --oltp-sum-ranges=0 --oltp-order-ranges=0 --oltp-index-updates=1"
        " --oltp-non-index-updates=0 "
    )
    spec = spec_of(sysbench, engine, f"--test=./tests/db/oltp.lua.bak {whole} prepare")
    assert (spec["tables"], spec["table_size"]) == (10, 2_180_000)
    said = "is no script of sysbench's: its oltp.lua is run instead"
    assert notes(sysbench) == [f"note: ./tests/db/oltp.lua.bak {said}"]
    mixed = f"--test=./tests/db/oltp_new.lua --oltp-read-only=off --oltp-distinct-ranges=0 {whole}"
    workload = spec_of(sysbench, engine, f"{mixed} --max-time=60 run")["workload"]
    assert workload["name"] == "legacy_oltp"
    parts = ("point_selects", "simple_ranges", "distinct_ranges", "index_updates")
    assert [workload["options"][part] for part in parts] == [1, 0, 0, 1]


@pytest.mark.parametrize("typed", ["otlp.lua", "tests/db/common.lua", "", "tests/db/", "./x/y"])
def test_what_is_no_test(typed):
    with pytest.raises(Refusal, match="Cannot find benchmark"):
        of(typed)


def test_a_bare_script_s_name_needs_the_option():
    for name in {*SCRIPTS} - {*OURS, "select_random_ranges"}:
        with pytest.raises(Refusal, match=f"Cannot find benchmark '{name}'"):
            of(name, is_option=False)
    assert of("tests/db/oltp.lua", is_option=False) == "legacy_oltp"


def placed(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.lua").write_text(text)


def released(name):
    return (INSTALLED / f"{name}.lua").read_text()


MINE = "error('mine')"


@pytest.mark.parametrize(
    "typed",
    [
        *("oltp.lua", "db/oltp.lua", "oltp_read_write", "mine/oltp_read_only.lua", "oltp"),
        *("tests/db/oltp_new.lua", "share/sysbench/oltp_read_only.lua", "src/lua/bulk_insert.lua"),
    ],
)
def test_a_script_of_the_user_s_is_run_itself(typed, sysbench, folder):
    path = Path(typed if typed.endswith(".lua") else f"{typed}.lua")
    placed(folder / path.parent, **{path.stem: MINE, "common": "", "oltp_common": ""})
    assert sysbench(f"{typed} --mysql-dry-run run") == 1
    assert f"{path.name}:1: mine" in sysbench.stdout


def test_a_changed_file_of_sysbench_s_is_told_by_its_path(sysbench, folder):
    placed(folder, oltp_point_select='require("oltp_common")', oltp_common=MINE)
    sysbench("./oltp_point_select.lua --mysql-dry-run run")
    assert "./oltp_common.lua:1: mine" in sysbench.stdout
    said = "run itself: the code of ./oltp_point_select.lua is not that of sysbench 1.0.20 or 1.1"
    assert notes(sysbench) == [f"note: ./oltp_point_select.lua is {said}"]


def test_a_script_of_before_1_0_is_run_itself(sysbench, folder):
    placed(folder / "tests/db", oltp="function event() end")
    assert sysbench("--test=tests/db/oltp.lua --max-requests=1 run") == 0
    said = "a script of before sysbench 1.0 is replaced by a built-in test only where it is missing"
    assert notes(sysbench) == [f"note: tests/db/oltp.lua is run itself: {said}"]


@pytest.mark.parametrize("name", ["oltp_read_only", "oltp_common"])
def test_a_changed_file_on_lua_s_path_is_run(name, sysbench, folder, monkeypatch):
    placed(folder / "share/sysbench", **{name: MINE})
    monkeypatch.setenv("LUA_PATH", f"{folder}/share/sysbench/?.lua")
    assert sysbench("oltp_read_only --mysql-dry-run run") == 1
    assert f"/share/sysbench/{name}.lua:1: mine" in sysbench.stdout
    (said,) = notes(sysbench)
    assert said.endswith(f"/{name}.lua is not that of sysbench 1.0.20 or 1.1")


@needs_sysbench
@pytest.mark.parametrize("place", ["mine", "share/sysbench", "tests/db"])
@pytest.mark.parametrize("name", ["oltp_read_write", "select_random_points", "bulk_insert"])
def test_released_code_is_the_built_in_test_in_any_folder(place, name, sysbench, engine, folder):
    text = released(name).replace("#!/usr/bin/sysbench", "#!/usr/bin/env sysbench")
    text = f"{text}-- a comment\n".replace("\n", "\r\n")
    placed(folder / place, **{name: text, "oltp_common": released("oltp_common")})
    assert spec_of(sysbench, engine, f"{place}/{name}.lua {MYSQL} run")["workload"]["name"] == name
    assert notes(sysbench) == []


@needs_sysbench
def test_every_installed_script_is_released():
    scripts = sorted(INSTALLED.glob("*.lua"))
    assert len(scripts) == 12
    for script in scripts:
        assert _engine.is_released(script.stem, str(script)), script
    assert not _engine.is_released("oltp_read_only", str(INSTALLED / "oltp_read_write.lua"))
    assert not _engine.is_released("mine", str(INSTALLED / "oltp_read_write.lua"))


@needs_sysbench
def test_a_changed_module_is_a_changed_test(sysbench, folder):
    placed(folder, oltp_read_only=released("oltp_read_only"), oltp_common=MINE)
    for typed in ("oltp_read_only.lua", str(INSTALLED / "oltp_read_only.lua")):
        sysbench(f"{typed} --mysql-dry-run run")
        assert "./oltp_common.lua:1: mine" in sysbench.stdout
        (said,) = notes(sysbench)
        assert said.startswith(f"note: {typed} is run itself: the code of ")
        assert said.endswith("oltp_common.lua is not that of sysbench 1.0.20 or 1.1")


@needs_sysbench
def test_a_module_beside_a_script_is_loaded_where_lua_finds_no_other(
    sysbench, engine, folder, monkeypatch
):
    placed(folder / "mine", oltp_read_only=released("oltp_read_only"), oltp_common=MINE)
    line = f"mine/oltp_read_only.lua {MYSQL} --mysql-dry-run run"
    assert spec_of(sysbench, engine, line)["workload"]["name"] == "oltp_read_only"
    said = f"is not loaded: {INSTALLED}/oltp_common.lua comes first, as in sysbench; set LUA_PATH"
    assert notes(sysbench) == [f"note: mine/oltp_common.lua {said}"]
    placed(folder / "mine", other="require('oltp_common')")
    assert sysbench("mine/other.lua help") == 0
    assert notes(sysbench) == [f"note: mine/oltp_common.lua {said}"]
    monkeypatch.setenv("LUA_PATH", "./?.lua")
    assert sysbench(line) == 1
    assert "mine/oltp_common.lua:1: mine" in sysbench.stdout


REQUIRING = (
    *("oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write"),
    *("oltp_update_index", "oltp_update_non_index", "oltp_write_only"),
    *("select_random_points", "select_random_ranges"),
)


@needs_sysbench
@pytest.mark.parametrize("name", REQUIRING)
def test_a_built_in_test_takes_the_user_s_module(name, folder, monkeypatch, capsys):
    """Where sysbench is not installed, its test is a script of ours for that module."""
    monkeypatch.setenv("LUA_PATH", "./?.lua")
    line = f"{name} --mysql-dry-run --events=3 --output=json --output-file=run.json run"
    counted = []
    for is_own in (False, True):
        if is_own:
            placed(folder, oltp_common=released("oltp_common") + "\nanswer = 42\n")
        assert main(line.split()) == 0, capsys.readouterr().out
        totals = json.loads((folder / "run.json").read_text())["totals"]
        counted.append((totals["events"], totals["others"]))
        assert ("is run itself" in capsys.readouterr().err) == is_own
    assert counted[0] == counted[1]


def test_1_1_has_no_tests_of_before_1_0():
    with pytest.raises(Refusal, match=r"leave --compat=1.1 out"):
        of("tests/db/oltp.lua", version="1.1")
    assert of("/usr/share/nowhere/oltp_read_only.lua", version="1.1") == "oltp_read_only"
