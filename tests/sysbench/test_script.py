"""Lua scripts through the command line, without a server: what sysbench's own documents promise.

Each test runs the program as a shell would, because order and stream of the lines are part of it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from support.lab_process import until
from support.source import ROOT
from support.sysbench import ENTRY, Ended, Shell

NUMBER = r"[0-9]+\.[0-9]{2}"


@contextmanager
def running(
    folder: Path, script: str, words: str = "--time=1 run"
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A script at work, once it has printed "here", and what else it prints."""
    (folder / "script.lua").write_text(script)
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "script.lua", *words.split()],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lab")},
    ) as process:
        assert process.stdout is not None
        assert any(line == "here\n" for line in process.stdout)
        yield process, process.stdout


def after_banner(ended: Ended) -> str:
    """Stdout behind the banner and its blank line."""
    banner, _, rest = ended.stdout.partition("\n\n")
    assert banner.startswith("sysbench 1."), ended
    return rest


LIFE = """
for _, name in ipairs({"init", "prepare", "cleanup", "help", "done"}) do
  _G[name] = function(id) print(name, id) end
end
for _, name in ipairs({"thread_init", "event", "thread_done"}) do
  _G[name] = function(id) print(name, id, sysbench.tid) end
end
"""


def test_the_life_of_a_run(shell: Shell) -> None:
    ended = shell("script.lua --verbosity=0 --events=2 run", LIFE)
    assert ended.returncode == 0, ended
    thread = ["thread_init", "event", "event", "thread_done"]
    lines = ["init\tnil", *(f"{name}\t0\t0" for name in thread), "done\tnil"]
    assert ended.stdout.splitlines() == lines


@pytest.mark.parametrize("command", ["prepare", "cleanup", "help"])
def test_a_command_calls_the_function_of_its_name(shell: Shell, command: str) -> None:
    ended = shell(f"script.lua --verbosity=0 {command}", LIFE)
    assert (ended.returncode, ended.stdout) == (0, f"{command}\tnil\n")


def test_a_report_without_a_database_has_no_statements(shell: Shell) -> None:
    ended = shell(
        "script.lua --time=2 --report-interval=1 run",
        "print('top level')\nfunction event() ffi.C.usleep(1000) end\n"
        "ffi.cdef'int usleep(unsigned int);'",
    )
    assert ended.returncode == 0, ended
    lines = after_banner(ended).splitlines()
    assert lines[0] == "top level"
    assert "SQL statistics:" not in lines
    assert any(
        re.fullmatch(rf"\[ 1s \] thds: 1 eps: {NUMBER} lat \(ms,95%\): {NUMBER}", line)
        for line in lines
    ), lines
    assert lines[lines.index("General statistics:") - 1] == ""
    # The main state, the worker's, and that of the reports.
    assert lines.count("top level") == 3


@pytest.mark.parametrize(
    ("returned", "events"), [("0", 1), ("true", 1), ("{}", 1), ("false", 2), ("nil", 2)]
)
def test_an_event_that_returns_something_ends_its_thread(
    shell: Shell, returned: str, events: int
) -> None:
    script = f"function event() print('event'); return {returned} end"
    ended = shell("script.lua --verbosity=0 --events=2 run", script)
    assert ended.stdout == "event\n" * events, ended


def test_an_event_that_ends_its_thread_is_not_counted(shell: Shell) -> None:
    script = "function event() n = (n or 0) + 1; return n == 3 end"
    ended = shell("script.lua --time=5 run", script)
    assert "total number of events:              2\n" in ended.stdout, ended


MISTAKES = {
    "foo\n": "script.lua:2: '=' expected near '<eof>'",
    "function foo() end": "cannot find the event() function in script.lua",
    "\nfunction event() error('no') end": "`thread_run' function failed: script.lua:2: no",
    "function event() error({}) end": "`thread_run' function failed: (not a string)",
}


