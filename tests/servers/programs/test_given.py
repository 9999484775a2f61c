"""Programs in a folder of this machine, and in a vendor's archive."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import threading
import time
import urllib.request
import zipfile
from contextlib import contextmanager, suppress
from http.client import HTTPMessage

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs import given
from dbdyno.servers.programs.given import TarballSource, look
from dbdyno.servers.reference import parse
from support.archives import file, link, program, tar_of
from support.vendor import served


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a server in it, which runs as ourselves."""
    monkeypatch.setattr(process, "server_user", lambda: None)
    program(tmp_path / "mysql" / "bin" / "mysqld")
    return tmp_path / "mysql"


def test_the_programs_digest_is_the_identity_and_nothing_is_fetched(folder):
    source = look(folder)
    assert source.identity == hashlib.sha256(b"code").hexdigest()
    assert source.name == str(folder)
    assert (source.download_bytes, source.tools) == (0, ())


def test_a_folder_without_a_server_is_reported(tmp_path):
    with pytest.raises(ProvisionError, match="no server's program") as caught:
        look(tmp_path)
    assert "bin/mysqld" in (caught.value.wanted or "")
    with pytest.raises(ProvisionError) as caught:
        look(tmp_path / "nowhere")
    assert caught.value.found == "no such folder"


def test_a_folder_closed_to_the_servers_user_is_reported(folder, monkeypatch):
    monkeypatch.setattr(process, "server_user", lambda: ServerUser("nobody", 65534, 65534))
    folder.chmod(0o700)
    with pytest.raises(ProvisionError, match="user nobody may not run"):
        look(folder)


DIGEST = "ab" * 32


def packed(path, names, kind):
    tar_of(path, kind, *(file(name, "code", 0o755) for name in names))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def vendor(tmp_path):
    """A folder and the address under which a vendor serves it."""
    folder = tmp_path / "vendor"
    folder.mkdir()
    with served(folder) as address:
        yield folder, address


@pytest.mark.parametrize("kind", ["gz", "xz"])
@pytest.mark.parametrize("around", ["", "mysql-8.0.33-linux/"])
def test_an_archive_is_fetched_and_laid_out_whatever_folder_is_around_it(
    vendor, tmp_path, kind, around
):
    folder, address = vendor
    names = [f"{around}{name}" for name in ("bin/mysqld", "bin/mysqld-debug", "share/errmsg.sys")]
    digest = packed(folder / "server.tar", names, kind)
    source = TarballSource(f"{address}/server.tar", digest)
    target = tmp_path / "target"
    target.mkdir()
    source.unpack(source.fetch(tmp_path, str), target, tmp_path / "home")
    found = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert found == ["bin/mysqld", "share/errmsg.sys"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "target", "vendor"]


@pytest.mark.parametrize("end", ["../other/lib", "../target/lib"])
def test_a_link_that_leads_out_once_its_folder_is_stripped_is_refused(tmp_path, end):
    items = file("top/bin/mysqld", "code", 0o755), link("top/lib", end)
    tar_of(tmp_path / "with_link.tar", "gz", *items)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ProvisionError, match=r"'lib'.*link out of the folder"):
        TarballSource("", DIGEST).unpack(tmp_path / "with_link.tar", target, tmp_path / "home")


def test_another_digest_than_the_users_is_refused(vendor, tmp_path):
    folder, address = vendor
    found = packed(folder / "server.tar", ["bin/mysqld"], "gz")
    with pytest.raises(ProvisionError, match="not the file") as caught:
        TarballSource(f"{address}/server.tar", DIGEST).fetch(tmp_path, str)
    assert (caught.value.wanted, caught.value.found) == (f"sha256 {DIGEST}", f"sha256 {found}")


