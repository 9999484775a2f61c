"""The project's shape as tests: who may import whom, how long things may be, what is not written.

A limit that only stands in a text is forgotten by the third month. Whoever needs an exception
writes it into the table here, with its reason, where a reviewer sees it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import source
from support.source import LAB, ROOT, named

# Each room and the rooms it may import; a room may always import itself. The order is the order of
# the arrows: every row names only rows below it. Same table as in ARCHITECTURE.md.
ARROWS: dict[str, str] = {
    "__main__": "cli sysbench errors",
    "cli": "api bench serve evidence export report sysbench servers judge store plan_file plan "
    "measurement metric languages words errors _engine",
    "api": "evidence export report judge plan measurement languages words errors",
    "serve": "evidence report judge store plan measurement metric languages words errors",
    "evidence": "report store plan measurement words errors _engine",
    "worker": "_engine",
    "bench": "servers store plan measurement metric steady errors _engine",
    "export": "report cost measurement metric errors",
    "report": "judge cost plan measurement metric open_loop languages words errors _engine",
    "sysbench": "errors _engine",
    "servers": "plan errors",
    "judge": "plan measurement metric open_loop steady distributions words errors _engine",
    "store": "plan measurement metric errors",
    "plan_file": "plan errors",
    "cost": "measurement words",
    "plan": "measurement open_loop words errors _engine",
    "measurement": "metric words errors _engine",
    "metric": "words errors",
    "open_loop": "",
    "steady": "distributions",
    "distributions": "",
    "languages": "words",
    "words": "",
    "errors": "",
    "_engine": "",
}
# Files at the top of lab/dbdyno that belong to a room of another name.
FILES_OF_ROOMS = {
    "cli_bundle": "cli",
    "cli_compare": "cli",
    "cli_durability": "cli",
    "cli_export": "cli",
    "cli_flow": "cli",
    "cli_gate": "cli",
    "cli_history": "cli",
    "cli_options": "cli",
    "cli_plan": "cli",
    "cli_plan_words": "cli",
    "measurement_evidence": "measurement",
    "measurement_control": "measurement",
    "cli_serve": "cli",
    "measurement_parts": "measurement",
    "plan_controls": "plan",
    "plan_draw": "plan",
    "plan_load": "plan",
    "plan_parts": "plan",
    "plan_pilot": "plan",
    "cli_servers": "cli",
    "plan_settings": "plan",
    "plan_systems": "plan",
    "replication": "plan",
    "plan_file_mistakes": "plan_file",
    "plan_file_scale": "plan_file",
    "plan_file_schema": "plan_file",
    "plan_file_sugar": "plan_file",
    "plan_file_yaml": "plan_file",
    "measurement_watch": "measurement",
    "progress": "cli",
    "progress_feed": "cli",
    "progress_file": "cli",
    "progress_log": "cli",
    "store_file": "store",
    "store_find": "store",
    "store_ledger": "store",
    "store_schema": "store",
    "store_views": "store",
    "run_lock": "store",
}
LINES_OF_A_FILE = 300
LINES_OF_A_TEST = 500
LINES_OF_A_FUNCTION = 60
BYTES_OF_A_FILE = 500_000
# Files that stand without a test file of their own name, and the test that proves them.
PROVED_BY: dict[str, str] = {
    "__main__": "test_cli.py",
    "_engine": "test_stubs.py",
    "cli_options": "test_cli.py",
    "judge.finding": "judge/test_audit.py",
    "plan_file_mistakes": "test_plan_file.py",
    "plan_file_sugar": "test_plan_file.py",
    "plan_file_yaml": "test_plan_file.py",
    "servers.base": "servers/test_instance.py",
}
# Patterns that are not written, what to do instead, and the files in which they are meant.
HOSTS = ("repo1.maven", "repo.maven", "registry.npmjs", "pythonhosted", "deb.debian", "//pypi.org")
BANNED = {
    r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b": "open an issue, or do it",
    r"\b(uti" r"ls|hel" r"pers)\b": "name the work that is done",
    r"(?<![\w.])/(wo" r"rk|ro" r"ot)/": "a path of one machine: take it from an argument",
    "|".join(re.escape(host) for host in HOSTS): "registries are the clients' business",
}
NOT_SEARCHED = {"Cargo.lock", "LICENSE", "tests/test_tidy.py"}


def room(module: str) -> str:
    """The room a module of the lab belongs to."""
    top = module.split(".", maxsplit=1)[0]
    return FILES_OF_ROOMS.get(top, top)


@pytest.mark.parametrize(("module", "path"), source.lab_modules().items())
def test_imports_point_only_downwards(module: str, path: Path) -> None:
    here = room(module)
    assert here in ARROWS, f"{named(path)}: say in the table which room it belongs to"
    upward = {
        i for i in source.imports(path) if room(i) != here and room(i) not in ARROWS[here].split()
    }
    assert not upward, f"{named(path)} ({here}) may not import {sorted(upward)}"


def test_the_table_of_arrows_itself_points_only_downwards() -> None:
    rows = list(ARROWS)
    upward = [(a, b) for a in rows for b in ARROWS[a].split() if rows.index(b) <= rows.index(a)]
    assert upward == []


def test_making_and_judging_never_meet() -> None:
    making = set(" ".join(ARROWS[r] for r in ("servers", "bench")).split())
    judging = set(" ".join(ARROWS[r] for r in ("judge", "report")).split())
    assert not making & {"judge", "report"}
    assert not judging & {"bench", "servers", "store"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = source.lab_modules()
    graph = {m: source.imports(p) & modules.keys() - {m} for m, p in modules.items()}
    while free := {module for module, needs in graph.items() if not needs & graph.keys()}:
        graph = {module: needs for module, needs in graph.items() if module not in free}
    assert graph == {}


def test_the_engine_points_from_binding_to_core_to_wire() -> None:
    may = {"wire": set[str](), "core": {"dbdyno-wire"}, "binding": {"dbdyno-core", "dbdyno-wire"}}
    for crate, allowed in may.items():
        manifest = (ROOT / "engine" / crate / "Cargo.toml").read_text()
        asked = set(re.findall(r"^(dbdyno-\w+|pyo3)\b", manifest, re.MULTILINE))
        assert asked - allowed <= ({"pyo3"} if crate == "binding" else set()), crate
    for path in (ROOT / "engine" / "wire").rglob("*.rs"):
        outside = re.search(r"std::(net|time|fs|thread)\b|tokio|mio::", path.read_text())
        assert outside is None, f"{named(path)}: wire knows no socket and no clock"


@pytest.mark.parametrize("path", source.with_suffix(".py", ".rs"), ids=named)
def test_files_and_functions_can_be_read_in_one_go(path: Path) -> None:
    is_test = "tests" in path.relative_to(ROOT).parts or path.stem == "tests"
    work, _, tests_within = path.read_text().partition("#[cfg(test)]\nmod tests {")
    lines, lines_of_tests = (text.count("\n") for text in (work, tests_within))
    assert lines <= (LINES_OF_A_TEST if is_test else LINES_OF_A_FILE), "find the second noun in it"
    assert lines + lines_of_tests <= LINES_OF_A_TEST, "give its tests a file of their own"
    long = [f for f in source.functions(path) if f.lines > LINES_OF_A_FUNCTION]
    assert long == []


@pytest.mark.parametrize(("module", "path"), source.lab_modules().items())
def test_every_module_has_its_test(module: str, path: Path) -> None:
    if path.name == "__init__.py" and not list(source.functions(path)):
        return
    whole = f"{module}.{module}" if path.name == "__init__.py" else module
    folder, _, name = whole.replace(".", "/").rpartition("/")
    twin = ROOT / "tests" / folder / f"test_{name}.py"
    elsewhere = ROOT / "tests" / PROVED_BY.get(module, "nowhere")
    assert twin.is_file() or elsewhere.is_file(), f"{named(path)} wants {named(twin)}"


def test_no_exception_outlives_its_reason() -> None:
    modules = {*source.lab_modules(), "_engine"}
    assert set(PROVED_BY) <= modules
    assert set(FILES_OF_ROOMS) <= modules


@pytest.mark.parametrize("path", source.files(), ids=named)
def test_nothing_is_written_that_should_not_be(path: Path) -> None:
    assert path.stat().st_size <= BYTES_OF_A_FILE
    content = path.read_bytes()
    if b"\0" in content or named(path) in NOT_SEARCHED:
        return
    text = content.decode()
    for pattern, instead in BANNED.items():
        found = re.search(pattern, text)
        assert found is None, f"{found[0]!r}: {instead}" if found else ""
    blank_ends = [n for n, line in enumerate(text.split("\n"), 1) if line != line.rstrip()]
    assert blank_ends == [], "trailing white space"
    assert not text or text.endswith("\n"), "the last line has no end"


def test_the_marker_of_types_is_shipped() -> None:
    assert (LAB / "py.typed").is_file()
