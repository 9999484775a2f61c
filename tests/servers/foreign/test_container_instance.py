import re
from itertools import pairwise

import pytest

from dbdyno.errors import ProvisionError, ServerError, UsageError
from dbdyno.plan.systems import TopologyPlan
from dbdyno.servers import open
from dbdyno.servers.base import ServerSpec
from dbdyno.servers.foreign import container, container_instance, endpoint
from dbdyno.servers.mysql import readback
from support.docker_on_path import IMAGE, REFERENCE, Docker

SPEC = ServerSpec("boxed", REFERENCE, {"innodb_buffer_pool_size": "512M"})


class Client:
    """Logs in at once, remembers what was ordered by whom."""

    orders, refuse = [], ""

    def __init__(self, label, place, who, database=""):
        self.label, self.who = label, who

    def try_login(self):
        return True

    def ask(self, sql):
        if Client.refuse and sql.startswith(Client.refuse):
            raise ServerError(f"did not answer {sql!r}", found=sql)
        Client.orders.append((self.who.user, sql))
        return [("8.0.15", "x")]

    def close(self):
        return None


@pytest.fixture
def docker(monkeypatch, tmp_path):
    monkeypatch.setattr(Client, "orders", [])
    monkeypatch.setattr(Client, "refuse", "")
    for module in (container, container_instance, endpoint):
        monkeypatch.setattr(module, "MysqlClient", Client)
    monkeypatch.setattr(readback, "check", lambda label, asked, shown: None)
    return Docker(monkeypatch, tmp_path)


@pytest.fixture
def instance(docker, tmp_path):
    made = open.instance(SPEC, tmp_path / "boxed", str)
    yield made
    made.close()


def passwords(docker):
    return re.findall(r"PASSWORD=(\w+)", str(list(docker.containers().values())))


def test_a_new_container_listens_on_loopback_with_the_settings_asked_for(docker, instance):
    server = instance.start()
    words = docker.first("create")
    after = dict(pairwise(words))
    assert after["--publish"] == "127.0.0.1::3306"
    assert after["--volume"].endswith("-data:/var/lib/mysql")
    assert after["--label"].startswith("dbdyno.folder=")
    arguments = words[words.index(IMAGE) + 1 :]
    assert "--innodb_buffer_pool_size=512M" in arguments
    assert {"--skip_log_bin", "--skip_ssl", "--innodb_flush_log_at_trx_commit=1"} <= {*arguments}
    assert server.endpoint.host == "127.0.0.1"
    assert server.alive()
    assert server.pid > 0


def test_no_password_stands_in_a_command_and_no_file_with_one_stays(docker, instance, tmp_path):
    server = instance.start()
    (root,) = passwords(docker)
    secret = server.credentials.password
    assert root != secret
    assert len(root) == len(secret) == 48
    assert not any(word in str(docker.calls()) for word in (root, secret))
    environment = docker.first("create")[docker.first("create").index("--env-file") + 1]
    assert not (tmp_path / environment).exists()
    own = [path.read_text() for path in instance.folder.rglob("*") if path.is_file()]
    assert secret not in str(own)


def test_root_makes_the_loads_account_on_new_data_and_the_server_itself_on_old(docker, instance):
    server = instance.start()
    made = [sql for user, sql in Client.orders if user == "root"]
    assert any(sql.startswith("GRANT ALL ON *.* TO 'dbdyno'@'%'") for sql in made)
    assert "CREATE DATABASE IF NOT EXISTS sbtest" in made
    server.stop()
    Client.orders.clear()
    again = instance.start()
    assert not [sql for user, sql in Client.orders if user == "root"]
    assert docker.calls()[-1][0] != "create"
    (kept,) = docker.containers()
    sql = (docker.folder / "containers" / kept / "rootfs" / "dbdyno.sql").read_text()
    assert again.credentials.password in sql
    assert again.credentials.password != server.credentials.password
    assert "--init-file=/dbdyno.sql" in docker.containers()[kept]["words"]
    assert passwords(docker) == []