@pytest.mark.parametrize("script", MISTAKES)
def test_mistakes_are_told_with_their_place(shell: Shell, script: str) -> None:
    ended = shell("script.lua --verbosity=0 run", script)
    assert (ended.returncode, ended.stdout) == (1, f"FATAL: {MISTAKES[script]}\n")


OPTIONS = """
sysbench.cmdline.options = {
  text = {"a text"},
  named = {"with a default", "x"},
  flag = {"a switch", false},
  whole = {"a number", nil, sysbench.cmdline.ARG_INT},
  part = {"a part", 0.5},
  list = {"a list", {"a", "b"}},
  ["dash-ed"] = {"with a dash", "d"},
}
function event()
  local o = sysbench.opt
  print(o.text, o.named, o.flag, o.whole, o.part, table.concat(o.list, "+"), o.dash_ed, o.threads)
end
"""


def test_options_of_a_script_have_its_types_and_defaults(shell: Shell) -> None:
    line = "script.lua --verbosity=0 --events=1"
    assert shell(f"{line} run", OPTIONS).stdout == "\tx\tfalse\t0\t0.5\ta+b\td\t1\n"
    typed = "--text=t --flag --whole=7 --part=1e2 --list=c,,d --dash_ed=e"
    assert shell(f"{line} {typed} run").stdout == "t\tx\ttrue\t7\t100\tc+d\te\t1\n"
    unknown = shell(f"{line} --tetx=1 run")
    assert unknown.returncode == 1
    assert unknown.stderr.splitlines()[0] == "invalid option: --tetx=1"


def test_help_lists_the_options_by_name(shell: Shell) -> None:
    ended = shell("script.lua help", OPTIONS.partition("function")[0])
    assert after_banner(ended).splitlines() == [
        "script.lua options:",
        "  --dash-ed=STRING  with a dash [d]",
        "  --flag[=on|off]   a switch [off]",
        "  --list=[LIST,...] a list [a,b]",
        "  --named=STRING    with a default [x]",
        "  --part=N          a part [0.5]",
        "  --text=STRING     a text",
        "  --whole=N         a number",
        "",
    ]
    none = shell("script.lua help", "")
    assert none.returncode == 1
    assert none.stderr == "'script.lua' test does not implement the 'help' command.\n"
    wrong = shell("script.lua help", "sysbench.cmdline.options = { {} }")
    assert re.search(
        r"FATAL: `sysbench.cmdline.read_cmdline_options' function failed: "
        r'\[string "sysbench.cmdline.lua"\]:[0-9]+: wrong table structure in '
        r"sysbench.cmdline.options\n",
        wrong.stdout,
    ), wrong


COMMANDS = """
function one() print("one", sysbench.tid, sysbench.opt.threads) end
function no() return false end
function before() print("before", sysbench.tid) end
function broken() error("is there", 0) end
function many() for i = 1, 500 do print("thread", sysbench.tid, nil) end end
sysbench.cmdline.commands = {
  one = { one }, all = { one, sysbench.cmdline.PARALLEL_COMMAND }, no = { no },
  many = { many, sysbench.cmdline.PARALLEL_COMMAND },
  both = { one, sysbench.cmdline.PARALLEL_COMMAND, before = before },
  none = { one, sysbench.cmdline.PARALLEL_COMMAND, before = broken },
}
"""


