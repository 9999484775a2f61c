"""Servers that no catalog row names, run for real; and registries' own clients, asked for real.

Everything is fetched into a cache of its own, so that what other tests keep is neither used nor
changed.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import open
from dbdyno.servers.programs import identify
from dbdyno.servers.reference import find
from dbdyno.store.store import Store
from support.lab_process import finished
from support.real_server import CROWDED, SMALL_REDO, started
from support.vendor import served

pytestmark = pytest.mark.live


@pytest.fixture
def own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBDYNO_CACHE", str(folder / "cache"))
    return folder / "cache"


@pytest.fixture
def vendor(folder: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which it is served on loopback."""
    place = folder / "vendor"
    place.mkdir()
    with served(place) as address:
        yield place, address


OUTER: Final = "mysql-8.0.15-linux-glibc2.12-x86_64"
REDO: Final = "innodb_log_file_size"


def packed(home: Path, place: Path) -> Path:
    """A server as its vendor packs it."""
    made = place / f"{OUTER}.tar.xz"
    with tarfile.open(made, "w:xz", preset=0) as archive:
        for part in ("bin", "lib", "share"):
            archive.add(home / part, f"{OUTER}/{part}")
    return made


def kept(cache: Path) -> list[str]:
    """Names of the folders among a cache's servers, temporary ones too."""
    return [path.name for path in (cache / "servers").iterdir() if path.is_dir()]


def test_a_vendors_archive_runs_by_its_address_and_digest_or_is_pinned_in_its_run(
    vendor: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, address = vendor
    made = packed(open.get("mysql:8.0.15", str), place)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    bare, known = f"{address}/{made.name}", f"{address}/{made.name}#sha256={digest}"
    cache = place.parent / "cache"
    monkeypatch.setenv("DBDYNO_CACHE", str(cache))
    with pytest.raises(ProvisionError, match="not the file dbdyno knows"):
        open.get(f"{bare}#sha256={'0' * 64}", str)
    assert kept(cache) == []
    with started("archive", known, {REDO: str(48 * 1024**2)}) as server:
        assert server.version().startswith("8.0.15")
        assert server.ask("SELECT 1 + 1") == [("2",)]
        assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(cache)
    assert kept(cache) == [f"given-{digest[:16]}"]
    runs = place.parent / "runs"
    ended = finished(
        runs,
        *("compare", f"a={bare}", f"b={bare}", "--set", f"{REDO}=48M", *CROWDED),
        *("--threads", "2", "--blocks", "1", "--warmup", "0", "--window", "1"),
        *("--tables", "1", "--table-size", "1000"),
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(f"{bare}: pinned as #sha256={digest}") == 1
    with Store.open(runs) as store:
        (run,) = store.runs()
    assert [system.reference for system in run.plan.systems] == [known, known]
    assert kept(cache) == [f"given-{digest[:16]}"]


def test_a_folder_runs_where_it_is_and_stays_as_it_was() -> None:
    home = open.get("mysql:5.7.22", str)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    with started("folder", f"path:{home}", SMALL_REDO) as server:
        assert server.version().startswith("5.7.22")
        assert Path(f"/proc/{server.pid}/exe").readlink() == home / "bin" / "mysqld"
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


@pytest.mark.parametrize("reference", ["mariadb:11.8.9", "postgres:17.10"])
def test_a_registrys_client_brings_what_the_catalog_says_and_it_runs(
    reference: str, own_cache: Path
) -> None:
    entry = find(reference)
    said: list[str] = []
    home = open.get(reference, said.append)
    assert home == own_cache / "servers" / entry.folder_name
    found = identify.ask(home / entry.program)
    assert (found.product, found.version) == (entry.product, entry.version)
    with started("row", reference) as server:
        assert entry.version in server.version()
        assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(home)
    assert open.get(reference, said.append) == home
    assert len([line for line in said if ": fetching " in line]) == 1
