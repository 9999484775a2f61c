"""Every option of the persona changes what is run or printed, or a note or refusal names it."""

from __future__ import annotations

import json

import pytest

from dbdyno.sysbench.entry import main
from dbdyno.sysbench.options.table import GLOBAL_TABLE, LEGACY_OPTIONS, OWN, of_test
from dbdyno.sysbench.options.values import boolean

BASE = "--mysql-host=db --time=10 "
VALUES = {
    **{"forced-shutdown": "5", "arrival": "uniform", "think-time": "5", "compat": "1.1"},
    **{"rand-type": "uniform", "percentile": "50", "percentile-format": "joined"},
    **{"output": "json", "output-file": "run.json", "db-driver": "pgsql", "db-ps-mode": "disable"},
    **{"mysql-ssl": "required", "luajit-cmd": "off", "verbosity": "0", "config-file": "lines.cnf"},
    **{"mysql-compression-algorithms": "zlib,zstd", "oltp-test-mode": "simple"},
    **{"oltp-nontrx-mode": "insert", "oltp-reconnect-mode": "transaction"},
    **{"mysql-engine-trx": "no", "oltp-dist-type": "uniform", "pgsql-sslmode": "require"},
    **{"mysql-table-engine": "myisam", "report-checkpoints": "1", "rand-zipfian-exp": "0.5"},
    **{"thread-stack-size": "1M", "mysql-ignore-errors": "1"},
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.cnf").write_text("threads=3\n")
    return tmp_path


def typed(option):
    """The option with another value than its default."""
    name = option.name.replace("_", "-")
    if option.kind == "BOOL":
        return f"--{name}={'off' if boolean(option.default or 'off') else 'on'}"
    value = VALUES.get(name, "x" if option.kind in ("STRING", "LIST") else "3")
    return f"--{name}={value}"


def outcome(sysbench, engine, line):
    """Everything that a line leads to, without seeds of chance."""
    seen = []
    for command in ("prepare", "run"):
        engine.specs.clear()
        status = sysbench(f"{line} {command}")
        specs = [dict(spec) for spec in engine.specs]
        for spec in specs:
            if spec.get("seeding") == "streams":
                del spec["seed"]
        seen.append((status, specs, sysbench.stdout.replace(command, "")))
    return seen


def has_effect(sysbench, engine, test, option):
    if outcome(sysbench, engine, f"{BASE}{test}") != outcome(
        sysbench, engine, f"{BASE}{test} {option}"
    ):
        return True
    return f"{option.partition('=')[0]}" in sysbench.stderr


@pytest.mark.parametrize("name", sorted(GLOBAL_TABLE))
def test_no_general_option_is_dropped(sysbench, engine, name):
    assert has_effect(sysbench, engine, "oltp_read_write", typed(GLOBAL_TABLE[name]))


@pytest.mark.parametrize("test", ["oltp_read_write", *OWN, "--test=oltp.lua", "--test=oltp"])
def test_no_option_of_a_test_is_dropped(sysbench, engine, test):
    options = LEGACY_OPTIONS if test.startswith("--test") else of_test(test)
    dropped = [it.name for it in options if not has_effect(sysbench, engine, test, typed(it))]
    assert dropped == []


SILENT = {
    # options that shape statements and not their number
    **{"oltp_read_only": {"range-size"}, "oltp_read_write": {"range-size"}},
}


@pytest.mark.parametrize(
    "test",
    [
        *("oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select"),
        *("oltp_update_index", "oltp_update_non_index", "oltp_delete", "oltp_insert"),
        *("select_random_points", "select_random_ranges"),
    ],
)
def test_an_option_without_effect_is_told_and_no_other(test, folder, capsys):
    def statements(option):
        line = f"{test} --mysql-dry-run --events=1 --output=json --output-file=r.json {option} run"
        assert main(line.split()) == 0, capsys.readouterr().out
        totals = json.loads((folder / "r.json").read_text())["totals"]
        return totals["others"], capsys.readouterr().err

    usual, quiet = statements("")
    assert quiet == ""
    names = ("point-selects", "simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges")
    names += ("index-updates", "non-index-updates", "delete-inserts", "range-size")
    for option in [*(f"--{name}=2" for name in names), "--skip-trx", "--range-selects=off"]:
        name = option.partition("=")[0]
        others, said = statements(option)
        is_silent = name.removeprefix("--") in SILENT.get(test, ())
        assert (others != usual) or (is_silent and not said) or f"{name}: no effect" in said, option
        assert others == usual or said == "", option


NOTED = {
    "oltp_read_only --mysql-ssl-ca=ca.pem --mysql-ssl-cipher=x": (
        "--mysql-ssl-ca, --mysql-ssl-cipher: no effect without --mysql-ssl: connections are not"
        " encrypted"
    ),
    "oltp_read_only --mysql-ssl=disabled --mysql-ssl-key=k": (
        "--mysql-ssl-key: no effect without --mysql-ssl: connections are not encrypted"
    ),
    "oltp_read_only --mysql-compression-algorithms=zstd": (
        "--mysql-compression-algorithms: no effect without --mysql-compression"
    ),
    "oltp_read_only --mysql-socket=/s --mysql-host=h --mysql-port=7": (
        "--mysql-host, --mysql-port: no effect beside --mysql-socket"
    ),
    "oltp_read_only --pgsql-host=h": "--pgsql-host: no effect with --db-driver=mysql",
    "oltp_read_only --db-driver=pgsql --mysql-host=h --mysql_storage_engine=x": (
        "--mysql-host, --mysql-storage-engine: no effect with --db-driver=pgsql"
    ),
    "oltp_read_only --rand-type=uniform --rand-spec-pct=2": (
        "--rand-spec-pct: no effect with --rand-type=uniform"
    ),
    "--test=oltp.lua --oltp-dist-type=pareto --oltp-dist-pct=2": (
        "--oltp-dist-pct: no effect with --rand-type=pareto"
    ),
    "oltp_read_only --forced-shutdown=5 --time=0 --events=1": (
        "--forced-shutdown: no effect without --time"
    ),
    "oltp_read_only --report-checkpoints=2,10,20 --time=10": (
        "--report-checkpoints: no effect at 10, 20 s, when the run is over"
    ),
    "oltp_read_only --histogram --output=json": (
        "--histogram: no effect without a text: give --output-file too"
    ),
    "--test=oltp.lua --oltp-reconnect=on": (
        "--oltp-reconnect is of sysbench 0.4's --test=oltp: no effect here"
    ),
    "--test=db/select.lua --oltp-point-selects=5": "--oltp-point-selects: no effect on select",
    "--test=oltp --oltp-test-mode=simple --oltp-sum-ranges=5": (
        "--oltp-sum-ranges: no effect on oltp"
    ),
    "--test=oltp --oltp-nontrx-mode=insert": "--oltp-nontrx-mode: no effect on oltp",
    "--test=oltp.lua --rand-init=off": "--rand-init: no effect in dbdyno",
    "bulk_insert --table-size=5": "--table-size: no effect on bulk_insert",
}


@pytest.mark.parametrize("line", NOTED)
def test_the_note_names_the_reason(sysbench, engine, line):
    assert sysbench(f"{line} run") == 0
    assert f"note: {NOTED[line]}\n" in sysbench.stderr
    assert "reconnect_every" not in engine.specs[-1]


def test_a_default_and_a_word_for_it_are_no_change(sysbench, engine):
    line = "oltp_read_only --range-selects=1 --index-updates=1.0 --rand-pareto-h=0.20 --validate=0"
    assert sysbench(f"{line} --mysql-ssl=off run") == 0
    assert sysbench.stderr == ""


def test_options_of_events_are_judged_by_a_run(sysbench, engine):
    assert sysbench("oltp_read_only --index-updates=5 prepare") == 0
    assert sysbench.stderr == ""


def test_the_seed_of_0_4_is_the_seed(sysbench, engine):
    assert sysbench("--test=oltp --seed-rng=7 --rand-init=on run") == 0
    assert (engine.specs[-1]["seed"], engine.specs[-1]["seeding"]) == (7, "sysbench")
    assert "note" not in sysbench.stderr


def test_tables_of_redshift_are_refused(sysbench, engine):
    for command in ("prepare", "run"):
        assert sysbench(f"--test=oltp.lua --pgsql-variant=redshift {command}") == 1
        assert "--pgsql-variant=redshift: this version" in sysbench.stderr
