import os
from pathlib import Path

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs import places

STRANGER = ServerUser("stranger", 54321, 54321)


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    monkeypatch.delenv("DBDYNO_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


@pytest.mark.parametrize(
    ("user", "variables", "cache"),
    [
        (0, {"DBDYNO_CACHE": "/somewhere/else"}, "/somewhere/else"),
        (0, {}, "/var/cache/dbdyno"),  # the servers' user can enter it
        (1000, {}, "/home/ann/.cache/dbdyno"),
        (1000, {"XDG_CACHE_HOME": "/home/ann/fast"}, "/home/ann/fast/dbdyno"),
    ],
)
def test_the_cache_is_the_chosen_one_or_where_servers_can_enter(
    monkeypatch, user, variables, cache
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert places.cache_folder() == Path(cache)


def test_a_cache_that_others_can_change_is_refused(monkeypatch, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("DBDYNO_CACHE", str(cache))
    with pytest.raises(ProvisionError, match="can be changed by others") as caught:
        places.make_cache_folder("servers")
    assert f"chmod -R go-w {cache}, or name another folder with DBDYNO_CACHE" in (
        caught.value.hint or ""
    )


def test_a_cache_that_cannot_be_made_says_so(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DBDYNO_CACHE", str(blocked))
    with pytest.raises(ProvisionError, match="cannot be used") as caught:
        places.make_cache_folder("servers")
    assert "DBDYNO_CACHE" in (caught.value.hint or "")


def test_a_closed_folder_is_not_reachable_for_another_user(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not places.reachable(closed / "below", STRANGER)
    assert places.reachable(closed / "below", None)


def test_without_another_user_the_folder_asked_for_is_used(tmp_path):
    assert places.instance_folder(tmp_path / "a" / "b", None) == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_a_closed_folder_is_stood_for_by_one_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    opened = {tmp_path / "cache"}
    monkeypatch.setattr(
        places, "reachable", lambda folder, user: bool(opened & {folder, *folder.parents})
    )
    gone, asked = tmp_path / "gone", tmp_path / "closed" / "instance"
    first = places.instance_folder(gone, ServerUser("me", os.geteuid(), os.getegid()))
    gone.rmdir()
    places.clear()
    second = places.instance_folder(asked, ServerUser("me", os.geteuid(), os.getegid()))
    assert second.parent == tmp_path / "cache" / "instances"
    assert (second / places.STANDS_FOR).read_text() == str(asked)
    assert not first.exists()  # what it stood for has vanished


def test_no_place_at_all_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(places, "reachable", lambda folder, user: False)
    with pytest.raises(ProvisionError, match="can reach neither"):
        places.instance_folder(tmp_path / "x", ServerUser("me", os.geteuid(), os.getegid()))