def test_commands_of_a_script(shell: Shell) -> None:
    once = shell("--threads=2 script.lua one", COMMANDS)
    assert (once.returncode, after_banner(once)) == (0, "one\t0\t2\n")
    every = shell("--threads=2 script.lua all")
    assert after_banner(every).splitlines()[:2] == ["Initializing worker threads...", ""]
    assert sorted(after_banner(every).splitlines()[2:]) == ["one\t0\t2", "one\t1\t2"]
    many = Counter(after_banner(shell("--threads=4 script.lua many")).splitlines()[2:])
    assert many == {f"thread\t{thread}\tnil": 500 for thread in range(4)}  # no line in pieces
    assert shell("script.lua no").returncode == 1
    unknown = shell("script.lua other")
    assert (unknown.returncode, unknown.stderr) == (1, "Unknown command: other\n")


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_command_does_before_is_done_once_and_ends_it_if_it_fails(
    shell: Shell, threads: int
) -> None:
    both = shell(f"--verbosity=0 --threads={threads} script.lua both", COMMANDS).stdout.splitlines()
    assert both[0] == "before\t0"
    assert sorted(both[1:]) == [f"one\t{thread}\t{threads}" for thread in range(threads)]
    none = shell(f"--threads={threads} script.lua none")
    assert none.returncode == 1, none
    assert "is there" in none.stdout
    assert "one\t" not in none.stdout


def test_a_script_comes_from_the_standard_input(shell: Shell) -> None:
    ended = shell("--unknown", stdin="print('hello', sysbench.cmdline.script_path)")
    assert (ended.returncode, after_banner(ended)) == (0, "hello\tnil\n")
    assert shell("-", stdin="error('no')").returncode == 1


def test_warnings_stand_before_what_a_script_prints(shell: Shell) -> None:
    script = "function event() print(thread_id, test) end"
    ended = shell("--verbosity=0 --max-requests=1 --test=script.lua run", script)
    assert ended.stdout.splitlines() == [
        "WARNING: --max-requests is deprecated, use --events instead",
        "0\tscript.lua",
    ]
    assert ended.stderr.startswith("WARNING: the --test option is deprecated.")


