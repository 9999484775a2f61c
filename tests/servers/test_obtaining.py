import hashlib
import io
import tarfile

import pytest

from dbdyno.errors import ProvisionError, UnknownSystemError
from dbdyno.servers import open, process
from dbdyno.servers.open import entry_before, obtain

PROGRAM = b"#!/bin/sh\necho 'mysqld  Ver 8.0.32-26 for Linux on x86_64 (GreatSQL)'\n"
DIGEST = "ab" * 32


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A cache of its own; programs are asked as ourselves."""
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(process, "server_user", lambda: None)
    monkeypatch.setattr(process, "server_user", lambda: None)
    return tmp_path


def archive(folder, name="greatsql/bin/mysqld"):
    made = folder / "server.tar.xz"
    with tarfile.open(made, "w:xz") as written:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(PROGRAM), 0o755
        written.addfile(info, io.BytesIO(PROGRAM))
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    return f"tarball:file://{made}#sha256={digest}"


def test_an_archive_says_itself_what_it_is_and_is_kept(lab):
    reference = archive(lab)
    said: list[str] = []
    entry, home = obtain(reference, said.append)
    assert (entry.product, entry.version, entry.program) == ("mysql", "8.0.32", "bin/mysqld")
    assert entry.reference == reference
    assert home == lab / "cache" / "servers" / entry.folder_name
    (lab / "server.tar.xz").unlink()
    assert obtain(reference, said.append) == (entry, home)
    assert len([line for line in said if "fetching" in line]) == 1


def test_a_folder_is_used_where_it_is(lab):
    home = lab / "mysql"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "mysqld").write_bytes(PROGRAM)
    (home / "bin" / "mysqld").chmod(0o755)
    entry, found = obtain(f"path:{home}", str)
    assert found == home
    assert entry.version_numbers == (8, 0, 32)
    assert entry.identity == hashlib.sha256(PROGRAM).hexdigest()
    assert sorted(path.name for path in home.rglob("*")) == ["bin", "mysqld"]
    assert not (lab / "cache").exists()


def test_an_archive_without_a_server_is_told_and_not_kept(lab):
    with pytest.raises(ProvisionError, match="holds no server's program") as caught:
        obtain(archive(lab, "greatsql/src/mysqld.cc"), str)
    assert "debug symbols" in (caught.value.hint or "")
    assert not list((lab / "cache" / "servers").glob("given-*[!k]"))


def test_only_the_form_is_known_before():
    assert entry_before("path:/opt/mysql") is None
    assert entry_before(f"tarball:https://example.com/x.tar.gz#sha256={DIGEST}") is None
    before = entry_before("mysql:8.0.15")
    assert before is not None
    assert before.version == "8.0.15"


@pytest.mark.parametrize(
    "reference", ["path:here", "tarball:https://example.com/x.tar.gz", "mysql:1"]
)
def test_a_reference_that_cannot_be_is_told_before_anything_is_done(reference, lab):
    with pytest.raises(UnknownSystemError):
        open.check(reference)
    with pytest.raises(UnknownSystemError):
        obtain(reference, str)
    assert not (lab / "cache").exists()
