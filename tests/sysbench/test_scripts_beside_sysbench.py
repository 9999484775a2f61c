"""Scripts see what sysbench 1.0.20 shows them: each expected text is that of its binary."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sysbench import Shell

LEGACY = """
print("loaded", num_threads, my_rows, events, mysql_table_engine)
events, output, verbosity = "mine", "mine", function() return "mine" end
function event()
  print(num_threads, threads, my_rows, events, mysql_table_engine, myisam_max_rows)
  print(output, verbosity(), type(table))
end
"""


def test_a_script_without_options_of_its_own_has_all_as_globals(shell: Shell) -> None:
    line = "script.lua --num-threads=2 --my-rows=5 --events=1 --verbosity=0 run"
    printed = shell(line, LEGACY).stdout.splitlines()
    assert printed[0].startswith("WARNING: --num-threads is deprecated")
    assert printed[1:4] == ["loaded\tnil\tnil\tnil\tinnodb"] * 3
    assert printed[4:] == ["2\t2\t5\t1\tinnodb\t1000000", "mine\tmine\ttable"]
    typed = "--mysql-table-engine=myisam --table=t"  # sysbench would lose the library `table`
    printed = shell(f"script.lua {typed} --events=1 --verbosity=0 run").stdout.splitlines()
    assert printed[2:] == ["1\t1\tnil\t1\tmyisam\t1000000", "mine\tmine\ttable"]


DECLARED = """
sysbench.cmdline.options = { table = {"a table", "x"}, my_rows = {"rows", 3} }
function event()
  print(type(table), my_rows, threads, time, sysbench.opt.table, sysbench.opt.my_rows)
  print(sysbench.opt.num_threads, sysbench.opt.threads)
end
"""


def test_a_script_with_options_of_its_own_has_none_as_globals(shell: Shell) -> None:
    line = "script.lua --num-threads=2 --table=t --my-rows=5 --events=1 --verbosity=0 run"
    printed = shell(line, DECLARED).stdout.splitlines()
    assert printed[1:] == ["table\tnil\tnil\tnil\tt\t5", "2\t2"], printed


def test_the_functions_of_0_5_are_in_a_table_too(shell: Shell) -> None:
    script = """
      local names = {}
      for name in pairs(sysbench.db) do table.insert(names, name) end
      table.sort(names)
      function event()
        print(table.concat(names, " "))
        print(sysbench.db.query == db_query, DB_ERROR_FAILED)
        db_connect()
        db_connect()
        db_query("SELECT 1")
        print(db_driver)
      end
    """
    line = "script.lua --mysql-dry-run --events=1 --verbosity=0 run"
    assert shell(line, script).stdout.splitlines() == [
        "DB_ERROR_FAILED DB_ERROR_NONE DB_ERROR_RESTART_TRANSACTION bind_param bind_result"
        " bulk_insert_done bulk_insert_init bulk_insert_next close connect disconnect execute"
        " free_results prepare query store_results",
        "true\t2",
        "mysql",
    ]


RAISING = """
ffi.cdef"int usleep(unsigned int);"
function event() ffi.C.usleep(1000) end
function sysbench.hooks.report_intermediate() error("no line") end
function sysbench.hooks.report_cumulative() error("no report") end
function done() print("done") end
"""


def test_a_report_hook_that_raises_is_told_and_the_run_goes_on(shell: Shell) -> None:
    ended = shell("script.lua --events=1 --verbosity=1 run", RAISING)
    told = "FATAL: `report_cumulative' function failed: script.lua:5: no report"
    assert (ended.returncode, ended.stdout.splitlines()) == (0, [told, "done"]), ended
    ended = shell("script.lua --time=1 --report-interval=0.2 --verbosity=1 run")
    *lines, last, done = ended.stdout.splitlines()
    assert (ended.returncode, last, done) == (0, told, "done"), ended
    assert len(lines) > 2, ended
    assert set(lines) == {"FATAL: `report_intermediate' function failed: script.lua:4: no line"}


CHECKPOINT = """
ffi.cdef"int usleep(unsigned int);"
function event() ffi.C.usleep(1000) end
function sysbench.hooks.report_cumulative(stat)
  print(string.format("%.0f %.0f %d", stat.time_total, stat.time_interval, stat.threads_running))
