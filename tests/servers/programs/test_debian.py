"""Packages of Debian, fetched by an apt of their own and tied to their libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import debian
from dbdyno.servers.programs.debian import (
    LOADER,
    AptState,
    DebianPackage,
    DebianSource,
    make_state,
    mirror,
)
from dbdyno.servers.programs.sources import digest_of


def package(folder: Path, name: str, files: dict[str, bytes], links: dict[str, str]) -> Path:
    """A real Debian package of these files."""
    root = folder / f"root-{name}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: made\n"
    )
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o755)
    for path, end in links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(end)
    made = folder / f"{name}_1_all.deb"
    subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "-b", root, made],
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture
def archives(tmp_path):
    """Two packages: a server, and the libraries it wants."""
    folder = tmp_path / "archives"
    folder.mkdir()
    package(
        folder,
        "server",
        {
            "usr/sbin/mysqld": b"\x7fELF program",
            "usr/bin/script": b"#!/bin/sh\n",
            "usr/share/doc/server/copyright": b"x",
            "etc/server.cnf": b"x",
        },
        {"usr/bin/mysql": "../sbin/mysqld"},
    )
    package(folder, "library", {f"usr/{LOADER}": b"\x7fELF loader"}, {})
    return folder


@pytest.fixture
def source(archives):
    pinned = DebianPackage("server", "1", digest_of(archives / "server_1_all.deb"))
    return DebianSource("sid", (pinned,), 4)


@pytest.fixture
def clients(monkeypatch):
    """Every command that would be run, none of which is."""
    calls: list[list[str]] = []

    def run(command, what, work):
        calls.append(list(command))
        return ""

    monkeypatch.setattr(debian, "run_client", run)
    return calls


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_the_packages_usr_becomes_the_servers_folder_with_a_list_of_how_they_were_checked(
    source, archives, clients, target, tmp_path
):
    home = tmp_path / "home"
    source.unpack(archives, target, home)
    found = {str(p.relative_to(target)) for p in target.rglob("*") if not p.is_dir()}
    assert found == {"sbin/mysqld", "bin/script", "bin/mysql", LOADER, "packages.txt"}
    words = clients[0][1:]
    assert len(clients) == 1, "scripts, links and libraries are not tied"
    assert words[:2] == ["--set-interpreter", str(home / LOADER)]
    assert words[-1] == str(target / "sbin" / "mysqld")
    assert str(home / "lib/x86_64-linux-gnu") in words
    lines = (target / "packages.txt").read_text().splitlines()
    assert lines[2].startswith("library_1_all.deb sha256 ")
    assert lines[2].endswith("checked by Debian's signed index, by apt")
    assert lines[3].endswith(f"{source.packages[0].sha256}, checked by dbdyno's catalog")


def test_a_package_cut_short_or_without_a_loader_is_reported(source, archives, clients, target):
    (archives / "library_1_all.deb").unlink()
    with pytest.raises(ProvisionError, match="there is no lib/"):
        source.unpack(archives, target, target)
    (archives / "server_1_all.deb").write_bytes(b"!<arch>\nnothing")
    with pytest.raises(ProvisionError, match="cannot be"):
        source.unpack(archives, target, target)


def test_exact_versions_are_asked_for_and_the_pinned_ones_checked(
    source, archives, clients, monkeypatch, tmp_path
):
    monkeypatch.setattr(debian, "make_state", lambda *_: AptState(("-o", "Dir::State=x"), archives))
    said: list[str] = []
    assert source.fetch(tmp_path, said.append) == archives
    assert [call[-1] for call in clients] == ["update", "server=1"]
    assert "--download-only" in clients[1]
    assert said == ["Debian sid: server 1: 2 packages with libraries"]
    other = DebianSource("sid", (DebianPackage("server", "1", "0" * 64),), 4)
    with pytest.raises(ProvisionError, match="server 1 is not the file dbdyno knows"):
        other.fetch(tmp_path, str)


def test_a_suite_that_has_moved_on_is_explained(source, archives, monkeypatch, tmp_path):
    def run(command, what, work):
        if command[-1] != "update":
            raise ProvisionError(what, found="E: Version '1' for 'server' was not found")

    monkeypatch.setattr(debian, "run_client", run)
    monkeypatch.setattr(debian, "make_state", lambda *_: AptState((), archives))
    with pytest.raises(ProvisionError, match="apt could not fetch") as caught:
        source.fetch(tmp_path, str)
    assert "keeps only its newest" in (caught.value.hint or "")
    assert "was not found" in (caught.value.found or "")


def test_the_identity_is_that_of_the_pinned_packages(source):
    same = DebianSource("sid", source.packages, 5, ("perl",))
    other = DebianSource("sid", (DebianPackage("server", "1", "0" * 64),), 4)
    assert source.identity == same.identity
    assert source.identity != other.identity


OWN = "Packages|main|bookworm|Debian|http://mirror.example/debian/"
SECURITY = "Packages|main|bookworm-security|Debian|http://mirror.example/debian-security/"
OTHER = "Packages|main|nodistro|Node|http://other.example/node/"


def answering(monkeypatch, text):
    monkeypatch.setattr(debian, "run_client", lambda command, what, work: text)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join([OTHER, SECURITY, "DEP-11|main|bookworm|Debian|http://x/debian/", OWN]),
        "Packages|main|trixie|$(ORIGIN)|http://mirror.example/debian/\n",  # never updated
    ],
)
def test_the_mirror_is_the_one_of_the_machines_own_packages(monkeypatch, tmp_path, text):
    answering(monkeypatch, text)
    assert mirror(tmp_path) == "http://mirror.example/debian/"


@pytest.mark.parametrize(("text", "found"), [("", "none"), (OTHER, "sources of other packages")])
def test_a_machine_without_a_debian_mirror_gets_a_hint_what_else_to_do(
    monkeypatch, tmp_path, text, found
):
    answering(monkeypatch, text)
    with pytest.raises(ProvisionError, match="no Debian mirror here") as caught:
        mirror(tmp_path)
    assert (caught.value.found or "").startswith(found)
    assert "path:/folder" in (caught.value.hint or "")


def test_apt_works_in_its_own_folder_and_takes_nothing_unsigned(monkeypatch, tmp_path):
    answering(monkeypatch, OWN)
    apt = make_state(tmp_path / "apt", "sid", ("perl",))
    said = subprocess.run(
        ["apt-config", "dump", *apt.options], capture_output=True, text=True, check=True
    ).stdout
    for name in ("Dir::State", "Dir::Cache", "Dir::Etc::sourcelist", "Dir::State::status"):
        assert f'\n{name} "{tmp_path / "apt"}' in said
    assert 'APT::Get::AllowUnauthenticated "false"' in said
    assert 'Acquire::AllowInsecureRepositories "false"' in said
    # pytest's folders are closed to the servers' user
    assert ('APT::Sandbox::User "root"' in said) == (os.geteuid() == 0)
    line = (tmp_path / "apt" / "sources.list").read_text()
    assert line.startswith("deb ")
    assert line.endswith(" http://mirror.example/debian/ sid main\n")
    assert "[trusted" not in line
    assert (
        "Package: perl\nStatus: install ok installed\n" in (tmp_path / "apt" / "status").read_text()
    )
