"""Servers that no catalog row names, run for real; and registries' own clients, asked for real.

Everything is fetched into a cache of its own, so that what other tests keep is neither used nor
changed.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.servers import open
from dbdyno.servers.programs import identify
from dbdyno.servers.reference import find
from support.real_server import SMALL_REDO, started
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


def test_a_vendors_archive_runs_by_its_address_and_digest(
    vendor: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, address = vendor
    home = open.get("mysql:5.7.22", str)
    monkeypatch.setenv("DBDYNO_CACHE", str(place.parent / "cache"))
    with tarfile.open(place / "server.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(home, arcname="mysql-5.7.22-linux-x86_64")
    digest = hashlib.sha256((place / "server.tar.gz").read_bytes()).hexdigest()
    with started(
        "archive", f"tarball:{address}/server.tar.gz#sha256={digest}", SMALL_REDO
    ) as server:
        assert server.version().startswith("5.7.22")
        assert server.ask("SELECT 1 + 1") == [("2",)]
    kept = [path.name for path in (place.parent / "cache" / "servers").glob("given-*[!k]")]
    assert kept == [f"given-{digest[:16]}"]


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
