"""Each system's dataset has a folder of its own, and a server that dies while loading says so."""

import os
import signal

import pytest
from tests.experiment.test_runner import small, start, store  # noqa: F401

from dbdyno.errors import LoadError, ServerError
from dbdyno.experiment import dataset
from dbdyno.experiment.dataset import folder_of
from dbdyno.plan.plan import DatasetPlan, SystemPlan
from support import making
from support.fakes import Progress, World


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
    def load_and_die(lab, server):
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
        raise LoadError("the engine could not load the dataset", found="Lost connection")

    monkeypatch.setattr(dataset, "_load", load_and_die)
    with pytest.raises(ServerError, match="died while the dataset was loaded") as caught:
        start(store, small(), World())
    assert "Lost connection; its last words: [ERROR] got signal 9" in caught.value.found