def test_stopping_is_by_id_and_removes_the_container_alone(docker, instance):
    server = instance.start()
    server.stop(7)
    assert docker.first("stop") == ["stop", "-t", "7", server.container]
    assert docker.containers() == {}
    assert len(docker.volumes()) == 1
    assert not server.alive()
    server.stop()  # once is enough
    assert len([call for call in docker.calls() if call[0] == "stop"]) == 1


def test_killing_is_by_id_and_waits_for_nothing(docker, instance):
    server = instance.start()
    server.kill()
    assert [call for call in docker.calls() if call[0] == "stop"] == []
    assert docker.containers() == {}
    assert not server.alive()


def data(docker, kind):
    (name,) = [name for name in docker.volumes() if name.endswith(kind)]
    return docker.folder / "volumes" / name / "ibdata1"


def test_a_snapshot_brings_the_data_back(docker, instance, tmp_path):
    server = instance.start()
    data(docker, "-data").write_text("loaded")
    with pytest.raises(ServerError, match="running server cannot be copied"):
        instance.snapshot()
    server.stop()
    assert not instance.has_snapshot()
    instance.snapshot()
    data(docker, "-data").write_text("changed")
    instance.restore()
    assert data(docker, "-data").read_text() == "loaded"
    instance.close()
    assert [name[-5:] for name in docker.volumes()] == ["-copy"]
    later = open.instance(SPEC, tmp_path / "boxed", str)
    assert later.has_snapshot()  # a lab that resumes finds it
    later.start().stop()
    assert data(docker, "-data").read_text() == "loaded"
    later.close()
    other = ServerSpec("boxed", REFERENCE, {"innodb_page_size": "8K"})
    assert not open.instance(other, tmp_path / "boxed", str).has_snapshot()


def test_a_restore_that_was_broken_off_is_made_again_before_a_start(docker, instance, monkeypatch):
    instance.start().stop()
    instance.snapshot()
    data(docker, "-copy").write_text("loaded")

    def interrupted(self, source, target):
        data(docker, "-data").write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(container_instance.ContainerInstance, "_copy_volume", interrupted)
        with pytest.raises(KeyboardInterrupt):
            instance.restore()
    instance.start().stop()
    assert data(docker, "-data").read_text() == "loaded"


def test_a_container_that_copies_is_known_again_by_whoever_clears_up(docker, instance):
    instance.start().stop()
    instance.snapshot()
    (copying,) = [call for call in docker.calls() if call[-1].startswith("cp -a")]
    assert copying[copying.index("--label") + 1] == instance._label


def test_a_container_that_ends_at_once_is_an_error_with_the_end_of_its_log(
    docker, instance, monkeypatch
):
    def says(self, *words, asked=container.ContainerProgram.says):
        return None if words[0] == "port" else asked(self, *words)

    monkeypatch.setattr(container.ContainerProgram, "says", says)
    monkeypatch.setattr(container_instance, "log_end_of", lambda *_: "[ERROR] unknown variable")
    with pytest.raises(ServerError, match="it ended as it began") as caught:
        instance.start()
    assert caught.value.found == "[ERROR] unknown variable"
    assert docker.containers() == {}


def test_a_snapshots_tables_have_a_size(docker, instance):
    with pytest.raises(ServerError, match="no snapshot to measure"):
        instance.data_bytes()
    server = instance.start()
    (volume,) = docker.volumes()
    tables = docker.folder / "volumes" / volume / "sbtest"
    tables.mkdir()
    (tables / "sbtest1.ibd").write_bytes(bytes(2048))
    server.stop()
    instance.snapshot()
    assert instance.data_bytes() == 2048


def test_what_a_lab_that_died_left_is_removed_by_the_next(docker, instance, tmp_path):
    server = instance.start()
    instance._watcher._waiting.stdin.close()  # as the kernel does when the lab is killed
    instance._watcher._waiting.wait(60)
    assert docker.containers() == {}
    assert not server.alive()
    left = open.instance(SPEC, tmp_path / "other", str)
    left.start()
    open.instance(SPEC, tmp_path / "other", str).close()
    assert docker.containers() == {}
    left._remove_container()


