import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.plan import TopologyPlan
from dbdyno.servers import open, process
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.postgres import instance as instance_module
from dbdyno.servers.postgres import server as module
from dbdyno.servers.programs import provision

SPEC = ServerSpec("pg", "postgres:18.6", {"work_mem": "8MB"})


class FakeServer:
    """A process that is only remembered."""

    pid = 4242

    def __init__(self):
        self.running, self.stopped_cleanly, self.kills = True, False, 0

    def alive(self):
        return self.running

    def stop(self):
        self.running, self.stopped_cleanly = False, True

    def kill(self):
        self.running, self.kills = False, self.kills + 1


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """No download, no real server: pristine data of one file, servers only remembered."""
    source = tmp_path / "pristine"
    (source / "base" / "1").mkdir(parents=True)
    (source / "rows").write_text("pristine")
    (source / "base" / "1" / "template").write_bytes(b"x" * 8192)
    monkeypatch.setattr(provision, "get", lambda entry, report: tmp_path / "home")
    monkeypatch.setattr(process, "server_user", lambda: None)
    monkeypatch.setattr(instance_module, "pristine", lambda *_: source)
    monkeypatch.setattr(module, "start", lambda site, port: FakeServer())
    return tmp_path / "instance"


def made(folder, spec=SPEC):
    return open.instance(spec, folder, lambda text: None)


def rows(folder):
    return folder / "server" / "data" / "rows"


def load_and_stop(instance, folder):
    server = instance.start()
    rows(folder).write_text("loaded")
    (folder / "server" / "data" / "base" / "16384").mkdir()
    (folder / "server" / "data" / "base" / "16384" / "2600").write_bytes(b"x" * 16384)
    server.stop()


def test_a_snapshot_survives_restores_and_is_measured_without_the_servers_own(lab):
    instance = made(lab)
    assert rows(lab).read_text() == "pristine"
    with pytest.raises(ServerError, match="no snapshot to measure"):
        instance.data_bytes()
    load_and_stop(instance, lab)
    instance.snapshot()
    assert instance.data_bytes() == 16384
    rows(lab).write_text("changed by a trial")
    instance.restore()
    assert rows(lab).read_text() == "loaded"
    instance.close()
    assert not (lab / "server").exists()
    again = made(lab)
    assert again.has_snapshot()
    assert again.start().alive()  # which brings the snapshot's data back first
    assert rows(lab).read_text() == "loaded"


@pytest.mark.parametrize(
    ("reference", "settings", "same"),
    [
        ("postgres:18.6", {"work_mem": "4MB"}, True),
        ("postgres:18.6", {"data_checksums": "off"}, False),
        ("postgres:17.11", SPEC.settings, False),
    ],
)
def test_a_snapshot_counts_for_its_format_and_version_alone(lab, reference, settings, same):
    instance = made(lab)
    load_and_stop(instance, lab)
    instance.snapshot()
    assert made(lab, ServerSpec("pg", reference, settings)).has_snapshot() == same


def test_settings_of_one_start_are_laid_over_in_any_spelling(lab, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "start", lambda site, port: seen.append(site.asked) or FakeServer())
    instance = made(lab)
    instance.start({"Work-Mem": "64MB", "fsync": False}).stop()
    instance.start().stop()
    assert [(asked["work_mem"], asked["fsync"]) for asked in seen] == [
        ("64MB", "off"),
        ("8MB", "on"),
    ]


def test_what_initdb_was_told_is_not_changed_by_a_start(lab):
    with pytest.raises(UsageError, match="cannot take other settings") as caught:
        made(lab).start({"data_checksums": "off"})
    assert (caught.value.wanted, caught.value.found) == ("--no-data-checksums", "--data-checksums")


def test_a_setting_that_is_the_labs_own_is_refused_before_anything_is_made(lab):
    with pytest.raises(UsageError, match="data_directory"):
        made(lab, ServerSpec("pg", SPEC.reference, {"data_directory": "/x"}))
    assert not lab.exists()


def test_replicas_are_refused(lab):
    spec = ServerSpec("pg", SPEC.reference, topology=TopologyPlan(replicas=1))
    with pytest.raises(UsageError, match="cannot have replicas"):
        made(lab, spec)
    assert not lab.exists()
