import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError, UsageError
from dbdyno.files import TEMPORARY_FOLDER, temporary_folder
from dbdyno.servers.programs import places, provision
from dbdyno.servers.programs.sources import Tool
from dbdyno.servers.programs.unpack import Layout, unpack
from dbdyno.servers.reference import find
from support.archives import file, jar_of

ENTRY = find("mysql:8.0.15")


@dataclasses.dataclass(frozen=True)
class MadeSource:
    """Hands out a made jar and counts how often."""

    identity: str = "1" * 64
    fetched: list[Path] = dataclasses.field(default_factory=list)
    name: str = "made:jar:1"
    download_bytes: int = 1
    tools: tuple[Tool, ...] = ()

    def fetch(self, work: Path, report: Callable[[str], None]) -> Path:
        self.fetched.append(work)
        names = ("bin/mysqld", "lib/libssl.so")
        return jar_of(work, *(file(name, "code", 0o755) for name in names))

    def unpack(self, fetched: Path, target: Path, home: Path) -> None:
        assert not home.is_relative_to(target)
        unpack(fetched, Layout("inner.tar.gz"), target)


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """A cache of its own, a machine with everything, and an entry whose source is made."""
    source = MadeSource()
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(provision, "check", lambda entry, download: None)
    monkeypatch.setattr(provision, "check_program", lambda program, entry: None)
    return dataclasses.replace(ENTRY, source=source), source.fetched


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


@pytest.mark.parametrize(
    ("name", "damage", "cached"), [("bin/mysqld", b"evil", False), ("lib/libssl.so", b"cod3", True)]
)
def test_a_copy_that_changed_by_a_byte_is_fetched_again(lab, name, damage, cached):
    entry, calls = lab
    damaged = provision.get(entry, quiet) / name
    damaged.write_bytes(damage)
    assert provision.is_cached(entry) == cached  # by sizes, but for the program
    provision.get(entry, quiet)
    assert (damaged.read_bytes(), len(calls)) == (b"code", 2)


def test_what_is_missing_is_found_before_anything_is_fetched(lab, monkeypatch):
    entry, calls = lab

    def missing(entry, download):
        raise ProvisionError("libaio.so.1 is missing")

    monkeypatch.setattr(provision, "check", missing)
    with pytest.raises(ProvisionError, match="libaio"):
        provision.get(entry, quiet)
    assert calls == []


def test_what_a_killed_lab_left_is_removed_by_the_next(lab):
    entry, _ = lab
    servers = places.make_cache_folder("servers")
    left = servers / f"{TEMPORARY_FOLDER}12345678" / "fresh" / "bin"
    left.mkdir(parents=True)
    with temporary_folder(servers) as other:  # whose lab lives
        provision.get(entry, quiet)
        assert [path for path in servers.iterdir() if path.name.startswith(".")] == [other]


def test_programs_in_use_stay_and_others_are_removed_and_fetched_again(lab):
    entry, calls = lab
    home = provision.get(entry, quiet)
    (home.parent / "mysql-5.7.22").mkdir()
    (home.parent / f"{home.name}.lock").unlink()
    assert {path.name: places.remove(path) for path in places.programs()} == {
        "mysql-5.7.22": True,
        home.name: False,
    }
    assert provision.get(entry, quiet) == home
    assert len(calls) == 1


def test_a_cache_beyond_its_limit_is_told_after_a_download(lab, monkeypatch):
    said: list[str] = []
    monkeypatch.setenv("DBDYNO_CACHE_GB_MAX", "0.000001")
    provision.get(lab[0], said.append)
    assert "more than DBDYNO_CACHE_GB_MAX allows" in said[-1]
    monkeypatch.setenv("DBDYNO_CACHE_GB_MAX", "20")
    assert places.excess_bytes() < 0
    for wrong in ("20G", "-1", "nan", "0", "1e9"):
        monkeypatch.setenv("DBDYNO_CACHE_GB_MAX", wrong)
        with pytest.raises(UsageError, match="no size in GB"):
            places.bytes_max()


def test_what_was_unused_longest_goes_from_a_cache_beyond_its_limit(lab, monkeypatch):
    said: list[str] = []
    home = provision.get(lab[0], quiet)
    used_at = {"mysql-5.6.24": 300, "mysql-5.7.22": 100, "mariadb-11.4.5": 200, home.name: 0}
    for name, time in used_at.items():
        (home.parent / name).mkdir(exist_ok=True)
        (home.parent / name / "ballast").write_bytes(b"x" * 2_000_000)
        lock = places.lock_of(home.parent / name)
        lock.touch()
        os.utime(lock, (time, time))
    places.make_room(said.append)
    assert said == []  # without a limit
    monkeypatch.setenv("DBDYNO_CACHE_GB_MAX", "0.005")
    places.make_room(said.append)
    there = {path.name for path in home.parent.iterdir() if path.is_dir()}
    assert there == {"mysql-5.6.24", home.name}  # it is in use
    assert [line.partition(",")[0] for line in said] == [
        "removed servers/mysql-5.7.22",
        "removed servers/mariadb-11.4.5",
    ]
    assert places.excess_bytes() < 0


def test_a_cache_that_takes_nothing_is_reported(lab, monkeypatch):
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
