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


@pytest.mark.parametrize(
    ("download", "missing", "message", "hint"),
    [
        (
            *(True, {"libaio.so.1", "libnuma.so.1"}),
            "fetched and run here: mvn, libaio.so.1, libnuma.so.1 are missing",
            "apt-get install -y maven libaio1 libnuma1; Debian 13 calls libaio1 libaio1t64; if its "
            "library is named libaio.so.1t64, make a link libaio.so.1 to it in a folder of "
            "LD_LIBRARY_PATH",
        ),
        (
            *(False, {"libnuma.so.1"}),
            *("run here: libnuma.so.1 is missing", "apt-get install -y libnuma1"),
        ),
    ],
    ids=["all at once", "a cached server needs no client"],
)
def test_all_that_is_missing_is_said_with_the_command(
    monkeypatch, download, missing, message, hint
):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(provision, "loadable", lambda soname: soname not in missing)
    with pytest.raises(ProvisionError) as caught:
        provision.check(ENTRY, download=download)
    assert caught.value.message == f"mysql:8.0.15 cannot be {message}"
    assert caught.value.hint == hint


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
