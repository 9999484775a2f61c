"""Set-up on a machine that lacks things, and the stages of the tests with their summary."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.conftest import LONGEST_FIRST
from tools import examples, man, release, stages

from dbdyno.cli.app import command_line
from dbdyno.cli.defaults import commands
from dbdyno.servers import process
from support.made_workspace import stored_run
from support.source import ROOT

SCRIPT = ROOT / "tools" / "requirements.sh"
BARE = ("bash", "dirname", "sed", "awk", "sort", "head", "id", "grep", "env")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with nothing but what every machine has, and without a library."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BARE:
        (folder / name).symlink_to(str(shutil.which(name)))
    _program(folder, "ldconfig", "exit 0")
    return folder


def _program(folder: Path, name: str, does: str) -> None:
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{does}\n")
    path.chmod(0o755)


def _asked(wanted: str, python: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, wanted, python],
        env={"PATH": str(path)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_that_is_missing_is_named_at_once_with_the_command(bare: Path, tmp_path: Path) -> None:
    done = _asked("test", sys.executable, bare, tmp_path)
    tools = "sysbench chromium-headless-shell npm linux-perf"
    packages = f"gcc libc6-dev maven libaio1 libnuma1 {tools}"
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "dbdyno needs what this machine lacks:",
        "  Rust 1.88 or newer: see https://rustup.rs, then open a new shell",
        f"  {packages}",
        f"  type: sudo apt-get install -y --no-install-recommends {packages}",
    ]
    nightly = _asked("nightly", sys.executable, bare, tmp_path)
    assert f"  {packages} podman runc iptables\n" in nightly.stderr


def test_an_old_python_and_an_old_rust_are_said(bare: Path, tmp_path: Path) -> None:
    _program(bare, "cargo", "echo cargo 1.63.0")
    _program(bare, "python3", "echo Python 3.9.2")
    told = _asked("run", "", bare, tmp_path).stderr
    assert "Python 3.11 or newer (found: Python 3.9.2); name another with PYTHON=…" in told
    assert "Rust 1.88 or newer (found: 1.63.0): rustup update stable" in told
    assert "sysbench" not in told


def test_nothing_missing_is_silence(bare: Path, tmp_path: Path) -> None:
    _program(bare, "ldconfig", "echo libaio.so.1; echo libnuma.so.1")
    _program(bare, "cargo", "echo cargo 1.100.0")
    for name in ("cc", "mvn", "sysbench", "chromium-headless-shell", "npm", "perf"):
        _program(bare, name, "exit 0")
    done = _asked("test", sys.executable, bare, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_installs_with_apt_what_apt_has(bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "apt.log"
    (bare / "id").unlink()
    _program(bare, "id", "echo 0")
    _program(bare, "apt-get", f'echo "$DEBIAN_FRONTEND $*" >> {log}')
    _program(bare, "cargo", "echo cargo 1.88.0")
    done = _asked("run", sys.executable, bare, tmp_path)
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == [
        "noninteractive update",
        "noninteractive install -y --no-install-recommends gcc libc6-dev maven libaio1 libnuma1",
    ]


def test_root_makes_servers_a_user_of_their_own(bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "useradd.log"
    (bare / "id").unlink()
    _program(bare, "id", '[ "$*" = -u ] && echo 0')
    _program(bare, "useradd", f'echo "$*" >> {log}')
    _program(bare, "ldconfig", "echo libaio.so.1; echo libnuma.so.1")
    _program(bare, "cargo", "echo cargo 1.88.0")
    for name in ("cc", "mvn"):
        _program(bare, name, "exit 0")
    done = _asked("run", sys.executable, bare, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    system, *_, name = log.read_text().split()
    assert (system, name) == ("--system", process.OWN_USER)


def test_a_failing_apt_is_said_with_its_command(bare: Path, tmp_path: Path) -> None:
    (bare / "id").unlink()
    _program(bare, "id", "echo 0")
    _program(bare, "apt-get", "echo E: no network >&2; exit 100")
    _program(bare, "cargo", "echo cargo 1.88.0")
    done = _asked("run", sys.executable, bare, tmp_path)
    assert done.returncode == 1
    assert "E: no network" in done.stderr
    assert "maven libaio1 libnuma1' failed, see above" in done.stderr


def test_what_is_installed_is_what_the_project_asks_for_with_digests() -> None:
    """`make lock` writes the file anew when this fails."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = document["project"]
    extras = {
        name: project["dependencies"] + packages
        for name, packages in project["optional-dependencies"].items()
    }
    own, *others = extras.pop("dev")[len(project["dependencies"]) :]
    assert Requirement(own).extras == extras.keys()
    of_tests = [*others, *(text for packages in extras.values() for text in packages)]
    of_set_up = extras["build"] + extras["charts"]
    asked_in = {"requirements.txt": of_set_up, "requirements-of-tests.txt": of_tests}
    asked_in["requirements-of-site.txt"] = document["dependency-groups"]["site"]
    locked = {}
    for name, asked in asked_in.items():
        text = (ROOT / "tools" / name).read_text()
        entries = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)(.*(?:\n    --hash.*)*)", text, re.M)
        assert all("--hash=sha256:" in rest for _, _, rest in entries)
        versions = {package.lower(): version for package, version, _ in entries}
        locked[name] = {*versions.items()}
        for one in map(Requirement, asked):
            assert one.specifier.contains(versions[one.name.lower().replace(".", "-")]), one
    assert locked["requirements.txt"] < locked["requirements-of-tests.txt"]


