"""sysbench's grammar: words and options, option files, deprecated names, help, `--compat`."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbdyno.sysbench.options import command_line
from dbdyno.sysbench.options.command_line import Setting
from dbdyno.sysbench.options.table import GLOBAL_TABLE, of_test
from dbdyno.sysbench.options.values import Refusal


@pytest.mark.parametrize(
    ("arguments", "words", "typed"),
    [
        (
            ["--threads=4", "oltp_read_write", "--table_size=5", "run", "--x"],
            ("oltp_read_write", "run"),
            {"threads": "4", "table-size": "5", "x": None},
        ),
        (["--table-size=1", "--table_size=2"], (None, None), {"table-size": "2"}),
        (["--mysql-password=a=b c--"], (None, None), {"mysql-password": "a=b c--"}),
        (["-h"], ("-h", None), {}),
        (["--server", "try", "cpu"], ("cpu", None), {"server": "try"}),
        (["--server=a", "cpu", "--server"], ("cpu", None), {"server": None}),
    ],
)
def test_words_and_options_stand_in_any_order_and_the_last_option_wins(arguments, words, typed):
    line = command_line.read_command_line(arguments)
    assert ((line.test, line.command), line.typed) == (words, typed)


def test_nothing_is_abbreviated():
    line = command_line.read_command_line(["oltp_read_only", "--thread=4", "run"])
    with pytest.raises(
        Refusal, match=r"invalid option: --thread=4\n  hint: did you mean --threads"
    ):
        command_line.declared_values(line, of_test("oltp_read_only"), line.typed)


@example(["--", ""])
@given(st.lists(st.text(max_size=10), max_size=6))
def test_any_arguments_are_sorted_or_refused(arguments):
    words = [argument for argument in arguments if not argument.startswith("--")]
    if len(words) > 2 or "--" in arguments[:-1]:
        with pytest.raises(Refusal, match=r"^(Unrecognized|invalid option: -- )"):
            command_line.read_command_line(arguments)
    else:
        line = command_line.read_command_line(arguments)
        assert [word for word in (line.test, line.command) if word is not None] == words


# Files of options: what sysbench reads is read, and what it loses is heeded with a note.


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "sysbench.cnf"
        path.write_text(text)
        return str(path)

    return write


def read(path):
    return [(it.name, it.values) for it in command_line.read_config_file(path)]


def test_lines_have_a_name_and_parts_between_blanks_and_commas(written):
    none = "[client]\n# threads=7\nno equals sign\n"
    text = "mysql_db=shop # the shop\na=1, 2 ,3\nb='x, y' \"#z\"\nc=3#2\nd=\ne=1\r\n"
    assert read(written(none + text)) == [
        ("mysql-db", ("shop",)),
        ("a", ("1", "2", "3")),
        ("b", ("x, y", "#z")),
        ("c", ("3#2",)),
        ("d", ()),
        ("e", ("1",)),
    ]


def test_blanks_around_a_name_are_cut_off_and_remembered(written):
    path = written("threads = 4\ntime=1")
    assert command_line.read_config_file(path) == [
        Setting("threads", ("4",), f"{path}, line 1", True),
        Setting("time", ("1",), f"{path}, line 2", False),
    ]


def test_a_quotation_without_end_is_refused(written):
    with pytest.raises(Refusal, match=r"unexpected EOL on line 2 "):
        command_line.read_config_file(written("time=1\nmysql-user='abc"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(Refusal, match=why):
            command_line.read_config_file(str(path))
    with pytest.raises(Refusal, match="it takes a file's name"):
        command_line.read_config_file(None)


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="'\"", categories=["L", "N", "P"]))


@given(st.lists(PARTS.filter(bool)), st.sampled_from(["'", '"']), st.sampled_from([" ", ",", ", "]))
def test_quoted_parts_come_back_as_they_were(parts, quote, between):
    value = between.join(f"{quote}{part}{quote}" for part in parts)
    setting = command_line._setting(f"name={value} # comment", "f, line 1")
    assert setting == Setting("name", tuple(parts), "f, line 1", False)


@given(st.text(max_size=60))
def test_any_line_is_read_or_refused(line):
    said = ""
    try:
        setting = command_line._setting(line, "f, line 1")
    except Refusal as refusal:
        said, setting = refusal.lines[0], None
    assert said in ("", "unexpected EOL on line 1 (f, line 1)")
    assert setting is None or "=" in line


def test_the_place_on_the_command_line_decides(sysbench, engine, written):
    path = written("threads=4\nmysql-host=a,b\nmysql-password='p w'\ntest=oltp_read_only\n")
    assert sysbench(f"--threads=2 --config-file={path} run") == 0
    assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"
    assert engine.specs[-1]["connections"] == 4
    assert [it["host"] for it in engine.specs[-1]["endpoint"]] == ["a", "b"]
    assert engine.specs[-1]["password"] == "p w"
    assert sysbench(f"--config-file={path} --threads=2 run") == 0
    assert engine.specs[-1]["connections"] == 2
    assert sysbench.stderr == OF_TEST


def test_what_sysbench_loses_is_heeded_with_a_note(sysbench, engine, written):
    path = written("threads = 4\ntables=7\nnonsense=1\n")
    assert sysbench(f"--config-file={path} oltp_read_only run") == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["workload"]["options"]["tables"]) == (4, 7)
    assert sysbench.stderr.splitlines() == [
        f"note: {path}, line 1: sysbench does not see threads for the blanks around it",
        f"note: {path}, line 2: tables is heeded; sysbench heeds no test's own options",
        f"note: {path}, line 3: no option is called nonsense; it is ignored",
    ]
    assert sysbench(f"--config-file={path} oltp_read_only --tables=2 run") == 0
    assert engine.specs[-1]["workload"]["options"]["tables"] == 2
    assert "tables" not in sysbench.stderr


REFUSED = {
    "mysql-dry-run=maybe": "invalid option: --mysql-dry-run=maybe (PATH, line 1)",
    "mysql-password=a,b": "PATH, line 1: mysql-password has several values: put them in quotes",
    "threads=1K": "Invalid value for the 'threads' option: '1K'",
    "config-file=x": "PATH, line 1: a file cannot name another one",
}


@pytest.mark.parametrize("line", REFUSED)
def test_lines_that_cannot_be_meant_are_refused(sysbench, engine, written, line):
    path = written(line)
    assert sysbench(f"--config-file={path} oltp_read_only run") == 1
    assert sysbench.stderr.splitlines()[0] == REFUSED[line].replace("PATH", path)
    assert engine.specs == []


# Deprecated names, with the warnings of the sysbench 1.0.20 binary, on its streams.


OF_TEST = (
    "WARNING: the --test option is deprecated. You can pass a script name or path on the command"
    " line without any options.\n"
)


def test_older_names_win_and_are_warned_of_before_the_banner(sysbench, engine):
    line = "oltp_read_only --threads=9 --max-time=4 --num-threads=3 --max-requests=70 run"
    assert sysbench(line) == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["window_s"], spec["events"]) == (3, 4, 70)
    assert sysbench.stdout.splitlines()[:3] == [
        "WARNING: --num-threads is deprecated, use --threads instead",
        "WARNING: --max-requests is deprecated, use --events instead",
        "WARNING: --max-time is deprecated, use --time instead",
    ]
    assert sysbench.stdout.splitlines()[3].startswith("sysbench 1.0.20")
    assert sysbench.stderr == ""


def test_a_value_that_says_nothing_is_passed_over(sysbench, engine):
    line = "oltp_read_only --threads=9 --num-threads=1 --max-time=0 --max-requests=-1 run"
    assert sysbench(line) == 0
    spec = engine.specs[-1]
    assert (spec["connections"], spec["window_s"], spec["events"]) == (9, 10, 0)
    assert "deprecated" not in sysbench.stdout


def test_the_rate_and_the_distribution_of_0_4_go_by_their_current_names():
    old = {"oltp-dist-type": "uniform", "oltp-dist-pct": "2", "rand-spec-pct": "3"}
    renamed, warnings = command_line.with_current_names({**old, "tx-rate": "100", "rate": "7"})
    assert renamed == {**old, "rand-type": "uniform", "tx-rate": "100", "rate": "100"}
    assert warnings == ["--tx-rate is deprecated, use --rate instead"]


def test_a_test_named_by_option_wins_over_a_word(sysbench, engine):
    for line in (
        "--test=oltp_read_only run",
        "oltp_read_write --test=oltp_read_only run",
        "--test=oltp_write_only --test=oltp_read_only run",
    ):
        assert sysbench(line) == 0, line
        assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"
        assert sysbench.stderr == OF_TEST


def test_a_command_before_the_option_is_still_the_command(sysbench, engine):
    assert sysbench("run --test=oltp_read_only") == 0
    assert engine.specs[-1]["workload"]["name"] == "oltp_read_only"
    note = "note: 'run' is the command; sysbench wants it after --test\n"
    assert sysbench.stderr == OF_TEST + note


def test_a_test_without_a_name_is_none(sysbench):
    assert sysbench("--test oltp_read_only run") == 1
    assert sysbench.stderr.startswith("invalid option: --test\n")
    assert sysbench("--test= oltp_read_only run") == 0
    assert sysbench.stderr == OF_TEST
    assert sysbench("--test=oltp_read_only oltp_read_write run") == 1
    assert sysbench.stderr == "Unrecognized command line argument: run\n"


def test_a_blank_after_the_dashes_is_named(sysbench):
    # as printed in the comparison with MariaDB 10.1.10
    published = "--test=./tests/db/select.lua -- max-requests=2000000000 --max-time=60 run"
    assert sysbench(published) == 1
    assert sysbench.stderr.splitlines()[-2:] == [
        "invalid option: -- max-requests=2000000000",
        "  hint: a blank stands after the dashes; --max-requests=2000000000 may be meant",
    ]


# Help and version, in the layout that people and scripts know.


def test_help_is_shown_whatever_else_is_typed(sysbench):
    assert sysbench("--threads=1K --help oltp_read_write") == 0
    shown = sysbench.stdout
    assert shown.startswith("Usage:\n  sysbench [options]... [testname] [command]\n")
    assert "  --threads=N " in shown
    assert "  --mysql-host=[LIST,...] " in shown
    assert "  oltp_point_select\n" in shown


def test_help_names_drivers_and_tests_where_scripts_look_for_them(sysbench):
    assert sysbench("--help") == 0
    tests = ["fileio", "cpu", "memory", "threads", "mutex"]
    for title, names in (("database drivers", ["mysql", "pgsql"]), ("tests", tests)):
        section = sysbench.stdout.partition(f"\nCompiled-in {title}:\n")[2].partition("\n\n")[0]
        assert [line.split(" ")[2] for line in section.splitlines()] == names
    assert "\nCommands implemented by most tests: prepare run cleanup help\n" in sysbench.stdout


def test_help_of_a_test_lists_its_options(sysbench):
    assert sysbench("oltp_read_write help") == 0
    assert "\noltp_read_write options:\n  --auto_inc[=on|off] " in sysbench.stdout
    assert "  --table_size=N                rows of a table [10000]\n" in sysbench.stdout
    assert sysbench("--test=tests/db/oltp.lua help") == 0
    assert "\noltp.lua options:\n  --init-rng" in sysbench.stdout
    assert sysbench("/usr/share/sysbench/oltp_read_write.lua help") == 0
    assert "\noltp_read_write.lua options:\n  --auto_inc[=on|off] " in sysbench.stdout


def test_help_of_a_random_select_lists_its_own_option_in_its_place(sysbench):
    assert sysbench("select_random_points help") == 0
    own = "\n  --random_points=N             values of k in the list [10]\n  --range_selects"
    assert own in sysbench.stdout
    assert "--delta" not in sysbench.stdout


@pytest.mark.parametrize(("compat", "version"), [("", "1.0.20"), ("--compat=1.1 ", "1.1.0")])
def test_version_is_the_whole_line_that_scripts_compare(sysbench, compat, version):
    assert sysbench(compat + "--version") == 0
    assert sysbench.stdout == f"sysbench {version}\n"


# `--compat=1.1`: defaults, names, what is refused.


def test_the_versions_differ_in_their_defaults(sysbench, engine):
    assert sysbench("oltp_read_only run") == 0
    assert engine.specs[-1]["distribution"]["name"] == "special"
    assert sysbench.stdout.startswith("sysbench 1.0.20 (using dbdyno ")
    assert sysbench("--compat=1.1 oltp_read_only run") == 0
    assert engine.specs[-1]["distribution"] == {"name": "uniform"}
    assert sysbench.stdout.startswith("sysbench 1.1.0 (using dbdyno ")
    assert sysbench.stderr == ""


@pytest.mark.parametrize("value", ["--compat=2", "--compat=", "--compat"])
def test_an_unknown_version_is_refused(sysbench, value):
    assert sysbench(f"{value} oltp_read_only run") == 1
    shown = value.partition("=")[2]
    message = f"FATAL: Invalid value for --compat: '{shown}'. It must be 1.0 or 1.1.\n"
    assert sysbench.stdout == message


REMOVED = {
    "--num-threads=4": "  hint: sysbench 1.1 has --threads",
    "--max_time=4": "  hint: sysbench 1.1 has --time",
    "--max-requests=4": "  hint: sysbench 1.1 has --events",
    "--rand-spec-pct=4": "  hint: sysbench 1.1 has it no more",
    "--test=oltp_read_only": "  hint: sysbench 1.1 has it no more",
}


@pytest.mark.parametrize("option", REMOVED)
def test_what_1_1_removed_is_refused_after_the_banner(sysbench, engine, option):
    assert sysbench(f"oltp_read_only --compat=1.1 {option} run") == 1
    assert sysbench.stderr.splitlines() == [f"invalid option: {option}", REMOVED[option]]
    assert sysbench.stdout.splitlines()[-2].startswith("sysbench 1.1.0 ")
    assert engine.specs == []


def test_special_is_gone_and_gaussian_is_mended(sysbench, engine):
    assert sysbench("oltp_read_only --compat=1.1 --rand-type=special run") == 1
    assert sysbench.stdout.endswith("FATAL: Invalid random numbers distribution: special.\n")
    assert sysbench("oltp_read_only --compat=1.1 --rand-type=gaussian run") == 0
    assert engine.specs[-1]["distribution"] == {"name": "gaussian", "iterations": 12}
    assert sysbench.stderr.startswith("note: --rand-type=gaussian draws a bell curve here")
    assert sysbench("oltp_read_only --rand-type=gaussian run") == 0
    assert sysbench.stderr == ""


def test_what_1_1_added_works_in_both(sysbench, engine):
    line = (
        "oltp_read_only --reconnect=5 --create_table_options=COMMENT='x'"
        " --thread-init-timeout=3 --luajit-cmd=off --rand-type=zipfian "
    )
    for version in ("", "--compat=1.1 "):
        assert sysbench(line + version + "run") == 0
        spec = engine.specs[-1]
        assert (spec["reconnect_every"], spec["connect_timeout_s"]) == (5, 3)
        assert sysbench.stderr.startswith("note: --luajit-cmd has no effect")
        assert sysbench(line + version + "prepare") == 0
        assert engine.specs[-1]["table_options"] == "COMMENT='x'"


def test_both_names_of_the_command_work_in_both(sysbench, engine):
    for word in ("prewarm", "warmup"):
        assert sysbench(f"oltp_read_only {word}") == 0
        assert sysbench.stdout.endswith("Prewarming table sbtest1\n")
        assert sysbench(f"--compat=1.1 oltp_read_only {word}") == 0
        assert sysbench.stdout.endswith("Preloading table sbtest1\n")
    for test in ("bulk_insert", "tests/db/oltp.lua"):
        assert sysbench(f"{test} prewarm") == 1
        assert sysbench.stderr == "Unknown command: prewarm\n"
    sysbench("--compat=1.1 oltp_read_only")
    assert "Supported commands: prepare, warmup, run, cleanup, help" in sysbench.stdout


def test_every_changed_or_removed_option_is_one(sysbench):
    assert set(command_line.REMOVED) - {"test", "tx-rate"} <= set(GLOBAL_TABLE)
    changed = command_line.with_defaults_of(GLOBAL_TABLE, "1.1")
    different = {name for name in changed if changed[name] != GLOBAL_TABLE[name]}
    assert different == {"rand-type", "mysql-ssl"}
