"""What a press of TAB offers, in the words of the shells, and how little is imported for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer import Context
from typer._click import Command, Parameter

from dbdyno import __main__
from dbdyno.cli import app, defaults
from dbdyno.cli.completion import words_for
from dbdyno.servers.programs.catalog import CATALOG

PROGRAM = Path(sys.executable).with_name("dbdyno")
WORD_BREAKS = " \t\n\"'><=;|&(:"
"""What ends a word in bash, unless its user says otherwise."""
IN_BASH = """
eval "$("$0" completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$2
_dbdyno "$0"
(( ${#COMPREPLY[@]} )) && printf '%s\\n' "${COMPREPLY[@]}"
complete -p dbdyno
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DBDYNO_WORKSPACE", raising=False)
    return tmp_path


def lines_of(command: Command, context: Context) -> Iterator[str]:
    """A line of `commands.txt` for a command, and for each command below it."""
    words = [word for parameter in command.get_params(context) for word in words_of(parameter)]
    yield f"{context.command_path}: {' '.join(words)}"
    for name, below in getattr(command, "commands", {}).items():
        settings = below.context_settings
        with Context(below, parent=context, info_name=name, **settings) as inner:
            yield from lines_of(below, inner)


def words_of(parameter: Parameter) -> list[str]:
    if parameter.param_type_name == "argument":
        return [f"{parameter.metavar}{'...' if parameter.nargs == -1 else ''}"]
    value = "" if getattr(parameter, "is_flag", False) else f"={parameter.metavar}"
    options = (*sorted(parameter.opts), *parameter.secondary_opts)
    return [f"{option}{value}" for option in options]


def test_the_file_of_commands_is_current() -> None:
    """DBDYNO_RENEW_GOLDEN=1 writes it anew."""
    program = app.command_line()
    with Context(program, info_name="dbdyno", **program.context_settings) as context:
        text = "".join(f"{line}\n" for line in lines_of(program, context))
    if os.environ.get("DBDYNO_RENEW_GOLDEN"):
        defaults.COMMANDS.write_text(text, encoding="utf-8")
    assert defaults.COMMANDS.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dbdyno ", list(app.COMMANDS)),
        ("/opt/bin/dbdyno comp", ["compare", "completion"]),
        ("dbdyno servers st", ["start", "stop", "status"]),
        ("dbdyno compare --th", ["--threads"]),
        ("dbdyno compare --output ", ["plain", "json", "markdown"]),
        ("dbdyno compare --output=j", ["--output=json"]),
        ("dbdyno compare mysql:5.7.22 mysql:8.0.1", ["mysql:8.0.15"]),
        ("dbdyno compare mysql:8.0.15 old=mysql:5.7", ["old=mysql:5.7.22"]),
        ("dbdyno compare --workload 'tpcc.lua --warehouses=2' --la", ["--lang"]),
        ("dbdyno compare --workload oltp_point", ["oltp_point_select"]),
        ("dbdyno compare --workload=tpc", ["--workload=tpcc.lua"]),
        ("dbdyno run vers", ["versions.yaml"]),
        ("dbdyno workload check sh", ["shop.yaml"]),
        ("dbdyno workload try shop.yaml mysql:5.7", ["mysql:5.7.22"]),
        ("dbdyno completion z", ["zsh"]),
        ("dbdyno report ", ["latest"]),
        ("dbdyno compare --set inno", []),
        ("dbdyno frobnicate --th", []),
        ("", list(app.COMMANDS)),
    ],
)
def test_words_are_offered_for_the_end_of_a_line(line: str, words: list[str]) -> None:
    assert words_for(line) == words


def test_files_runs_and_servers_of_the_user_are_offered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.yaml").write_text("")
    (folder / "mine.lua").write_text("")
    (folder / "mine;reboot.yaml").write_text("")  # a stranger's, which no shell may execute
    assert words_for("dbdyno compare --workload mi") == ["mine.lua", "mine.yaml"]
    assert words_for("dbdyno run mi") == ["mine.yaml"]
    for workspace, run_id, server in (("dbdyno-runs", "0a", "up"), ("other", "0b", "down")):
        (folder / workspace / f"20261121-071500-{run_id}").mkdir(parents=True)
        (folder / workspace / "servers" / server).mkdir(parents=True)
        (folder / workspace / "servers" / server / "lock").write_text("")
    assert words_for("dbdyno runs rm latest 2026") == ["20261121-071500-0a"]
    assert words_for("dbdyno servers stop ") == ["up"]
    assert words_for("dbdyno compare --workspace other --server ") == ["down"]
    monkeypatch.setenv("DBDYNO_WORKSPACE", "other")
    assert words_for("dbdyno replay --with 2026") == ["20261121-071500-0b"]
    assert words_for("dbdyno gate latest --against 2026") == ["20261121-071500-0b"]
    (folder / "dbdyno.toml").write_text("nonsense")
    assert words_for("dbdyno servers stop ") == []


@pytest.mark.parametrize(
    ("line", "word_breaks", "replies"),
    [
        ("dbdyno compare mysql:8.0.1", WORD_BREAKS, ["8.0.15"]),
        ("dbdyno compare new=mysql:", WORD_BREAKS, None),
        ("dbdyno compare mysql:8.0.1", WORD_BREAKS.replace(":", ""), ["mysql:8.0.15"]),
        ("dbdyno compare --output=j", WORD_BREAKS, ["json"]),
        ("dbdyno compare --output=j", " \t\n", ["--output=json"]),
        ("dbdyno compare --set ", WORD_BREAKS, []),
    ],
)
def test_bash_gets_what_follows_its_last_break_of_a_word(
    line: str, word_breaks: str, replies: list[str] | None
) -> None:
    if replies is None:
        mysql = [entry.reference for entry in CATALOG if entry.product == "mysql"]
        replies = [reference.partition(":")[2] for reference in mysql]
    done = subprocess.run(
        ["bash", "--norc", "-uc", IN_BASH, PROGRAM, line, word_breaks],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__main__.__file__).parents[1])},
        check=False,
    )
    *told, registered = done.stdout.splitlines()
    assert (told, done.stderr, done.returncode) == (replies, "", 0)
    assert registered == "complete -o default -F _dbdyno dbdyno"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["completion", shell]) == 0
    assert "completion --line" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["dbdyno compare --ti", "dbdyno compare mysql:"])
def test_a_press_of_tab_imports_no_command(line: str) -> None:
    heavy = {"typer", "numpy", "pydantic", "rich", "dbdyno.plan", "dbdyno.store", "dbdyno.cli.app"}
    code = (
        "import sys; from dbdyno.__main__ import main; main(['completion', '--line', sys.argv[1]]);"
        f"sys.exit(' '.join({heavy} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, line], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout != ""
