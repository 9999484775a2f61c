"""Each system's dataset has a folder of its own, and a server that dies while loading says so."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import pytest
from tests.experiment.test_runner import small, start

from dbdyno.errors import LoadError, ServerError
from dbdyno.experiment.context import LoadRecord, RunContext
from dbdyno.experiment.data import dataset
from dbdyno.experiment.data.dataset import (
    RECORD,
    digest_and_short_tables,
    ensure_dataset,
    folder_of,
    read_record,
    write_record,
)
from dbdyno.experiment.schedule.schedule import TrialQueue
from dbdyno.plan.plan import DatasetPlan
from dbdyno.plan.systems import SystemPlan, TopologyPlan
from dbdyno.plan.workload import WorkloadPlan
from dbdyno.servers.base import ServerSpec
from support import making
from support.fakes import Progress
from support.world import FakeInstance, FakeServer, World


def test_folders_are_short_and_safe_for_sockets(tmp_path):
    system = SystemPlan(label="a", reference="path:/opt/builds/mariadb-11.4+some_very_long_name")
    name = folder_of(tmp_path, making.plan(), system).name
    assert len(name) <= 33
    assert ":" not in name


def test_a_folder_belongs_to_all_that_decides_how_rows_are_laid_out(tmp_path):
    plan = making.plan()
    one = SystemPlan(label="a", reference="mysql:8.0.33")
    others = [
        (plan, one.model_copy(update={"reference": "mysql:8.0.31"})),
        (plan, one.model_copy(update={"settings": {"sync_binlog": 0}})),
        (plan, one.model_copy(update={"topology": TopologyPlan(replicas=1)})),
        (plan.model_copy(update={"dataset": DatasetPlan(tables=9)}), one),
    ]
    folders = {folder_of(tmp_path, *which) for which in [(plan, one), *others]}
    assert len(folders) == 5
    assert folder_of(tmp_path, plan.model_copy(update={"title": "t"}), one) in folders
    assert folder_of(tmp_path, plan, one.model_copy(update={"label": "b"})) in folders


def test_systems_of_one_plan_that_are_alike_have_folders_of_their_own(tmp_path):
    one, two = (SystemPlan(label=label, reference="mysql:8.0.15") for label in ("a", "b"))
    plan = making.plan().model_copy(update={"systems": (one, two)})
    own = [folder_of(tmp_path, plan, each) for each in (one, two)]
    assert len(set(own)) == 2
    alone = making.plan().model_copy(update={"systems": (two,)})
    assert folder_of(tmp_path, alone, two) == own[0]


def test_a_loaded_server_gets_time_to_write_its_pages_out(store):
    asked = []

    class Watched(World):
        def open(self, spec, folder, report):
            instance = super().open(spec, folder, report)
            take = instance.snapshot
            instance.snapshot = lambda: (asked.append(instance.server.patience_s), take())
            return instance

    start(store, small(blocks=1), Watched())
    assert asked == [dataset.WRITTEN_OUT_S] * 2


def test_a_server_that_dies_while_loading_is_a_server_error(store, monkeypatch):
    def load_and_die(context, server):
        server.is_alive = False
        raise LoadError("the engine could not load the dataset", found="Lost connection")

    monkeypatch.setattr(dataset, "_load", load_and_die)
    with pytest.raises(ServerError, match="died while the dataset was loaded") as caught:
        start(store, small(), World())
    assert "Lost connection; its last words: [ERROR] got signal 9" in caught.value.found


@pytest.fixture
def sparing(tmp_path, monkeypatch, world):
    """Loads a server that can take rows without its log; what was done, in its order."""
    order = []

    class Sparing(FakeServer):
        @contextmanager
        def loading(self):
            order.append("log off")
            yield
            order.append("log on")

    def digest(plan, server):
        order.append("digest")
        return "abc", {}

    instance = FakeInstance(world, ServerSpec("a", making.A), tmp_path / "a")
    instance.server = Sparing(world, "a")
    monkeypatch.setattr(instance, "snapshot", lambda: order.append("snapshot"))
    monkeypatch.setattr(instance, "start", lambda keys: instance.server)
    monkeypatch.setattr(dataset, "digest_and_short_tables", digest)

    def load(rows):
        monkeypatch.setattr(dataset, "_load", lambda context, server: rows(order))
        made, makers = making.plan(), world.makers
        context = RunContext("r", TrialQueue(made, [], 0), None, tmp_path, Progress(), makers)
        ensure_dataset(context, instance)

    return load, instance, order


def test_rows_are_taken_without_a_log_and_read_and_copied_with_one(sparing):
    load, instance, order = sparing
    load(lambda order: order.append("rows"))
    assert order == ["log off", "rows", "log on", "digest", "snapshot"]
    assert instance.server.asked == ["SELECT @@log_bin"]  # a load's binary log is not kept


class Renewed(FakeInstance):
    def loading_keys(self):
        return {"innodb_log_file_size": 257}


@pytest.mark.parametrize(
    ("rows", "starts"), [(1_000, [{}]), (100_000, [{"innodb_log_file_size": 257}, {}])]
)
def test_a_log_of_many_rows_is_made_anew_before_the_copy(
    tmp_path, monkeypatch, world, rows, starts
):
    monkeypatch.setattr(dataset, "_load", lambda context, server: None)
    monkeypatch.setattr(dataset, "digest_and_short_tables", lambda plan, server: ("abc", {}))
    made = making.plan(dataset=DatasetPlan(tables=1, rows=rows))
    instance = Renewed(world, ServerSpec("a", making.A), tmp_path / "a")
    context = RunContext("r", TrialQueue(made, [], 0), None, tmp_path, Progress(), world.makers)
    ensure_dataset(context, instance)
    assert instance.started_with == starts
    assert world.calls == [("start", "a")] * len(starts) + [("snapshot", "a")]
    assert not instance.server.is_alive


def test_a_load_that_fails_does_not_pretend_that_its_rows_are_safe(sparing):
    def fail(order):
        raise LoadError("the disk is full")

    load, instance, order = sparing
    with pytest.raises(LoadError, match="the disk is full"):
        load(fail)
    assert order == ["log off"]
    assert (instance.server.killed, instance.has_snapshot()) == (1, False)


def test_a_server_that_does_nothing_while_it_is_loaded_is_reported(world, server):
    world.hangs = True
    with (
        world.engine("prepare", {}) as engine,
        pytest.raises(LoadError, match="came to a halt") as caught,
    ):
        list(dataset._messages(engine, server, "prepare"))
    assert caught.value.found == "neither, at the stage prepare"


def test_a_server_that_works_without_a_word_is_waited_for(world, server, monkeypatch):
    world.hangs = True
    used_s = itertools.count(0, dataset.BUSY_S)

    def cpu_s(server):
        world.hangs = world.clock.now_s < 1000 + 5 * dataset.NO_PROGRESS_S
        return float(next(used_s))

    monkeypatch.setattr(dataset, "_cpu_s", cpu_s)
    with world.engine("cleanup", {}) as engine:
        assert [one.kind for one in dataset._messages(engine, server, "cleanup")] == ["report"]
    assert world.clock.now_s > 1000 + 5 * dataset.NO_PROGRESS_S


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

    label, driver, database = "a", "mysql", "sbtest"

    def __init__(self, *rows):
        self.rows, self.asked = list(rows), []

    def ask(self, sql):
        self.asked.append(sql)
        if not self.rows:
            raise ServerError("gone")
        return [self.rows.pop(0)]


def plan(**dataset):
    return making.plan(dataset=DatasetPlan(**dataset))


def take(plan, server):
    return dataset.digest(dataset.tables(plan, server))


def test_equal_rows_have_one_digest_and_one_row_changes_it():
    two = plan(tables=2, rows=1000)
    digests = [take(two, Server(("1000", "77"), ("1000", last))) for last in ("88", "88", "89")]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == dataset.DIGEST_LENGTH


@pytest.mark.parametrize(
    "row", [("1000.0", "77.00"), ("1e3", "7.7e1"), ("1000", "77", "a column more")]
)
def test_a_whole_number_is_taken_however_it_is_written(row):
    one = plan(tables=1, rows=1000)
    assert take(one, Server(row)) == take(one, Server(("1000", "77")))


@pytest.mark.parametrize(
    "row", [(), ("1000",), ("1000", "77.5"), ("x", "77"), ("1000", "nan"), ("1", "1e999999999")]
)
def test_an_answer_of_anything_else_is_no_digest(row):
    assert digest_and_short_tables(plan(tables=1, rows=1000), Server(row)) == ("", {})


class Named:
    """Has these tables, each of three rows."""

    def __init__(self, driver, *names):
        self.label, self.driver, self.database, self.names = "a", driver, "sbtest", names

    def ask(self, sql):
        return [(name,) for name in self.names] if "information_schema" in sql else [("3",)]


def test_tables_of_a_script_count_alike_on_an_endpoint_and_on_postgresql():
    script = WorkloadPlan(name="own.lua", script="function event() end")
    alone = plan().model_copy(update={"workloads": (script,)})
    mysql = take(alone, Named("mysql", "Jobs", "kinds"))
    assert take(alone, Named("mysql", "Jobs", "kinds", "dbdyno_dataset")) == mysql
    assert take(alone, Named("pgsql", "jobs", "kinds")) == mysql
    assert take(alone, Named("mysql", "Jobs")) != mysql


def test_large_tables_are_asked_for_in_pieces_that_are_added_up(monkeypatch):
    monkeypatch.setattr(dataset, "PIECE_ROWS", 400)
    server = Server(("400", "5"), ("400", "6"), ("200", "7"))
    pieces = take(plan(tables=1, rows=1000), server)
    assert [sql.partition("BETWEEN")[2] for sql in server.asked] == [
        " 1 AND 400",
        " 401 AND 800",
        " 801 AND 1200",
    ]
    monkeypatch.setattr(dataset, "PIECE_ROWS", 1000)
    assert take(plan(tables=1, rows=1000), Server(("1000", "18"))) == pieces


def test_tables_with_fewer_rows_than_were_sent_are_named():
    two = plan(tables=2, rows=500)
    _, short = digest_and_short_tables(two, Server(("375", "5"), ("500", "6")))
    assert short == {"sbtest1": 375}


def test_tables_are_those_of_the_layout():
    server = Server(("10", "1"))
    take(plan(layout="legacy_one", tables=1, rows=10), server)
    assert "FROM `sbtest`.`sbtest` WHERE" in server.asked[0]


def test_it_is_kept_beside_the_snapshot_with_the_loads_name(tmp_path):
    folder = tmp_path / "instance"
    assert read_record(folder) == LoadRecord()
    write_record(folder, "abc", {"sbtest1": 375})
    first = read_record(folder)
    assert (first.rows, first.short) == ("abc", {"sbtest1": 375})
    write_record(folder, "abc", {})
    assert read_record(folder).name != first.name
    (folder / RECORD).write_text("[1]")
    assert read_record(folder) == LoadRecord()


def test_a_server_that_does_not_answer_leaves_it_open():
    assert digest_and_short_tables(plan(tables=1, rows=10), Server()) == ("", {})
    with pytest.raises(ServerError):
        take(plan(tables=1, rows=10), Server())