def test_modules_are_found_beside_the_script(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine.lua").write_text("function event() print('mine') end")
    assert shell("mine --verbosity=0 --events=1 run").stdout == "mine\n"
    missing = shell("script.lua run", "require('there_is_none')")
    assert missing.returncode == 1
    assert "module 'there_is_none' not found" in missing.stdout


RANDOM = """
function event()
  local r = sysbench.rand
  local first = r.uniform(1, 1000000)
  print(first, r.string("ab-##-@@"), r.unique() ~= r.unique(), r.uniform_double() < 1)
  assert(r.default(3, 3) == 3 and r.gaussian(5, 5) == 5 and r.pareto(7, 7) == 7)
  assert(r.special(9, 9) == 9 and r.zipfian(1, 1) == 1)
  assert(tostring(r.uniform_uint64()):match("^%d+ULL$"))
  local names = {}
  for name in pairs(r) do names[#names + 1] = name end
  table.sort(names)
  print(table.concat(names, " "))
end
"""


def test_random_numbers_are_those_of_sysbench(shell: Shell) -> None:
    ended = shell("script.lua --verbosity=0 --events=1 --rand-seed=7 run", RANDOM)
    first, names = ended.stdout.splitlines()
    # Worker 0 after srandom(7), from a run of sysbench 1.0.20.
    assert re.fullmatch(r"539748\tab-[0-9]{2}-[a-z]{2}\ttrue\ttrue", first), ended
    assert names == (
        "default gaussian pareto special string uniform uniform_double uniform_uint64 unique"
    )


def test_sysbench_takes_a_number_for_its_histogram_after_each_event(shell: Shell) -> None:
    """So the second event draws the third number of the thread's sequence, the third the fifth."""
    script = """
      function event()
        for _ = 1, sysbench.opt.events == 1 and 5 or 1 do
          print(sysbench.rand.uniform(1, 1000000))
        end
      end
    """
    line = "script.lua --verbosity=0 --rand-seed=7"
    sequence = shell(f"{line} --events=1 run", script).stdout.splitlines()
    assert shell(f"{line} --events=3 run").stdout.splitlines() == sequence[::2]


def test_a_histogram_prints_as_sysbench_does(shell: Shell) -> None:
    script = """
      h = sysbench.histogram.new(1000, 1, 10)
      for _, value in ipairs({1, 2, 0, 10, 100, 5.001}) do h:update(value) end
      h:print()
    """
    assert after_banner(shell("", stdin=script)).splitlines() == [
        "       value  ------------- distribution ------------- count",
        "       1.000 |**************************************** 2",
        "       2.001 |********************                     1",
        "       4.997 |********************                     1",
        "      10.000 |**************************************** 2",
    ]


def test_hooks_print_the_reports(shell: Shell, tmp_path: Path) -> None:
    script = """
      ffi.cdef[[int usleep(unsigned int);]]
      function event() ffi.C.usleep(1000) end
      sysbench.hooks.report_intermediate = sysbench.report_%s
      sysbench.hooks.report_cumulative = sysbench.report_%s
    """
    kinds = ("default", "csv", "json")
    for kind in kinds:
        (tmp_path / f"report_{kind}.lua").write_text(script % (kind, kind))
    line = "--time=3 --report-interval=2 --verbosity=1 run"
    with ThreadPoolExecutor() as pool:
        ended = pool.map(lambda kind: shell(f"report_{kind}.lua {line}"), kinds)
        default, csv, json_text = (one.stdout for one in ended)
    plain, table = default.splitlines(), csv.splitlines()
    assert re.fullmatch(
        rf"\[ 2s \] thds: 1 tps: {NUMBER} qps: 0.00 \(r/w/o: 0.00/0.00/0.00\)"
        rf" lat \(ms,95%\): {NUMBER} err/s 0.00 reconn/s: 0.00",
        plain[0],
    ), plain
    assert plain[1].startswith("[ 3s ] thds: 0 tps: ")
    assert re.fullmatch(rf"2,1,{NUMBER},0.00,0.00,0.00,0.00,{NUMBER},0.00,0.00", table[0]), table
    assert json_text.count('"tps"') == 2
    assert json_text.count("]") == 2


def test_threads_run_at_the_same_time(shell: Shell) -> None:
    script = "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(50000) end"
    ended = shell("script.lua --threads=8 --time=1 run", script)
    found = re.search(r"total number of events: +([0-9]+)", ended.stdout)
    assert found, ended
    # One after the other would make 20.
    assert int(found[1]) > 80, ended


def test_a_thread_can_have_a_loop_of_its_own(shell: Shell) -> None:
    script = """
      ffi.cdef[[bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);]]
      function thread_run(id)
        while ffi.C.sb_more_events(id) do
          ffi.C.sb_event_start(id)
          event(id)
          ffi.C.sb_event_stop(id)
        end
      end
      function event() n = (n or 0) + 1 end
      function thread_done() print("did", n) end
    """
    ended = shell("script.lua --events=5 run", script)
    assert "did\t5\n" in ended.stdout, ended
    assert "total number of events:              5\n" in ended.stdout
    plain = shell("script.lua --verbosity=0 run", "function event() end thread_run = print")
    assert plain.stdout == "0\n", plain


def test_events_may_have_names_that_are_words(shell: Shell) -> None:
    told = shell("script.lua --events=9 run", "function event() sysbench.event_kind('read') end")
    assert "total number of events:              9\n" in told.stdout, told
    wrong = "function event() sysbench.event_kind('two words') end"
    ended = shell("script.lua --events=1 run", wrong)
    assert "wanted up to 63 letters, digits and _, and at most 256 names; found two words" in (
        ended.stdout + ended.stderr
    )


def test_a_loop_of_ones_own_waits_in_the_queue_of_the_rate(shell: Shell) -> None:
    script = """
      ffi.cdef[[bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);
                int usleep(unsigned int);]]
      function thread_run(id)
        while ffi.C.sb_more_events(id) do
          ffi.C.sb_event_start(id)
          ffi.C.usleep(100000)
          ffi.C.sb_event_stop(id)
        end
      end
      function event() end
    """
    ended = shell("script.lua --rate=20 --time=3 run", script)
    longest = re.search(r"max: +([0-9.]+)", ended.stdout)
    assert longest, ended
    # Twice as many are due as can be done: the last ones have waited for more than a second.
    assert float(longest[1]) > 1000, ended


def test_an_interrupt_of_init_ends_the_run(shell: Shell, tmp_path: Path) -> None:
    script = """
      ffi.cdef"int usleep(unsigned int);"
      function init()
        print("here")
        io.stdout:flush()
        for _ = 1, 600 do ffi.C.usleep(50000) end
      end
      function event() end
    """
    with running(tmp_path, script) as (process, printed):
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 128 + signal.SIGINT
        assert "Threads started!" not in printed.read()


DATABASE = """
function thread_init()
  con = sysbench.sql.driver():connect()
end
function event()
  con:query("SELECT 1")
  con:query("UPDATE t SET a = 1")
end
"""


def test_a_dry_run_needs_no_server(shell: Shell) -> None:
    ended = shell("script.lua --mysql-dry-run --events=3 --threads=2 run", DATABASE)
    assert ended.returncode == 0, ended
    assert "        other:                           6\n" in ended.stdout, ended


def test_the_statements_of_a_command_leave_nothing_behind(shell: Shell) -> None:
    script = """
      local function memory_kb()
        for line in io.lines("/proc/self/status") do
          local found = line:match("^VmRSS:%s+(%d+)")
          if found then return tonumber(found) end
        end
      end
      function prepare()
        local con = sysbench.sql.driver():connect()
        con:query("SELECT 1")
        local before = memory_kb()
        for _ = 1, 1000000 do con:query("SELECT 1") end
        print(memory_kb() - before)
      end
    """
    ended = shell("script.lua --mysql-dry-run --verbosity=0 prepare", script)
    assert int(ended.stdout) < 10_000, ended


def test_a_server_that_is_not_there_is_told_as_sysbench_does(shell: Shell) -> None:
    line = "script.lua --mysql-host=127.0.0.1 --mysql-port=1 --verbosity=0 run"
    ended = shell(line, DATABASE)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert lines[0] == (
        "FATAL: unable to connect to MySQL server on host '127.0.0.1', port 1, aborting..."
    )
    assert lines[1].startswith("FATAL: error 2003: ")
    assert lines[2:] == [
        "FATAL: `thread_init' function failed: script.lua:3: connection creation failed",
        "FATAL: Thread initialization failed!",
    ]


def test_a_host_without_an_address_is_told_in_the_words_of_each_library(shell: Shell) -> None:
    hosts = "--mysql-host=a..b --pgsql-host=a..b --pgsql-sslmode=disable"
    line = f"script.lua {hosts} --verbosity=0 run"
    mysql = shell(line, DATABASE).stdout.splitlines()
    assert mysql[1] == "FATAL: error 2005: Unknown MySQL server host 'a..b' (0)", mysql
    told, *more = shell(f"--db-driver=pgsql {line}").stdout.splitlines()
    words = 'could not translate host name "a..b" to address: '
    assert told.startswith(f"FATAL: Connection to database failed: {words}"), told
    assert more == [
        "",
        "FATAL: `thread_init' function failed: script.lua:3: connection creation failed",
        "FATAL: Thread initialization failed!",
    ]


def test_a_script_that_leaks_ends_with_an_error(shell: Shell) -> None:
    script = "function event() t = t or {}; t[#t + 1] = string.rep('x', 1e7) .. #t end"
    ended = shell("script.lua --time=60 --verbosity=0 run", script)
    assert ended.returncode == 1
    assert "FATAL: `thread_run' function failed: " in ended.stdout
    assert "not enough memory" in ended.stdout, ended


CALLED_BACK = """
local ffi = require("ffi")
ffi.cdef("void qsort(int *base, size_t count, size_t size, int (*compare)(int *, int *))")
local compare = ffi.cast("int (*)(int *, int *)", function(a, b) return a[0] - b[0] end)
local numbers, count = ffi.new("int[2]", 2, 1), ffi.new("int[1]", 1)
function event()
  for i = 1, 1000 do
    ffi.C.qsort(numbers, count[0], 4, compare)
    if i == 500 then count[0] = 2 end
  end
end
"""
"""One number needs no comparison: the call is compiled before it first calls back."""


def test_an_error_that_no_script_can_catch_is_told(shell: Shell) -> None:
    ended = shell("script.lua --events=10 --verbosity=0 run", CALLED_BACK)
    assert ended.returncode == 1
    assert ended.stderr == "PANIC: unprotected error in call to Lua API (bad callback)\n"


ENDLESS = 'print("here") io.stdout:flush() while true do end'


def handles_sigint(pid: int) -> bool:
    caught = re.search(r"^SigCgt:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert caught is not None
    return bool(int(caught[1], 16) >> (signal.SIGINT - 1) & 1)


def test_a_script_that_computes_for_ever_is_ended_by_a_second_signal(tmp_path: Path) -> None:
    with running(tmp_path, f"function event() {ENDLESS} end") as (process, _):
        process.send_signal(signal.SIGINT)
        until(lambda: not handles_sigint(process.pid), "the first signal is heard", 20)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


STEPS = {
    "top level": (ENDLESS, "run"),
    "help": ("function help() ENDLESS end", "help"),
    "prepare": ("function prepare() ENDLESS end", "prepare"),
    "command": (
        "sysbench.cmdline.commands ="
        " { check = { function() ENDLESS end, sysbench.cmdline.PARALLEL_COMMAND } }",
        "--threads=2 check",
    ),
    "thread_init": ("function thread_init() ENDLESS end function event() end", "run"),
    "event": ("function event() ENDLESS end", "run"),
    "interval": (
        "function event() end sysbench.hooks.report_intermediate = function() ENDLESS end",
        "--time=60 --report-interval=1 run",
    ),
    "report": (
        "function event() end sysbench.hooks.report_cumulative = function() ENDLESS end",
        "--time=1 run",
    ),
    "done": ("function event() end function done() ENDLESS end", "--time=1 run"),
}
"""Where a script computes for ever, and what is typed."""
AT_ONCE = {"top level", "report"}
"""Where no command of the engine is waited for."""


@pytest.mark.parametrize("step", STEPS)
def test_a_signal_ends_a_script_that_computes_for_ever(tmp_path: Path, step: str) -> None:
    script, words = STEPS[step]
    with running(tmp_path, script.replace("ENDLESS", ENDLESS), words) as (process, printed):
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        status = process.wait(30)
        took_s = time.monotonic() - began
        said = printed.read()
    assert status == (-signal.SIGINT if step in AT_ONCE else 128 + signal.SIGINT), said
    assert took_s < 10  # two seconds, and the rest for a busy machine


def test_cpu_is_a_test_of_its_own(shell: Shell) -> None:
    ended = shell("cpu --cpu-max-prime=1000 --events=100 --threads=2 run")
    lines = after_banner(ended).splitlines()
    assert lines[: lines.index("Threads started!")] == [
        "Running the test with following options:",
        "Number of threads: 2",
        "Initializing random number generator from current time",
        "",
        "",
        "Prime numbers limit: 1000",
        "",
        "Initializing worker threads...",
        "",
    ]
    assert "    total number of events:              100" in lines
    assert any(re.fullmatch(r"    events per second: +[0-9.]+", line) for line in lines)
    assert after_banner(shell("cpu help")).splitlines() == [
        "cpu options:",
        "  --cpu-max-prime=N upper limit for primes generator [10000]",
        "",
    ]
    for command in ("prepare", "cleanup"):
        refused = shell(f"cpu {command}")
        assert refused.returncode == 1
        assert refused.stderr == f"'cpu' test does not implement the '{command}' command.\n"
    bare = shell("cpu")
    assert bare.stderr == "The 'cpu' test requires a command argument. See 'sysbench cpu help'\n"
