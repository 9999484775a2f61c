from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.local.pristine import MARKER
from dbdyno.servers.postgres.instance import pristine
from dbdyno.servers.reference import find

ENTRY = find("postgres:18.6")
INITDB = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -D) data="$2" ;;
    --pwfile=*) grep -q . "${1#--pwfile=}" || exit 5 ;;
    --wal-segsize=2) echo "no such size"; exit 1 ;;
  esac
  shift
done
mkdir "$data" && echo 18 > "$data/PG_VERSION"
"""


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Programs of which initdb is a script, and a cache of its own."""
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    programs = tmp_path / "home" / "bin"
    programs.mkdir(parents=True)
    (programs / "initdb").write_text(INITDB)
    (programs / "initdb").chmod(0o755)
    return tmp_path / "home"


def made(home: Path, report=None, **asked: str) -> Path:
    return pristine(ENTRY, home, asked, None, report or (lambda text: None))


def test_it_is_made_once_for_what_initdb_is_told(home):
    told: list[str] = []
    first = made(home, told.append)
    assert (first / "PG_VERSION").read_text() == "18\n"
    assert made(home, told.append, work_mem="8MB") == first
    assert told == ["postgres:18.6: initialising a data directory"]
    assert made(home, data_checksums="off") != first


def test_the_administrators_password_is_kept_nowhere(home, tmp_path):
    made(home)
    left = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert left == {"PG_VERSION", MARKER, next(n for n in left if n.endswith(".lock"))}


def test_what_initdb_says_is_quoted_and_nothing_is_kept(home, tmp_path):
    with pytest.raises(ServerError, match=r"initdb could not make .* \(exit code 1\)") as caught:
        made(home, wal_segment_size="2MB")
    assert caught.value.found == "no such size"
    assert "--wal-segsize=2" in (caught.value.wanted or "")
    kept = [path for path in (tmp_path / "cache" / "pristine").iterdir() if path.is_dir()]
    assert kept == []
