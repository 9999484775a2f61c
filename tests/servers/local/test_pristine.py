import subprocess

import pytest

from dbdyno.errors import ProvisionError, ServerError
from dbdyno.servers.local import pristine as module
from dbdyno.servers.local.pristine import Making
from dbdyno.servers.process import ServerUser
from dbdyno.servers.programs import places
from dbdyno.servers.reference import find

ENTRY = find("mysql:8.0.15")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DBDYNO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pristine"


def initialise(work):
    (work / "data").mkdir()
    (work / "data" / "rows").write_text(" ".join(sorted(p.name for p in work.iterdir())))
    (work / "data" / "id").write_text("mine")


def test_it_is_made_once_for_what_decides_its_bytes(cache):
    said: list[str] = []
    making = Making("page size 16K", initialise, folders=("tmp",), left_out=("id",))
    first = module.kept(ENTRY, making, None, said.append)
    assert (first / "rows").read_text() == "data tmp"
    assert not (first / "id").exists()
    assert first.parent.stat().st_mode & 0o777 == 0o700
    assert module.kept(ENTRY, making, None, said.append) == first
    assert said == ["mysql:8.0.15: initialising a data directory"]
    assert module.kept(ENTRY, Making("8K", initialise), None, said.append) != first


def test_a_folder_without_its_marker_is_made_again(cache):
    making = Making("16K", initialise)
    first = module.kept(ENTRY, making, None, str)
    (first / "rows").write_text("half")
    (first.parent / module.MARKER).unlink()
    assert (module.kept(ENTRY, making, None, str) / "rows").read_text() == "data"


def test_a_data_directory_that_changed_is_made_again(cache):
    said: list[str] = []
    making = Making("16K", initialise)
    first = module.kept(ENTRY, making, None, said.append)
    for change in (lambda: (first / "rows").write_text("dat~"), (first / "id").unlink):
        change()
        assert module.kept(ENTRY, making, None, said.append) == first
        assert (first / "rows").read_text() == "data"
        assert (first / "id").read_text() == "mine"
    assert said == ["mysql:8.0.15: initialising a data directory"] * 3


def test_what_fails_leaves_nothing(cache):
    def fail(work):
        raise ServerError("could not")

    with pytest.raises(ServerError, match="could not"):
        module.kept(ENTRY, Making("16K", fail), None, str)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_a_cache_that_the_servers_cannot_reach_or_that_is_full_is_reported(monkeypatch):
    def full(work):
        raise OSError(28, "No space left on device")

    with pytest.raises(
        ProvisionError, match=r"data directory of .* cannot be put into the cache"
    ) as caught:
        module.kept(ENTRY, Making("16K", full), None, str)
    assert "No space left" in (caught.value.found or "")
    monkeypatch.setattr(places, "reachable", lambda root, user: False)
    with pytest.raises(ProvisionError, match="the servers' user nobody cannot reach"):
        module.kept(ENTRY, Making("16K", full), ServerUser("nobody", 65534, 65534), str)


@pytest.mark.parametrize(
    ("script", "ending"), [("exit 7", "exit code 7"), ("exec sleep 60", "took too long")]
)
def test_a_program_is_waited_for_but_not_for_ever(script, ending, monkeypatch):
    monkeypatch.setattr(module, "INITIALISE_S_MAX", 0.1 if "sleep" in script else 60)
    running = subprocess.Popen(["/bin/sh", "-c", script])
    with pytest.raises(ServerError, match=rf"^failed \({ending}\)") as caught:
        module.finish(running, "failed", "", lambda: "its log")
    assert (caught.value.wanted, caught.value.found) == (None, "its log")
    assert running.poll() is not None
    module.finish(subprocess.Popen(["/bin/true"]), "failed", "", str)
