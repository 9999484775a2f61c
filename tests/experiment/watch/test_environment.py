"""The environment is described whole, and gives nobody away."""

import getpass
import os
import platform
from pathlib import Path

import dbdyno
from dbdyno.experiment.watch import environment


def test_every_line_says_something():
    described = environment.describe()
    assert all(isinstance(value, str) and value for value in described.values())
    assert described["dbdyno"] == dbdyno.__version__
    assert described["cores"].startswith(str(os.cpu_count()))
    assert described["memory"].endswith("GiB")


def test_neither_host_nor_user_nor_path_is_named():
    described = "\n".join(environment.describe().values())
    for private in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert private not in described
    assert getpass.getuser() not in described.split()


def test_the_filesystem_is_that_of_the_folder():
    assert environment.describe(Path("/proc"))["filesystem"] == "proc"


def test_what_cannot_be_read_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "CLOCK", tmp_path / "nothing")
    assert environment.describe()["clocksource"] == "unknown"
