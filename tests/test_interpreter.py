"""Python processes of the lab: each is listed here, and none imports from the working folder."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno import interpreter
from dbdyno.experiment.engine import generators
from dbdyno.fleet import cluster
from dbdyno.report.charts import converter
from dbdyno.servers import launch, watcher
from dbdyno.servers.kept import kept
from dbdyno.servers.local import network
from support.source import lab_modules, nodes

OTHER_WAYS = {"multiprocessing", "runpy", "ProcessPoolExecutor"}
CHILDREN = {
    "experiment.engine.generators": generators.COMMAND,
    "report.charts.converter": converter.COMMAND,
    "servers.kept.kept": kept.SUPERVISOR,
    "servers.local.network": network.COMMAND,
    "servers.process": interpreter.bare_script(launch.__file__),
    "servers.watcher": interpreter.bare_script(watcher.__file__),
}
"""Which module of the lab starts a Python process, and its command."""


def names(path: Path) -> set[str]:
    """Names, attributes and imported modules of a file."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            found.add(f"{ast.unparse(node.value)}.{node.attr}")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def programs(path: Path) -> set[str]:
    """Commands of a file whose program is a Python by its name."""
    commands = {
        str(node.elts[0].value)
        for node in nodes(path)
        if isinstance(node, ast.List | ast.Tuple)
        if node.elts and isinstance(node.elts[0], ast.Constant)
    }
    return {text for text in commands if text.rpartition("/")[2].rstrip("0123456789.") == "python"}


def test_one_file_alone_starts_python() -> None:
    modules = {name: path for name, path in lab_modules().items() if name != "interpreter"}
    used = {name: names(path) for name, path in modules.items()}
    assert {name for name, found in used.items() if "sys.executable" in found} == set()
    others = {
        name for name, found in used.items() if any(set(n.split(".")) & OTHER_WAYS for n in found)
    }
    assert others == set()
    assert {name for name, path in modules.items() if programs(path)} == set()
    starts = {f"interpreter.{how}" for how in ("module", "script", "bare_script")}
    assert {name for name, found in used.items() if starts & found} == set(CHILDREN)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules named as Python's and as packages of ours; each leaves a mark."""
    folder = tmp_path_factory.mktemp("hostile")
    packages = ("dbdyno", "psutil", "pydantic", "typer", "vl_convert", "yaml")
    for name in (*sys.stdlib_module_names, *packages):
        text = f"import posix\nposix.close(posix.open({str(folder / 'ran')!r}, posix.O_CREAT))\n"
        (folder / f"{name}.py").write_text(f"{text}raise SystemExit({name!r})\n")
    return folder


def ran(command: tuple[str, ...], folder: Path) -> bool:
    """Whether a command runs a module of the folder it is started in."""
    subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    mark = folder / "ran"
    was_run = mark.exists()
    mark.unlink(missing_ok=True)
    return was_run


@pytest.mark.parametrize("starter", CHILDREN)
def test_no_child_runs_a_module_of_the_working_folder(starter, hostile) -> None:
    assert not ran(CHILDREN[starter], hostile)


def test_a_child_without_the_option_would_run_it(hostile) -> None:
    assert ran((sys.executable, "-m", "dbdyno.servers.kept.supervisor"), hostile)


def test_processes_on_other_nodes_import_nothing_of_the_working_folder(
    monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    at = []
    monkeypatch.setattr(cluster.ray, "init", lambda **_: at.append(os.getcwd()))  # noqa: PTH109
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: None)
    with cluster.connected("auto"):
        assert Path.cwd() == tmp_path
    assert at == ["/"]