@contextmanager
def answering(answer, *, drips=False):
    """A server that answers once, then sends a byte now and then if it drips; an address there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError):
                line, _ = listening.accept()
                with line:
                    line.recv(4096)
                    line.sendall(answer)
                    while drips:
                        line.sendall(b"x")
                        time.sleep(0.02)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/server.tar"


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nX: "])
def test_a_download_that_drips_for_ever_has_an_end(tmp_path, monkeypatch, head):
    monkeypatch.setattr(given, "DOWNLOAD_S_MAX", 0.2)
    with (
        answering(head, drips=True) as address,
        pytest.raises(ProvisionError, match="could not be fetched") as caught,
    ):
        TarballSource(address, DIGEST).fetch(tmp_path, str)
    assert caught.value.found == "it took longer than 0.2 s"


@pytest.mark.parametrize("is_there", [True, False])
def test_an_archive_that_cannot_be_fetched_is_reported_with_the_answer(vendor, tmp_path, is_there):
    address = f"{vendor[1]}/gone.tar" if is_there else "http://127.0.0.1:9/server.tar"
    with pytest.raises(ProvisionError, match="could not be fetched") as caught:
        TarballSource(address, DIGEST).fetch(tmp_path, str)
    assert ("File not found" if is_there else "refused") in (caught.value.found or "")


def test_of_several_outer_folders_the_servers_is_kept(tmp_path):
    names = ["pg/bin/postgres", "pg/share/postgres.bki", "pooler/bin/pooler", "LICENSE"]
    packed(tmp_path / "server.tar", names, "gz")
    target = tmp_path / "target"
    target.mkdir()
    TarballSource("", DIGEST).unpack(tmp_path / "server.tar", target, tmp_path / "home")
    found = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert found == ["bin/postgres", "share/postgres.bki"]


def test_a_zip_file_without_modes_has_programs_too(tmp_path):
    with zipfile.ZipFile(tmp_path / "server.zip", "w") as made:
        made.writestr(zipfile.ZipInfo("mysql-8.4.6/bin/mysqld"), "code")
    target = tmp_path / "target"
    target.mkdir()
    TarballSource("", DIGEST).unpack(tmp_path / "server.zip", target, tmp_path / "home")
    assert os.access(target / "bin" / "mysqld", os.X_OK)


@pytest.mark.parametrize("place", ["https://example.com/x?token=secret", "http://127.0.0.1:9/x"])
def test_a_redirect_from_or_to_http_is_refused(tmp_path, place):
    head = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
    with (
        answering(head.encode()) as address,
        pytest.raises(ProvisionError, match="not from https to https") as caught,
    ):
        TarballSource(address, DIGEST).fetch(tmp_path, str)
    assert "from http to http" in (caught.value.found or "")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("begin", "end", "is_followed"),
    [("https", "https", True), ("https", "http", False), ("http", "https", False)],
)
def test_only_a_redirect_from_https_to_https_is_followed(begin, end, is_followed):
    asked = urllib.request.Request(f"{begin}://example.com/x")
    place = f"{end}://example.org/y"
    answer = io.BytesIO()
    try:
        new = given._SecureRedirects().redirect_request(
            asked, answer, 302, "Found", HTTPMessage(), place
        )
    except ProvisionError:
        assert not is_followed
        assert answer.closed
    else:
        assert is_followed
        assert new is not None
        assert new.full_url == place


def test_an_answer_that_is_cut_off_is_not_taken_for_the_archive(tmp_path):
    with (
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") as address,
        pytest.raises(ProvisionError, match="could not be fetched") as caught,
    ):
        TarballSource(address, "").fetch(tmp_path, str)
    assert caught.value.found == "the answer ended after 4 of 100 bytes"


def test_an_endless_download_is_stopped_and_progress_is_reported(vendor, tmp_path, monkeypatch):
    (vendor[0] / "server.tar").write_bytes(b"x" * 30_000_000)
    monkeypatch.setattr(given, "DOWNLOAD_BYTES_MAX", 25_000_000)
    monkeypatch.setattr(given, "REPORT_EVERY_BYTES", 10_000_000)
    said: list[str] = []
    with pytest.raises(ProvisionError, match="larger than 25000000 bytes"):
        TarballSource(f"{vendor[1]}/server.tar", DIGEST).fetch(tmp_path, said.append)
    # A part has 1 MiB at most; its size depends on time.
    first, second = said
    assert first in ("10 MB fetched", "11 MB fetched")
    assert second in ("20 MB fetched", "21 MB fetched")


def test_a_file_on_this_disk_is_an_address_too(tmp_path):
    digest = packed(tmp_path / "server.tar", ["bin/mysqld"], "gz")
    source = parse(f"tarball:file://{tmp_path}/server.tar#sha256={digest.upper()}").source
    work = tmp_path / "work"
    work.mkdir()
    assert source.fetch(work, str).is_file()
    assert source.identity == digest
