import signal
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.local.files import InstanceFiles
from dbdyno.servers.local.server import Site, StartedInstance
from dbdyno.servers.reference import find

SPEC = ServerSpec("fast", "mysql:8.0.15")


class FakeServer:
    """A process that is only remembered."""

    pid = 4242
    stop_signal = signal.SIGTERM

    def __init__(self):
        self.running, self.stopped_cleanly, self.kills = True, False, 0

    def alive(self):
        return self.running

    def stop(self):
        self.running, self.stopped_cleanly = False, True

    def kill(self):
        self.running, self.kills = False, self.kills + 1


class Product(StartedInstance):
    """An instance whose pristine data is one file."""

    def __init__(self, folder: Path):
        self.removals: list[bool] = []
        files = InstanceFiles("fast", folder, None, {"reference": SPEC.reference})
        site = Site("fast", find(SPEC.reference), Path("/home-of-it"), files.work, None, {})
        super().__init__(SPEC, site, files, lambda text: None)

    def start(self, begin=lambda site, port: FakeServer()):
        self._must_be_stopped("started")
        return self._start(self._site, begin)

    def _pristine(self):
        return self.folder.parent / "pristine"

    def _before_removal(self):
        self.removals.append(self._files.data.is_dir())


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "pristine").mkdir()
    (tmp_path / "pristine" / "rows").write_text("pristine")
    (tmp_path / "instance").mkdir()
    return tmp_path / "instance"


def rows(folder: Path) -> Path:
    return folder / "server" / "data" / "rows"


def test_a_running_server_is_neither_copied_restored_nor_started_again(lab):
    instance = Product(lab)
    instance.start()
    for action in (instance.snapshot, instance.restore, instance.start):
        with pytest.raises(ServerError, match="fast: a running server cannot be") as caught:
            action()
        assert caught.value.found == "pid 4242"


def test_a_server_that_crashed_or_did_not_come_up_gives_no_snapshot(lab):
    def fail(site, port):
        raise ServerError("did not start")

    instance = Product(lab)
    instance.start().running = False
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()
    with pytest.raises(ServerError, match="did not start"):
        instance.start(fail)
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()


def test_untouched_data_and_that_of_a_clean_stop_may_be_kept(lab):
    instance = Product(lab)
    instance.snapshot()
    server = instance.start()
    rows(lab).write_text("loaded")
    server.stop()
    instance.snapshot()
    rows(lab).write_text("changed")
    instance.restore()
    assert rows(lab).read_text() == "loaded"
    assert instance.removals[-1]  # the product could give back what it held before


def test_closing_ends_the_server_and_a_start_brings_the_snapshot_back(lab):
    instance = Product(lab)
    rows(lab).write_text("loaded")
    instance.snapshot()
    server = instance.start()
    instance.close()
    assert (server.kills, server.stopped_cleanly) == (1, False)
    assert not (lab / "server").exists()
    Product(lab).start()
    assert rows(lab).read_text() == "loaded"


def test_data_left_by_a_lab_that_died_is_not_used(lab):
    Product(lab)
    rows(lab).write_text("half a trial")
    Product(lab)
    assert rows(lab).read_text() == "pristine"