end
"""


def test_a_report_hook_is_told_the_time_since_the_beginning_at_a_checkpoint(shell: Shell) -> None:
    line = "script.lua --threads=2 --time=2 --report-checkpoints=1 --verbosity=1 run"
    assert shell(line, CHECKPOINT).stdout.splitlines() == ["1 1 2", "2 1 0"]


def test_the_histogram_stands_before_what_a_script_reports(shell: Shell) -> None:
    script = 'function event() end function sysbench.hooks.report_cumulative() print("mine") end'
    line = "--events=1 --histogram run"
    for typed, next_line in (("script.lua", "mine"), ("cpu --cpu-max-prime=10", "CPU speed:")):
        lines = shell(f"{typed} {line}", script).stdout.splitlines()
        at = lines.index("Latency histogram (values are in milliseconds)")
        assert lines[at + 2].endswith(f" |{'*' * 40} 1"), lines
        assert lines[at + 3 : at + 5] == [" ", next_line], lines


VALIDATED = """
sysbench.cmdline.options = {
  even = {"an even number", 3, sysbench.cmdline.ARG_INT, function(_, text)
    return tonumber(ffi.string(text)) % 2 == 0
  end},
  whole = {"any number", nil, sysbench.cmdline.ARG_INT, function() return false end},
}
function event() print(sysbench.opt.even, sysbench.opt.whole) end
"""


def test_a_validator_says_whether_a_value_will_do(shell: Shell) -> None:
    line = "script.lua --events=1 --verbosity=0"
    assert shell(f"{line} run", VALIDATED).stdout == "3\t0\n"
    assert shell(f"{line} --even=8 run").stdout == "8\t0\n"
    refused = shell(f"{line} --even=7 run")
    assert (refused.returncode, refused.stderr) == (1, "invalid option: --even=7\n")


@pytest.mark.parametrize("typed", ["inf", "-nan", "1e400"])
def test_a_number_that_is_not_finite_is_refused_in_words(shell: Shell, typed: str) -> None:
    script = 'sysbench.cmdline.options = { share = {"a share", 0.5} } function event() end'
    refused = shell(f"script.lua --events=1 --verbosity=0 --share={typed} run", script)
    assert (refused.returncode, refused.stderr) == (1, "share: a number that is not finite\n")


def test_a_script_in_another_encoding_is_refused_unless_that_is_a_comment(
    shell: Shell, tmp_path: Path
) -> None:
    script = tmp_path / "script.lua"
    script.write_bytes(b"-- f\xfcr\nfunction event() print('caf\xc3\xa9') end\n")
    assert shell(f"{script} --events=1 --verbosity=0 run").stdout == "caf\u00e9\n"
    script.write_bytes(b"\nfunction event() print('caf\xe9') end\n")
    ended = shell(f"{script} --events=1 --verbosity=0 run")
    assert ended.returncode == 1
    assert "script.lua:2: not UTF-8; convert the script, as by iconv" in ended.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{ foo = {nil, 3} }", "nil description for option foo"),
        ("'text'", "wrong type for sysbench.cmdline.options: string"),
    ],
)
def test_what_is_wrong_with_a_table_of_options_is_told(
    shell: Shell, options: str, message: str
) -> None:
    ended = shell("script.lua --verbosity=0 help", f"sysbench.cmdline.options = {options}")
    function = "`sysbench.cmdline.read_cmdline_options' function failed"
    begin = f'FATAL: {function}: [string "sysbench.cmdline.lua"]:'
    assert ended.returncode == 1
    assert ended.stdout.startswith(begin), ended
    assert ended.stdout.endswith(f": {message}\n"), ended


def test_a_help_of_ones_own_prints_the_options_as_sysbench_does(shell: Shell) -> None:
    script = """
      sysbench.cmdline.options = { n = {"a number", 0.1}, text = {"a text", ""} }
      function help()
        print(sysbench.cmdline.ARG_INT, sysbench.cmdline.call_command("none"))
        sysbench.cmdline.print_test_options()
        print("end")
      end
    """
    assert shell("script.lua --verbosity=0 help", script).stdout.splitlines() == [
        "2\tfalse",
        "  --n=N         a number [0.1]",
        "  --text=STRING a text []",
        "",
        "end",
    ]


def test_luajit_takes_several_settings_and_no_unknown_command(shell: Shell) -> None:
    script = """
      local flags = {}
      for _, flag in ipairs({ jit.status() }) do flags[flag] = true end
      print(flags.fold, flags.loop, flags.cse)
    """
    line = "--verbosity=0 script.lua"
    assert shell(f"--luajit-cmd=opt=3 {line}", script).stdout == "true\ttrue\ttrue\n"
    assert shell(f"--luajit-cmd {line}", "print(jit.status())").stdout.startswith("true\t")
    assert shell(f"--luajit-cmd=off {line}").stdout.startswith("false\t")
    ended = shell(f"--luajit-cmd=opt=3,-loop,hotloop=70,-cse {line}", script)
    assert (ended.returncode, ended.stdout) == (0, "true\tnil\tnil\n"), ended
    unknown = shell(f"--luajit-cmd=nosuch {line}")
    told = "FATAL: unknown luaJIT command or jit.* modules not installed\n"
    assert (unknown.returncode, unknown.stdout) == (1, told), unknown


def test_a_script_may_wrap_the_loop_of_its_threads(shell: Shell) -> None:
    script = """
      local loop = thread_run
      function thread_run(thread) print("begins", thread) loop(thread) print("ends", n) end
      function event() n = (n or 0) + 1 end
    """
    ended = shell("script.lua --events=3 --verbosity=0 run", script)
    assert ended.stdout == "begins\t0\nends\t3\n", ended


def test_an_event_is_looked_for_after_init_and_missed_by_the_file_s_name(shell: Shell) -> None:
    script = "function init() print('init') end function thread_run() end"
    ended = shell("./script.lua --verbosity=0 run", script)
    told = "FATAL: cannot find the event() function in script.lua"
    assert (ended.returncode, ended.stdout) == (1, f"init\n{told}\n"), ended


def test_a_run_that_could_not_begin_is_not_done(shell: Shell) -> None:
    script = "function thread_init() error('no') end function event() end done = print"
    ended = shell("script.lua --verbosity=0 run", script)
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "FATAL: `thread_init' function failed: script.lua:1: no",
        "FATAL: Thread initialization failed!",
    ]


@pytest.mark.parametrize(("function", "status"), [("thread_done", 0), ("done", 0), ("event", 1)])
def test_an_error_after_the_last_event_is_printed_and_fails_nothing(
    shell: Shell, function: str, status: int
) -> None:
    """As in sysbench, whose exit status is that of the events."""
    script = "function event() end function done() print('done') end\n"
    ended = shell("script.lua --events=2 run", f"{script}function {function}() error('no') end")
    name = "thread_run" if function == "event" else function
    told = f"FATAL: `{name}' function failed: script.lua:2: no\n"
    assert ended.returncode == status, ended
    assert told in ended.stdout
    assert ("total number of events:              2" in ended.stdout) == (status == 0)
    if function == "thread_done":
        assert ended.stdout.index(told) < ended.stdout.index("General statistics:")
    if function != "done":
        assert ended.stdout.endswith("done\n"), ended
        assert ended.stdout.count("FATAL") == 1


NO_NUMBER = "(cannot convert 'nil' to 'unsigned int')"
WRONG_ARGUMENTS = {
    "sysbench.rand.uniform(1, nil)": f"bad argument #2 to 'uniform' {NO_NUMBER}",
    "sysbench.rand.default(nil, 1)": f"bad argument #1 to 'default' {NO_NUMBER}",
    "sysbench.rand.string(7)": "bad argument #1 to 'string' (string expected, got number)",
    "con:query(nil)": "bad argument #1 to 'query' (string expected, got nil)",
    "con:query_row({})": "bad argument #1 to 'query_row' (string expected, got table)",
    "con:prepare()": "bad argument #1 to 'prepare' (string expected, got nil)",
    "con:bulk_insert_init()": "bad argument #1 to 'bulk_insert_init' (string expected, got nil)",
    "con:bulk_insert_next()": "bad argument #1 to 'bulk_insert_next' (string expected, got nil)",
    "con.query('SELECT 1')": "calling 'query' on bad self (sql_connection expected, got string)",
    "param:set('x')": "bad argument #1 to 'set' (number expected, got string)",
    "db_query(nil)": "bad argument #1 to 'db_query' (string expected, got nil)",
}


def test_a_wrong_argument_is_named_by_its_number_and_its_line(shell: Shell) -> None:
    calls = "\n".join(f"tell(function() {call} end)" for call in WRONG_ARGUMENTS)
    script = f"""
      function tell(call) print(select(2, pcall(call))) end
      function thread_init()
        con = sysbench.sql.driver():connect()
        param = con:prepare("SELECT ?"):bind_create(sysbench.sql.type.INT)
      end
      function event()
{calls}
      end
    """
    ended = shell("script.lua --mysql-dry-run --verbosity=0 --events=1 run", script)
    told = [f"script.lua:{line}: {words}" for line, words in enumerate(WRONG_ARGUMENTS.values(), 8)]
    assert ended.stdout.splitlines() == told, ended


def test_cpu_refuses_to_look_for_primes_below_nothing(shell: Shell) -> None:
    zero = shell("cpu --cpu-max-prime=0 run")
    assert zero.returncode == 1
    assert zero.stdout.endswith("\n\nFATAL: Invalid value of cpu-max-prime: 0.\n"), zero
    word = shell("cpu --cpu-max-prime=x run")
    told = "Invalid value for the 'cpu_max_prime' option: 'x'\n"
    assert (word.returncode, word.stderr) == (1, told)


def test_a_module_of_the_user_s_wins_over_ours(shell: Shell, tmp_path: Path) -> None:
    script = "require('oltp_common') function event() print(answer) end"
    line = "script.lua --events=1 --verbosity=0 run"
    (tmp_path / "oltp_common.lua").write_text("answer = 'mine'")
    assert shell(line, script).stdout == "mine\n"
    (tmp_path / "more").mkdir()
    (tmp_path / "more/oltp_common.lua").write_text("answer = 'more'")
    path = "package.path = './more/?.lua;' .. package.path "
    assert shell(line, path + script).stdout == "more\n"
    (tmp_path / "oltp_common.lua").write_text("answer =")
    broken = shell(line, script)
    told = "error loading module 'oltp_common' from file './oltp_common.lua':\n"
    assert broken.returncode == 1
    assert told in broken.stdout, broken
    (tmp_path / "cpu.lua").write_text("error('no test of sysbench')")
    assert shell("cpu --cpu-max-prime=10 --events=1 run").returncode == 0
