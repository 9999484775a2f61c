import dataclasses
import io
import os
import pwd
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import zipfile

import psutil
import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import needs, provision
from dbdyno.servers.reference import find

ENTRY = find("mysql:8.0.15")


def made_jar() -> bytes:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        info = tarfile.TarInfo("bin/mysqld")
        info.size, info.mode = 4, 0o755
        archive.addfile(info, io.BytesIO(b"code"))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as jar:
        jar.writestr(ENTRY.member, inner.getvalue())
    return outer.getvalue()


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A cache of its own, a machine with everything, and a client that serves a made jar."""
    jar = made_jar()
    calls: list[list[str]] = []

    def run(command, **_):
        calls.append(command)
        folder = next(a.split("=", 1)[1] for a in command if a.startswith("-DoutputDirectory="))
        (provision.Path(folder) / ENTRY.jar_name).write_bytes(jar)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(needs, "check", lambda entry, download: None)
    monkeypatch.setattr(needs, "check_program", lambda program, entry: None)
    monkeypatch.setattr(subprocess, "run", run)
    whole = tmp_path / "whole.jar"
    whole.write_bytes(jar)
    entry = dataclasses.replace(ENTRY, sha256=provision.digest_of(whole))
    return entry, calls


def quiet(text: str) -> None:
    assert text


def test_a_server_is_fetched_once_and_then_found(lab):
    entry, calls = lab
    home = provision.get(entry, quiet)
    assert (home / "bin" / "mysqld").read_bytes() == b"code"
    assert provision.is_cached(entry)
    assert provision.get(entry, quiet) == home
    assert len(calls) == 1
    assert [path.name for path in home.parent.iterdir() if path.name.startswith(".")] == []


def test_the_clients_command_names_the_artifact_and_no_host(lab):
    entry, calls = lab
    provision.get(entry, quiet)
    assert any(argument.rpartition("/")[2] == "mvn" for argument in calls[0])
    assert f"-Dartifact={entry.artifact}" in calls[0]
    assert not any("://" in argument for argument in calls[0])


def test_a_wrong_digest_names_both_and_keeps_nothing(lab):
    entry, _ = lab
    wrong = dataclasses.replace(entry, sha256="0" * 64)
    with pytest.raises(ProvisionError) as caught:
        provision.get(wrong, quiet)
    assert caught.value.wanted == f"sha256 {'0' * 64}"
    assert caught.value.found == f"sha256 {entry.sha256}"
    assert not provision.is_cached(wrong)
    assert not (provision.places.cache_folder() / "servers" / wrong.folder_name).exists()


def test_a_damaged_copy_is_fetched_again(lab):
    entry, calls = lab
    home = provision.get(entry, quiet)
    (home / "bin" / "mysqld").write_bytes(b"evil")
    assert not provision.is_cached(entry)
    assert (provision.get(entry, quiet) / "bin" / "mysqld").read_bytes() == b"code"
    assert len(calls) == 2


def test_what_is_missing_is_found_before_anything_is_fetched(lab, monkeypatch):
    entry, calls = lab

    def missing(entry, download):
        raise ProvisionError("libaio.so.1 is missing")

    monkeypatch.setattr(needs, "check", missing)
    with pytest.raises(ProvisionError, match="libaio"):
        provision.get(entry, quiet)
    assert calls == []


def test_a_failing_client_is_quoted(lab, monkeypatch):
    entry, _ = lab
    done = subprocess.CompletedProcess([], 1, "one\n[ERROR] no such artifact\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: done)
    with pytest.raises(ProvisionError, match="could not fetch") as caught:
        provision.get(entry, quiet)
    assert "[ERROR] no such artifact" in (caught.value.found or "")


def test_a_client_that_hangs_is_given_up(lab, monkeypatch):
    entry, _ = lab

    def hang(command, **_):
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(ProvisionError, match="longer than"):
        provision.get(entry, quiet)


def test_a_second_lab_waits_for_the_first(tmp_path):
    lock, said, order = tmp_path / "lock", [], []
    said_so = threading.Event()

    def second():
        def say(text):
            said.append(text)
            said_so.set()

        with provision.locked(lock, say):
            order.append("second")

    with provision.locked(lock, quiet):
        other = threading.Thread(target=second)
        other.start()
        assert said_so.wait(10)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]
    assert "waiting for another dbdyno" in said[0]


def test_what_a_killed_lab_left_is_removed_by_the_next(lab):
    entry, _ = lab
    servers = provision.places.make_cache_folder("servers")
    left = servers / f".{entry.folder_name}-making-abc" / "fresh" / "bin"
    left.mkdir(parents=True)
    other = servers / ".mysql-5.7.22-making-abc"  # its own lock says whether it is in work
    other.mkdir()
    provision.get(entry, quiet)
    assert [path.name for path in servers.iterdir() if path.name.startswith(".")] == [other.name]


def test_a_cache_that_takes_nothing_is_told(lab, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    entry, _ = lab
    monkeypatch.setattr(provision, "_write_record", full)
    with pytest.raises(ProvisionError, match="cannot be put into the cache") as caught:
        provision.get(entry, quiet)
    assert "No space left" in (caught.value.found or "")
    assert "DBDYNO_CACHE" in (caught.value.hint or "")


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_whatever_the_umask_others_may_enter_and_not_change(lab, umask):
    entry, _ = lab
    before = os.umask(umask)
    try:
        home = provision.get(entry, quiet)
    finally:
        os.umask(before)
    for place in (home / "bin", home, home.parent, home.parent.parent):
        assert place.stat().st_mode & 0o777 == 0o755


def test_a_user_without_a_home_gets_mavens_repository_in_the_cache(lab, monkeypatch, tmp_path):
    entry, calls = lab
    nobody = pwd.getpwuid(os.geteuid())
    assert provision._local_repository() == [] or not os.access(nobody.pw_dir, os.W_OK)

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    provision.get(entry, quiet)
    assert f"-Dmaven.repo.local={tmp_path / 'cache' / 'maven'}" in calls[0]


def test_the_client_dies_with_a_killed_lab(tmp_path):
    client = tmp_path / "mvn"
    client.write_text('#!/bin/sh\necho $$ > "$(dirname $0)/pid"\nexec sleep 600\n')
    client.chmod(0o755)
    lab = textwrap.dedent(
        f"""
        from pathlib import Path
        from dbdyno.servers import provision
        from dbdyno.servers.reference import find
        provision.fetch(find("mysql:8.0.15"), Path({str(tmp_path)!r}))
        """
    )
    paths = {"PYTHONPATH": str(provision.Path(provision.__file__).parents[2])}
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-c", lab], env={**os.environ, **paths, "PATH": path}
    ) as running:
        limit = time.monotonic() + 20
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < limit
            time.sleep(0.02)
        pid = int((tmp_path / "pid").read_text())
        running.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < limit, "the client outlived its lab"
        time.sleep(0.02)
