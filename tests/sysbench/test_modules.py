"""What a script loads and reads: compiled modules, modules beside it, options as Lua's values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.sysbench import Shell

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
TWICE = """
typedef struct lua_State lua_State;
long lua_tointeger(lua_State *, int);
void lua_pushinteger(lua_State *, long);
void lua_pushcclosure(lua_State *, int (*)(lua_State *), int);
int luaL_error(lua_State *, const char *, ...);

static int twice(lua_State *lua) {
  long number = lua_tointeger(lua, 1);
  if (number < 0) return luaL_error(lua, "%d is negative", (int)number);
  lua_pushinteger(lua, 2 * number);
  return 1;
}

int luaopen_twice(lua_State *lua) { lua_pushcclosure(lua, twice, 0); return 1; }
int luaopen_twice_again(lua_State *lua) { return luaopen_twice(lua); }
"""
USES = """
local twice, again = require("twice"), require("twice.again")
local loaded = package.loadlib("./twice.so", "luaopen_twice")()
function event()
  print(twice(21), again(4), loaded(5))
  print(pcall(twice, -1))
end
"""


@needs_compiler
def test_a_compiled_module_is_loaded_in_each_thread(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "twice.c").write_text(TWICE)
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-o", "twice.so", "twice.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ended = shell("script.lua --threads=4 --events=8 --verbosity=0 run", USES)
    assert ended.returncode == 0, ended
    lines = ended.stdout.splitlines()
    assert lines.count("42\t8\t10") == 8
    assert lines.count("false\t-1 is negative") == 8


@needs_compiler
def test_a_module_for_another_lua_is_told(shell: Shell, tmp_path: Path) -> None:
    newer = "void lua_newuserdatauv(void *); int luaopen_newer(void *lua)"
    (tmp_path / "newer.c").write_text(f"{newer} {{ lua_newuserdatauv(lua); return 0; }}")
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-o", "newer.so", "newer.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ended = shell("script.lua run", "require('newer')")
    assert ended.returncode == 1
    assert "undefined symbol: lua_newuserdatauv" in ended.stdout, ended
    assert "it is compiled for another Lua than 5.1" in ended.stdout


def test_a_compiled_module_that_is_none_is_told(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_text("no library")
    ended = shell("script.lua run", "require('broken')")
    assert ended.returncode == 1
    assert "error loading module 'broken' from file './broken.so'" in ended.stdout, ended


def test_a_module_beside_the_script_is_found(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/part.lua").write_text("return 'a part'")
    (tmp_path / "mine/whole.lua").write_text("print(require('part'))")
    ended = shell("mine/whole.lua run")
    assert "a part\n" in ended.stdout, ended


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("", "boolean\tfalse"),
        ("--mysql-ssl", "boolean\ttrue"),
        ("--mysql-ssl=required", "boolean\ttrue"),
        ("--compat=1.1", "string\tdisabled"),
    ],
)
def test_mysql_ssl_is_a_switch_in_scripts_of_1_0(shell: Shell, typed: str, printed: str) -> None:
    script = "function event() print(type(sysbench.opt.mysql_ssl), sysbench.opt.mysql_ssl) end"
    ended = shell(f"script.lua {typed} --events=1 --verbosity=0 run", script)
    assert ended.stdout == f"{printed}\n", ended


def test_a_script_has_notes_on_options_too(shell: Shell) -> None:
    line = "script.lua --mysql-ssl-ca=ca.pem --rand-spec-pct=5 --rand-type=uniform --events=1 run"
    ended = shell(line, "function event() end")
    reason = "no effect without --mysql-ssl: connections are not encrypted"
    assert ended.stderr == f"note: --mysql-ssl-ca: {reason}\n"


def test_an_option_that_no_script_reads_is_told(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "common.lua").write_text("print(oltp_tables_count)")
    script = "dofile('common.lua') function event() print(oltp_table_size) end"
    options = "--oltp-tables-count=2 --oltp-table-size=3 --oltp-reconnect=on"
    ended = shell(f"script.lua {options} --events=1 --verbosity=0 run", script)
    said = "no effect, as no script in . reads oltp_reconnect"
    assert ended.stderr == f"note: --oltp-reconnect: {said}\n", ended


def test_a_mistake_of_a_script_s_options_is_told_alone(shell: Shell) -> None:
    ended = shell("script.lua --rate=5 --think-time=5 --verbosity=0 run", "function event() end")
    assert ended.returncode == 1
    (line,) = ended.stdout.splitlines()
    assert line.startswith("FATAL: rate_per_s and think_time_ms exclude each other")


def test_a_script_without_statements_has_no_stalls(shell: Shell) -> None:
    script = "function event() ffi.C.usleep(1200000) end"
    ended = shell("script.lua --events=1 run", script)
    assert (ended.returncode, ended.stderr) == (0, "")
