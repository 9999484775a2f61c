"""Defaults of options: their file, the environment, and what the command line has over both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_app import run

from dbdyno.cli import app, defaults, flow
from dbdyno.cli.flow import ReportOptions
from dbdyno.language.catalogues import Language
from dbdyno.plan.plan import Plan

FILE = """\
workspace = "their-runs"
lang = "zh"
exit-code = true

[compare]
time = "30m"
threads = [4, 16]
margin = 0.03
table-size = 5000
"""
SYSTEMS = ("mysql:5.7.22", "mysql:8.0.15")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a home without files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("WORKSPACE", "LANG", "OUTPUT", "EXIT_CODE"):
        monkeypatch.delenv(f"DBDYNO_{name}", raising=False)
    return tmp_path


def compared(
    *typed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Plan, Path, ReportOptions]:
    """What `dbdyno compare` begins."""
    begun: list[tuple[Plan, Path, ReportOptions]] = []
    monkeypatch.setattr(
        flow,
        "begin",
        lambda plan, workspace, command, shown, machines: begun.append((plan, workspace, shown)),
    )
    status, _, err = run("compare", *SYSTEMS, *typed, capsys=capsys)
    assert (status, err) == (0, "")
    return begun[0]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*typed: str) -> tuple[Plan, Path, ReportOptions]:
        return compared(*typed, capsys=capsys, monkeypatch=monkeypatch)

    assert begun()[0].design.time_s == 600
    (folder / "dbdyno.toml").write_text(FILE)
    plan, workspace, shown = begun()
    assert (plan.design.time_s, plan.load.threads, plan.design.margin) == (1800, (4, 16), 0.03)
    assert (plan.dataset.rows, workspace) == (5000, Path("their-runs"))
    assert (shown.language, shown.exit_code) == (Language.ZH, True)
    monkeypatch.setenv("DBDYNO_COMPARE_TIME", "20m")
    monkeypatch.setenv("DBDYNO_WORKSPACE", "our-runs")
    monkeypatch.setenv("DBDYNO_LANG", "en")
    plan, workspace, shown = begun()
    assert (plan.design.time_s, workspace, shown.language) == (
        1200,
        Path("our-runs"),
        Language.EN,
    )
    plan, workspace, _ = begun("--time", "5m", "--workspace", "here")
    assert (plan.design.time_s, workspace) == (300, Path("here"))


def test_a_default_gives_way_to_its_rival_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dbdyno.toml").write_text(FILE)
    plan, _, _ = compared("--blocks", "7", capsys=capsys, monkeypatch=monkeypatch)
    assert (plan.design.time_s, plan.design.blocks) == (None, 7)
    plan, _, _ = compared("--rates", "100", capsys=capsys, monkeypatch=monkeypatch)
    assert (plan.load.is_open, plan.load.threads, plan.design.time_s) == (True, (), None)
    (folder / "dbdyno.toml").write_text("[compare]\nrates = 500\nconnections = 9\nwindow = 30\n")
    plan, _, _ = compared(capsys=capsys, monkeypatch=monkeypatch)
    assert (plan.load.rates, plan.load.connections, plan.trial.window_s) == (("500",), 9, 30)
    typed = ("--threads", "8", "--time", "5m")
    plan, _, _ = compared(*typed, capsys=capsys, monkeypatch=monkeypatch)
    assert (plan.load.rates, plan.load.threads, plan.design.time_s) == ((), (8,), 300)


def test_the_file_of_the_home_counts_where_the_working_folder_has_none(folder: Path) -> None:
    home = folder / "home" / ".config" / "dbdyno" / "dbdyno.toml"
    home.parent.mkdir(parents=True)
    home.write_text('workspace = "~/runs"\n')
    assert defaults.workspace() == folder / "home" / "runs"
    (folder / "dbdyno.toml").write_text("")
    assert defaults.workspace() == Path("dbdyno-runs")


def test_help_shows_a_default_of_the_user(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dbdyno.toml").write_text(FILE)
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = run("compare", "--help", capsys=capsys)
    assert "[your default: 4,16]" in out
    assert "[default: 64]" in out


def test_all_mistakes_of_the_file_are_named_with_their_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dbdyno.toml").write_text(
        'langauge = "en"\n'
        "[compare]\n"
        'tiem = "30m"\n'
        'set = ["sync_binlog=0"]\n'
        'lang = "zh"\n'
        "[servers.start]\n"
        'name = "x"\n'
        "[compair]\n"
        'time = "5m"\n'
    )
    status, out, err = run("runs", "list", capsys=capsys)
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "dbdyno: dbdyno.toml: 6 mistakes",
        "  line 1: langauge: is no default of a command; did you mean lang?",
        "  line 3: compare.tiem: is no default of a command; did you mean compare.time?",
        "  line 4: compare.set: cannot be set in this file: give it on the command line",
        "  line 5: compare.lang: holds for all commands: write it above the tables",
        "  line 7: servers.start.name: cannot be set in this file: give it on the command line",
        "  line 9: compair.time: is no default of a command; did you mean compare.time?",
    ]
    (folder / "dbdyno.toml").write_text("time =")
    status, _, err = run("runs", "list", capsys=capsys)
    assert (status, err.splitlines()[0]) == (2, "dbdyno: dbdyno.toml cannot be read")


def test_the_file_chooses_no_server_setting_program_or_file_and_trusts_nobody() -> None:
    options = {words[-1] for words in defaults.keys().values()}
    assert options >= {"time", "threads", "margin", "workspace", "lang", "fail_if_slower"}
    chosen = {"server", "host", "port", "set", "settings", "workload", "fleet", "table_options"}
    written = {"out", "junit", "html", "save", "parquet", "csv", "mapping", "with", "self"}
    assert (
        options & {*chosen, *written, "name", "prometheus", "otlp", "trust", "yes", "verify"}
        == set()
    )


def test_a_key_of_the_file_is_the_name_by_which_the_command_line_knows_the_option() -> None:
    wrong = []
    for key, (*names, option) in defaults.keys().items():
        command = app.loaded(names[0] if names else "compare")
        for name in names[1:]:
            command = command.commands[name]  # type: ignore[attr-defined]
        if option not in {parameter.name for parameter in command.params}:
            wrong.append(key)
    assert wrong == []
