"""From a reference to an instance, or to the programs it names."""

from __future__ import annotations

import hashlib

import pytest

from dbdyno.errors import ProvisionError, UnknownSystemError, UsageError
from dbdyno.servers import axes, base, open, process
from dbdyno.servers.open import obtain
from dbdyno.servers.programs import provision
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.reference import parse
from support.archives import file, program, tar_of
from support.vendor import served


def test_a_row_s_product_is_known_before_and_a_folder_s_only_by_its_programs(monkeypatch, tmp_path):
    assert open.product_before("mysql:8.0.15") == ("mysql", "8.0.15")
    assert open.product_before(f"path:{tmp_path}") is None
    with pytest.raises(UnknownSystemError):
        open.product_before("mysql:1")
    row = next(entry for entry in CATALOG if entry.product == "mariadb")
    monkeypatch.setattr(open, "obtain", lambda reference, report: (row, tmp_path))
    assert open.product_of("mysql:8.0.15") == ("mysql", "8.0.15")
    assert open.product_of(f"path:{tmp_path}") == (row.product, row.version)


def test_getting_hands_the_row_to_the_provisioner(monkeypatch, tmp_path):
    monkeypatch.setattr(provision, "get", lambda entry, report: tmp_path / entry.folder_name)
    assert open.get("mysql:8.0.15", str) == tmp_path / "mysql-8.0.15"


def test_a_mistake_in_the_settings_is_reported_before_anything_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(provision, "get", lambda entry, report: pytest.fail("fetched"))
    wrong = base.ServerSpec("x", "mysql:8.0.15", {"datadir": "/elsewhere"})
    with pytest.raises(UsageError, match="datadir cannot be set"):
        open.instance(wrong, tmp_path / "x", str)


PROGRAM = "#!/bin/sh\necho 'mysqld  Ver 8.0.32-26 for Linux on x86_64 (GreatSQL)'\n"
DIGEST = "ab" * 32


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A cache of its own; programs are asked as ourselves."""
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(process, "server_user", lambda: None)
    return tmp_path


def archive(folder, name="greatsql/bin/mysqld"):
    made = folder / "server.tar.xz"
    tar_of(made, "xz", file(name, PROGRAM, 0o755))
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    return f"tarball:file://{made}#sha256={digest}"


def test_an_archive_says_itself_what_it_is_and_is_kept(lab):
    reference = archive(lab)
    said: list[str] = []
    entry, home = obtain(parse(reference), said.append)
    assert (entry.product, entry.version, entry.program) == ("greatsql", "8.0.32", "bin/mysqld")
    assert axes.keys_of(*open.product_of(reference), {"thread_pool": "on"}, {}, None, 4) == {
        "thread_handling": "pool-of-threads",
        "thread_pool_size": 4,
    }
    assert entry.reference == reference
    assert home == lab / "cache" / "servers" / entry.folder_name
    (lab / "server.tar.xz").unlink()
    assert obtain(parse(reference), said.append) == (entry, home)
    assert len([line for line in said if "fetching" in line]) == 1


def test_an_archive_without_a_digest_is_pinned_and_its_server_kept_by_the_digest(lab):
    vendor = lab / "vendor"
    vendor.mkdir()
    digest = archive(vendor).rpartition("=")[2]
    (vendor / "copy.tar.xz").write_bytes((vendor / "server.tar.xz").read_bytes())
    said: list[str] = []
    with served(vendor) as address:
        first, copy = (f"{address}/{name}.tar.xz" for name in ("server", "copy"))
        assert open.pinned(first, said.append) == f"{first}#sha256={digest}"
        assert f"{first}: pinned as #sha256={digest}" in said
        entry, home = obtain(parse(copy), said.append)
    assert (entry.product, entry.reference) == ("greatsql", f"{copy}#sha256={digest}")
    assert [line for line in said if "fetching" in line] == [
        f"{one}: fetching it for its digest" for one in (first, copy)
    ]
    assert [line for line in said if "unpacking" in line] == [f"{first}: unpacking"]
    assert obtain(parse(f"{first}#sha256={digest}"), said.append)[1] == home
    assert kept(lab) == [home.name]
    for known in (f"{first}#sha256={digest}", "mysql:8.0.15", "mysql://u@h/d"):
        assert open.pinned(known, pytest.fail) == known


def kept(lab):
    """Names of the folders among the cache's servers, temporary ones too."""
    return [path.name for path in (lab / "cache" / "servers").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("content", "message", "found"),
    [
        (b"", "no archive that dbdyno unpacks", "an empty file"),
        (b"\n<!DOCTYPE html><title>Downloads</title>", "no archive", "a web page"),
        (b"!<arch>\ndebian-binary   ", "no archive", "a Debian package"),
        (b"\x1f\x8b\x08\x00 cut off", "cannot be unpacked", None),
    ],
)
def test_a_download_that_is_no_archive_is_reported_and_not_kept(lab, content, message, found):
    (lab / "page").write_bytes(content)
    with pytest.raises(ProvisionError, match=message) as caught:
        open.pinned((lab / "page").as_uri(), str)
    assert caught.value.found == found
    assert kept(lab) == []


def test_a_folder_is_used_where_it_is(lab):
    home = lab / "mysql"
    program(home / "bin" / "mysqld", PROGRAM)
    entry, found = obtain(parse(f"path:{home}"), str)
    assert found == home
    assert entry.version_numbers == (8, 0, 32)
    assert entry.identity == hashlib.sha256(PROGRAM.encode()).hexdigest()
    assert open.digest_here(entry.reference) == entry.identity
    assert open.digest_here("mysql:8.0.15") == ""
    assert sorted(path.name for path in home.rglob("*")) == ["bin", "mysqld"]
    assert not (lab / "cache").exists()


def test_a_postgresql_before_15_is_refused_wherever_it_is(lab):
    answer = "echo 'postgres (PostgreSQL) 14.20'"
    program(lab / "pg" / "bin" / "postgres", f"#!/bin/sh\n{answer}\n")
    with pytest.raises(UsageError, match="dbdyno runs PostgreSQL from 15 on") as caught:
        obtain(parse(f"path:{lab / 'pg'}"), str)
    assert caught.value.found == "PostgreSQL 14.20"


def test_an_archive_without_a_server_is_reported_and_not_kept(lab):
    with pytest.raises(ProvisionError, match="holds no server's program") as caught:
        obtain(parse(archive(lab, "greatsql/src/mysqld.cc")), str)
    assert "debug symbols" in (caught.value.hint or "")
    assert not list((lab / "cache" / "servers").glob("given-*[!k]"))


@pytest.mark.parametrize("reference", ["path:here", "http://example.com/x.tar.gz", "mysql:1"])
def test_a_reference_that_cannot_be_is_reported_before_anything_is_done(reference, lab):
    with pytest.raises(UnknownSystemError):
        open.check(reference)
    with pytest.raises(UnknownSystemError):
        open.get(reference, str)
    with pytest.raises(UnknownSystemError):
        open.instance(base.ServerSpec("x", reference), lab / "x", str)
    assert list(lab.iterdir()) == []