def test_a_container_that_died_says_so_and_gives_no_snapshot(docker, instance):
    server = instance.start()
    (docker.folder / "containers" / server.container / "log").write_text("out of memory")
    docker_rm = instance._program
    docker_rm.call("stop", server.container)
    with pytest.raises(ServerError, match="did not live until it was stopped") as caught:
        server.stop()
    assert caught.value.found == "out of memory"
    assert docker.containers() == {}
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()


def test_the_error_of_a_refused_account_does_not_hold_its_password(docker, instance):
    Client.refuse = "ALTER USER 'dbdyno'"
    with pytest.raises(ServerError, match="account could not be made") as caught:
        instance.start()
    assert caught.value.found == "the server refused ALTER USER 'dbdyno'@'%' …"
    assert not re.search(r"[0-9a-f]{48}", str(caught.value))
    assert docker.containers() == {}


def test_a_plugin_that_a_container_did_not_load_is_an_error(docker, tmp_path, monkeypatch):
    def ask(self, sql):
        return [] if sql == "SHOW PLUGINS" else [("8.0.15", "x")]

    monkeypatch.setattr(Client, "ask", ask)
    spec = ServerSpec("boxed", REFERENCE, {"plugin_load_add": "audit_log.so"})
    made = open.instance(spec, tmp_path / "boxed", str)
    with pytest.raises(ServerError, match="boxed: the server did not load audit_log as asked"):
        made.start()
    assert docker.containers() == {}
    made.close()


def test_replicas_are_refused_before_an_image_is_looked_at(docker, tmp_path):
    replicas = ServerSpec("x", REFERENCE, topology=TopologyPlan(replicas=1))
    with pytest.raises(UsageError, match="replicas of containers"):
        open.instance(replicas, tmp_path / "x", str)
    assert not (docker.folder / "calls.jsonl").exists()


ROGUES = {
    "volumes that are no JSON": ("image", "{"),
    "brackets without end": ("image", "[" * 100_000),
    "volumes that are no object": ("image", '["/data"]'),
    "a volume that is a mount of this machine": ("image", '{"/data:/etc": {}}'),
    "a volume with a way up": ("image", '{"/var/../../etc": {}}'),
    "a volume with a line of the environment": ("image", '{"/a\\nMYSQL_ROOT_PASSWORD=x": {}}'),
    "a version of thousands of digits": ("run", f"mysqld  Ver {'9' * 5000}.0.15"),
    "megabytes for a version": ("run", "\x1b[2J" * 1_000_000),
    "no id": ("create", ""),
    "an option for an id": ("create", "--all"),
    "a port that is none": ("port", "127.0.0.1:99999"),
}


@pytest.mark.parametrize("rogue", ROGUES)
def test_what_an_image_or_its_program_says_is_checked(docker, tmp_path, monkeypatch, rogue):
    word, said = ROGUES[rogue]

    def call(self, *words, asked=container.ContainerProgram.call, **limits):
        return said if words[0] == word else asked(self, *words, **limits)

    monkeypatch.setattr(container.ContainerProgram, "call", call)
    with pytest.raises((ProvisionError, ServerError)) as caught:
        open.instance(SPEC, tmp_path / "boxed", str).start()
    assert len(str(caught.value)) < 9000
    assert not [call for call in docker.calls() if "--all" in call[1:] and call[0] == "rm"]


@pytest.mark.parametrize("said", ["many /from/sbtest", "-5 /from", f"{'9' * 5000} /from", "1\n\n"])
def test_a_size_that_is_none_is_an_error(docker, instance, monkeypatch, said):
    instance.start().stop()
    instance.snapshot()
    monkeypatch.setattr(container.ContainerProgram, "call", lambda *_, **__: said)
    with pytest.raises(ServerError, match="does not say the size"):
        instance.data_bytes()
