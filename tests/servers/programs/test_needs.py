import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import process
from dbdyno.servers.programs import provision
from dbdyno.servers.reference import find

ENTRY = find("mysql:8.0.15")


def test_all_that_is_missing_is_said_at_once_with_the_command(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(
        provision, "loadable", lambda soname: soname not in {"libaio.so.1", "libnuma.so.1"}
    )
    with pytest.raises(ProvisionError) as caught:
        provision.check(ENTRY, download=True)
    assert "mvn, libaio.so.1, libnuma.so.1 are missing" in caught.value.message
    hint = caught.value.hint or ""
    assert hint.startswith("apt-get install -y maven libaio1 libnuma1;")
    assert "libaio1t64" in hint
    assert "libaio.so.1t64" in hint


def test_a_cached_server_needs_no_client(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(provision, "loadable", lambda soname: soname != "libnuma.so.1")
    with pytest.raises(ProvisionError) as caught:
        provision.check(ENTRY, download=False)
    assert "cannot be run here: libnuma.so.1 is missing" in caught.value.message
    assert caught.value.hint == "apt-get install -y libnuma1"


def test_nothing_missing_is_no_error(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(provision, "loadable", lambda soname: True)
    assert provision.check(ENTRY, download=True) is None


def test_another_machine_is_refused(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(ProvisionError, match="another machine") as caught:
        provision.check(ENTRY, download=True)
    assert caught.value.found == "Linux aarch64"


def test_the_loader_decides_what_is_loadable():
    assert provision.loadable("libc.so.6")
    assert not provision.loadable("libnosuchthing.so.1")


def test_what_the_programs_own_loader_does_not_find_is_an_error(monkeypatch):
    answer = "\tlibaio.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(
        process, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, answer, "")
    )
    with pytest.raises(ProvisionError, match="not found") as caught:
        provision.check_program(Path("mysqld"), ENTRY)
    assert "apt-get install -y libaio1" in (caught.value.hint or "")
