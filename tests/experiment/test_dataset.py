"""Each system's dataset has a folder of its own, and a server that dies while loading says so."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections import namedtuple

import pytest
from tests.experiment.test_runner import small, start, store  # noqa: F401

from dbdyno.errors import LoadError, ServerError
from dbdyno.experiment import dataset
from dbdyno.experiment.dataset import FILE, folder_of, keep, kept, take, taken_or_empty
from dbdyno.experiment.engine.process import EngineProcess
from dbdyno.plan.plan import DatasetPlan, DesignPlan, SystemPlan, TopologyPlan
from dbdyno.servers.base import ServerSpec
from support import making
from support.fakes import FakeServer, Progress, World


def test_folders_are_short_and_safe_for_sockets(tmp_path):
    system = SystemPlan(label="mariadb:11.4+some_very_long-label-of-a-user", reference="mariadb:11")
    name = folder_of(tmp_path, making.plan(), system).name
    assert len(name) <= 33
    assert ":" not in name


def test_a_folder_belongs_to_one_system_with_its_settings_and_dataset(tmp_path):
    plan = making.plan()
    one = SystemPlan(label="a", reference="mysql:8.0.15")
    others = [
        (plan, one.model_copy(update={"label": "b"})),
        (plan, one.model_copy(update={"reference": "mysql:8.0.16"})),
        (plan, one.model_copy(update={"settings": {"sync_binlog": 0}})),
        (plan.model_copy(update={"dataset": DatasetPlan(tables=9)}), one),
    ]
    folders = {folder_of(tmp_path, *which) for which in [(plan, one), *others]}
    assert len(folders) == 5
    assert folder_of(tmp_path, plan.model_copy(update={"title": "t"}), one) in folders


def test_loading_is_told_in_steps(store):  # noqa: F811
    progress = Progress()
    start(store, small(blocks=1), World(), progress)
    told = [text for text in progress.stages if "loading table" in text]
    assert told[:4] == [f"{making.A}: loading table {n}, {25 * n} %" for n in range(1, 5)]


def test_a_loaded_server_gets_time_to_write_its_pages_out(store):  # noqa: F811
    asked = []

    class Watched(World):
        def open(self, spec, folder, report):
            instance = super().open(spec, folder, report)
            take = instance.snapshot
            instance.snapshot = lambda: (asked.append(instance.server.patience_s), take())
            return instance

    start(store, small(blocks=1), Watched())
    assert asked == [dataset.WRITTEN_OUT_S] * 2


def test_a_server_that_dies_while_loading_is_a_server_error(store, monkeypatch):  # noqa: F811
    def load_and_die(context, server):
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
        raise LoadError("the engine could not load the dataset", found="Lost connection")

    monkeypatch.setattr(dataset, "_load", load_and_die)
    with pytest.raises(ServerError, match="died while the dataset was loaded") as caught:
        start(store, small(), World())
    assert "Lost connection; its last words: [ERROR] got signal 9" in caught.value.found


SILENT = (sys.executable, "-c", "import time; time.sleep(600)")


def test_a_server_that_does_nothing_while_it_is_loaded_is_told(monkeypatch):
    monkeypatch.setattr(dataset, "NO_PROGRESS_S", 0.5)
    monkeypatch.setattr(dataset, "LOOK_S", 0.1)
    server = FakeServer("a")
    try:
        with (
            EngineProcess("prepare", {}, command=SILENT) as engine,
            pytest.raises(LoadError, match="came to a halt") as caught,
        ):
            list(dataset._heard(engine, server, "prepare"))
        assert caught.value.found == "neither, at the stage prepare"
    finally:
        server.kill()


def test_a_server_that_works_without_a_word_is_waited_for(monkeypatch):
    monkeypatch.setattr(dataset, "NO_PROGRESS_S", 0.3)
    monkeypatch.setattr(dataset, "LOOK_S", 0.1)
    used = itertools.count(0, dataset.BUSY_S)
    monkeypatch.setattr(dataset, "_busy", lambda server: float(next(used)))
    tells = "import time; time.sleep(2); print('{\"report\": {}}', flush=True); time.sleep(9)"
    server = FakeServer("a")
    try:
        with EngineProcess("prepare", {}, command=(sys.executable, "-c", tells)) as engine:
            assert [one.kind for one in dataset._heard(engine, server, "prepare")] == ["report"]
    finally:
        server.kill()


def test_an_endpoint_must_tell_of_rows_and_answer_while_it_makes_an_index():
    class Endpoint:
        pid = 0

        def alive(self):
            return True

    works = [dataset._is_at_work(Endpoint(), 0.0, stage) for stage in ("insert", "index")]
    assert works == [False, True]


# The digest is of every table's rows and sum, asked for in pieces; it is kept and read back.


class Server:
    """Answers each question with the next of the rows it was given."""

    database = "sbtest"

    def __init__(self, *rows):
        self.rows, self.asked = list(rows), []

    def ask(self, sql):
        self.asked.append(sql)
        if not self.rows:
            raise ServerError("gone")
        return [self.rows.pop(0)]


def plan(**dataset):
    return making.plan().model_copy(update={"dataset": DatasetPlan(**dataset)})


def test_equal_rows_have_one_digest_and_one_row_changes_it():
    two = plan(tables=2, rows=1000)
    digests = [
        dataset.take(two, Server(("1000", "77"), ("1000", last))) for last in ("88", "88", "89")
    ]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == dataset.SHOWN


def test_large_tables_are_asked_for_in_pieces_that_are_added_up(monkeypatch):
    monkeypatch.setattr(dataset, "PIECE_ROWS", 400)
    server = Server(("400", "5"), ("400", "6"), ("200", "7"))
    pieces = dataset.take(plan(tables=1, rows=1000), server)
    assert [sql.partition("BETWEEN")[2] for sql in server.asked] == [
        " 1 AND 400",
        " 401 AND 800",
        " 801 AND 1200",
    ]
    monkeypatch.setattr(dataset, "PIECE_ROWS", 1000)
    assert take(plan(tables=1, rows=1000), Server(("1000", "18"))) == pieces


def test_tables_are_those_of_the_layout():
    server = Server(("10", "1"))
    take(plan(layout="legacy_one", tables=1, rows=10), server)
    assert "FROM `sbtest`.`sbtest` WHERE" in server.asked[0]


def test_it_is_kept_beside_the_snapshot(tmp_path):
    folder = tmp_path / "instance"
    assert kept(folder) == ""
    keep(folder, "abc")
    assert kept(folder) == "abc"
    (folder / FILE).write_text("[1]")
    assert kept(folder) == ""


def test_a_server_that_does_not_answer_leaves_it_open():
    assert taken_or_empty(plan(tables=1, rows=10), Server()) == ""
    with pytest.raises(ServerError):
        take(plan(tables=1, rows=10), Server())


# A plan that cannot fit is refused before its first row; a disk that fills up stops the run.


Usage = namedtuple("Usage", "total used free")
PLAN = making.plan().model_copy(update={"dataset": DatasetPlan(tables=4, rows=100_000)})
ROWS = 4 * 100_000 * dataset.ROW_BYTES


class Instance:
    def __init__(self, folder, loaded=False, reference="mysql:8.0.15"):
        self.folder, self.loaded = folder, loaded
        self.spec = ServerSpec("a", reference)

    def has_snapshot(self):
        return self.loaded


@pytest.fixture
def free(monkeypatch):
    def set_to(count):
        monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, int(count)))

    return set_to


def test_a_plan_takes_its_data_twice_for_each_system():
    assert dataset.bytes_expected(PLAN) == 2 * (2 * dataset.EMPTY_BYTES + 2.1 * ROWS)
    controlled = PLAN.model_copy(update={"design": DesignPlan(blocks=5)})
    assert dataset.bytes_expected(controlled) == 3 * (2 * dataset.EMPTY_BYTES + 2.1 * ROWS)


def test_replicas_need_as_much_as_their_primary_and_endpoints_nothing_here():
    one = dataset.bytes_expected(PLAN) // 2
    replicated = SystemPlan(label="r", reference="mysql:8.0.33", topology=TopologyPlan(replicas=2))
    elsewhere = SystemPlan(label="e", reference="mysql://me@127.0.0.1/db")
    plan = PLAN.model_copy(update={"systems": (replicated, elsewhere)})
    assert dataset.bytes_expected(plan) == pytest.approx(3 * one, abs=3)


def test_instances_on_one_disk_share_its_room(free, tmp_path):
    instances = [Instance(tmp_path / name) for name in "ab"]
    enough = dataset.FLOOR_BYTES + 2 * 2.1 * ROWS
    free(enough + 1)
    dataset.check_before(PLAN, instances)
    free(enough - 1e6)
    with pytest.raises(LoadError, match="too small for this plan") as caught:
        dataset.check_before(PLAN, instances)
    assert caught.value.wanted == f"554 MB free at {tmp_path}"
    assert caught.value.found == "553 MB free"
    assert "--workspace" in caught.value.hint


def test_a_loaded_instance_needs_one_copy_of_what_it_has(free, tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 10_000_000)
    free(dataset.FLOOR_BYTES + 10_000_000 + 0.1 * ROWS + 1e5)
    dataset.check_before(PLAN, [Instance(tmp_path, loaded=True)])
    with pytest.raises(LoadError):
        dataset.check_before(PLAN, [Instance(tmp_path)])


def test_a_disk_that_is_nearly_full_is_told_with_its_place(free, tmp_path):
    free(dataset.FLOOR_BYTES)
    dataset.check_during([tmp_path, tmp_path / "not" / "yet"])
    free(dataset.FLOOR_BYTES - 1)
    with pytest.raises(LoadError, match="nearly full") as caught:
        dataset.check_during([tmp_path / "not" / "yet"])
    assert str(tmp_path) in caught.value.wanted
    assert "resume" in caught.value.hint


def test_without_a_folder_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: pytest.fail("asked"))
    dataset.check_during([])
    dataset.check_before(PLAN, [])


def test_an_endpoints_rows_need_no_room_here(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: pytest.fail("asked"))
    dataset.check_before(PLAN, [Instance(tmp_path, reference="mysql://u@h:1/d")])
