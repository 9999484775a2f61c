import pytest

from dbdyno.errors import ServerError, UsageError
from dbdyno.plan.plan import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.foreign import endpoint as module

REFERENCE = "mysql://bench@db1:4000,db2:4000/sbtest"


class Dataset:
    """Remembers what was asked of it."""

    def __init__(self, label, database, dataset, ask):
        self.about, self.calls, self.wrong = (label, database, dataset), [], "not loaded"

    def begin(self):
        self.calls.append("begin")

    def finish(self):
        self.calls.append("finish")
        self.wrong = None

    def is_loaded(self):
        return self.wrong is None

    def data_bytes(self):
        return 4096

    def trouble(self):
        return self.wrong


@pytest.fixture
def instance(monkeypatch, tmp_path):
    monkeypatch.setenv("DB", "secret-4711")
    monkeypatch.setattr(module, "EndpointDataset", Dataset)
    monkeypatch.setattr(module.EndpointServer, "login", lambda self: None)
    spec = ServerSpec("tidb", REFERENCE, password_env="DB", dataset="abc")
    return open.instance(spec, tmp_path / "x", str)


def test_rows_are_loaded_once_and_looked_at_afterwards(instance, tmp_path):
    assert instance._dataset.about == ("tidb", "sbtest", "abc")
    assert not instance.has_snapshot()
    with pytest.raises(ServerError, match="no loaded dataset to measure"):
        instance.data_bytes()
    server = instance.start()
    assert (server.endpoint.host, server.endpoint.others[0].host) == ("db1", "db2")
    assert (server.credentials.user, server.credentials.password) == ("bench", "secret-4711")
    assert server.database == "sbtest"
    instance.snapshot()
    assert instance.has_snapshot()
    assert instance.data_bytes() == 4096
    instance.restore()
    assert instance.start() is server
    instance.close()
    assert instance._dataset.calls == ["begin", "finish"]
    assert list(tmp_path.iterdir()) == []  # an endpoint leaves no files here


def test_a_dataset_that_changed_cannot_be_restored(instance):
    instance._dataset.wrong = "sbtest1 ends at id 9"
    with pytest.raises(ServerError, match="cannot restore them") as caught:
        instance.restore()
    assert caught.value.found == "sbtest1 ends at id 9"


def test_a_refused_login_says_where_the_password_comes_from(instance, monkeypatch):
    def refused(self):
        raise ServerError("refused", found="OperationalError: (1045, 'Access denied')")

    monkeypatch.setattr(module.EndpointServer, "login", refused)
    with pytest.raises(ServerError) as caught:
        instance.start()
    assert caught.value.hint == "check the user's rights and the password in DB"
    assert "secret-4711" not in str(caught.value)


def test_settings_are_the_owners(instance, tmp_path):
    with pytest.raises(UsageError, match="only reads them"):
        instance.start({"sync_binlog": 1})
    with pytest.raises(UsageError, match="only reads them") as caught:
        open.instance(ServerSpec("tidb", REFERENCE, {"sync_binlog": 1}), tmp_path, str)
    assert caught.value.found == "sync_binlog"


def test_replicas_are_the_owners_too(tmp_path):
    spec = ServerSpec("tidb", REFERENCE, topology=TopologyPlan(replicas=1))
    with pytest.raises(UsageError, match="replicas of an endpoint"):
        open.instance(spec, tmp_path, str)