def test_a_release_names_every_tool_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "can_draw", lambda: False)
    monkeypatch.setattr(release, "TOOLS", tmp_path)
    monkeypatch.setattr(release, "_said", lambda *_: str(tmp_path / "gone").encode())
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert release.main(tmp_path / "out") == 1
    told = capsys.readouterr().err.splitlines()[1:]
    tools = ["vl-convert", "zig", "make", "git"]
    for target, (compiler, _) in release.COMPILERS.items():
        tools += [compiler, f"Rust's library for {target}"]
    assert [line.strip().partition(":")[0] for line in told] == tools


def test_a_release_names_files_that_an_archive_lacks(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "x.whl", tmp_path / "x-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in release.committed(release.LAB) - {"lab/dbdyno/plans/versions.yaml"}:
            packed.writestr(name.removeprefix("lab/"), "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in release.committed(*release.SOURCES) - {"lab/dbdyno/workloads/tpcc.lua"}:
            archive.addfile(tarfile.TarInfo(f"dbdyno-1.0.0/{name}"))
    assert release.left_out(wheel) == ["lab/dbdyno/plans/versions.yaml"]
    assert release.left_out(sdist) == ["lab/dbdyno/workloads/tpcc.lua"]


def test_pages_in_a_wheel_link_only_to_files_in_it(tmp_path: Path) -> None:
    release.copy_docs(ROOT, tmp_path)
    pages = {page: page.read_text() for page in (tmp_path / "docs").rglob("*.md")}
    links = [
        (page, target) for page, text in pages.items() for _, target in release.LINK.findall(text)
    ]
    assert len(links) > 100
    assert [target for page, target in links if not (page.parent / target).is_file()] == []
    text = pages[tmp_path / "docs" / "release-notes.md"]
    assert "changelog (`CHANGELOG.md` in the repository)" in text


def test_every_stage_of_the_tests_runs_whatever_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    outputs = {
        "cargo": ("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured", 101),
        "quick": ("FAILED tests/x.py::test_y - assert\n1 failed, 7 passed, 2 skipped in 3.1s", 1),
        "live": (
            "31.25s call     tests/live/test_z.py::test_slow\n"
            "\x1b[32m5 passed\x1b[0m, 9 deselected in 60.2s (0:01:00)",
            0,
        ),
    }
    commands = {
        name: [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]
        for name, (text, status) in outputs.items()
    }
    monkeypatch.setattr(stages, "STAGES", commands)
    monkeypatch.setattr(stages, "TIMES", tmp_path / "target" / "times.json")
    assert stages.main(list(outputs)) == 101
    told = capfdbinary.readouterr().out.decode()
    assert all(text in told for text, _ in outputs.values())
    rows = [line.rsplit(" s  ", 1) for line in told.splitlines() if " skipped " in line]
    assert [row[0].split()[:-1] for row in rows[-3:]] == [
        ["cargo", "3", "passed", "1", "failed", "2", "skipped"],
        ["quick", "7", "passed", "1", "failed", "2", "skipped"],
        ["live", "5", "passed", "0", "failed", "0", "skipped"],
    ]
    verdicts = ["FAILED (exit status 101)", "FAILED (exit status 1)", "ok"]
    assert [row[1] for row in rows[-3:]] == verdicts
    assert "  quick: FAILED tests/x.py::test_y - assert" in told
    times = json.loads((tmp_path / "target" / "times.json").read_text())
    assert list(times) == ["cargo", "quick", "live"]
    assert times["live"]["slowest"] == [[31.25, "tests/live/test_z.py::test_slow"]]
    assert "  live: 31.2 s tests/live/test_z.py::test_slow" in told


def test_live_tests_are_where_their_stages_look() -> None:
    def is_live(path: Path) -> bool:
        return re.search(r"^pytestmark = .*mark\.live\b", path.read_text(), re.M) is not None

    places = [ROOT / place for place in stages.LIVE]
    looked_at = {path for place in places for path in place.rglob("test_*.py")}
    looked_at |= {place for place in places if place.is_file()}
    files = list((ROOT / "tests").rglob("test_*.py"))
    assert {path for path in files if is_live(path)} == looked_at
    assert set(LONGEST_FIRST) <= {f"{path.parent.name}/{path.stem}" for path in files}


def test_the_manual_page_has_every_command_with_its_options() -> None:
    page = man.described(command_line())
    heads = re.findall(r"^\.SS (dbdyno .+)$", page, re.M)
    assert heads == [path for path in commands() if path != "dbdyno"]
    for path, part in zip(heads, page.split("\n.SS ")[1:], strict=True):
        plain = part.replace("\\-", "-")
        options = [word for word in commands()[path] if word.startswith("--")]
        assert [word for word in options if word not in plain] == [], path
    assert all(line[:1] != "'" for line in page.splitlines())


def test_the_result_of_an_example_stands_below_its_text_and_a_release_has_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, page = tmp_path / "runs", tmp_path / "examples" / "made" / "README.md"
    run_id = stored_run(workspace)
    page.parent.mkdir(parents=True)
    page.write_text(f"# By hand\n\n{examples.MARK}\n\nold\n")
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    monkeypatch.setattr(examples, "BUNDLES", tmp_path / "bundles")
    assert examples.main("made", run_id, str(workspace)) == 0
    text, _, result = page.read_text().partition(f"{examples.MARK}\n\n")
    assert text == "# By hand\n\n"
    assert result.startswith("**")
    assert "**What was tested**" in result
    assert "old" not in result.splitlines()
    assert "<details>" not in result
    examples.renew("made", str(tmp_path / "bundles" / "made.dbdyno.zip"))
    assert page.read_text().endswith(result)
    assert examples.main(str(tmp_path)) == 0
    assert run_id in (tmp_path / "made.html").read_text()
