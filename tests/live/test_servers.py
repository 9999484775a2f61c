"""Real servers: got, started with proven settings, stopped, copied, and never left behind."""

import os
import pwd
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pymysql
import pytest

from dbdyno.errors import ServerError
from dbdyno.servers import base, open
from dbdyno.servers.process import server_user
from dbdyno.servers.reference import find
from support.counters import settled
from support.lab_process import GONE_S, lives
from support.real_server import SMALL_REDO

pytestmark = pytest.mark.live
REFERENCES = ["mysql:5.7.22", "mysql:8.0.15"]
SMALL = {**SMALL_REDO, "innodb_buffer_pool_size": "128M"}


def quiet(text: str) -> None:
    assert text


@pytest.fixture(scope="module", params=REFERENCES)
def spec(request):
    return base.ServerSpec("fast", request.param, SMALL)


@pytest.fixture(scope="module")
def instance(spec):
    with TemporaryDirectory(prefix="dbdyno-live-") as name:
        Path(name).chmod(0o755)
        made = open.instance(spec, Path(name), quiet)
        yield made
        made.close()


@pytest.fixture(scope="module")
def server(instance):
    """A running server; the last test of a version ends it."""
    return instance.start()


def ask(server, sql, password=None):
    """Rows answered to the load user over TCP, as the engine would ask."""
    connection = pymysql.connect(
        host=server.endpoint.host,
        port=server.endpoint.port,
        user=server.credentials.user,
        password=server.credentials.password if password is None else password,
        database=server.database,
        autocommit=True,
    )
    try:
        with connection.cursor() as cursor:
            for statement in sql.split(";"):
                cursor.execute(statement)
            return cursor.fetchall()
    finally:
        connection.close()


def fill(server):
    doublings = "; INSERT INTO t (pad) SELECT pad FROM t" * 12
    ask(
        server,
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, pad VARCHAR(200))"
        "; INSERT INTO t (pad) VALUES (REPEAT('x', 200))" + doublings,
    )
    return ask(server, "CHECKSUM TABLE t")


def test_a_started_server_is_the_one_asked_for_with_its_settings_in_force(server, spec):
    settings = server.settings()
    assert server.version() == find(spec.reference).version
    assert server.alive()
    assert psutil.Process(server.pid).name() == "mysqld"
    assert settings["innodb_buffer_pool_size"] == str(128 * 1024**2)
    assert settings["log_bin"] == "OFF"
    assert settings["performance_schema"] == "OFF"
    assert settings["port"] == str(server.endpoint.port)
    assert server.status()["Uptime"] >= 0
    assert ask(server, "SELECT DATABASE(), CURRENT_USER()") == (("sbtest", "dbdyno@%"),)


def test_an_observer_asks_on_a_connection_of_its_own(server):
    assert isinstance(server, base.Observable)
    before = server.status()["Connections"]
    observer = server.observer()
    first, second = observer.read(), observer.read()
    assert first["Connections"] == second["Connections"] == before + 1
    assert second["Innodb_buffer_pool_pages_total"] > 0
    observer.close()
    assert settled(server)["Threads_connected"] == 1


def test_it_does_not_run_as_root_nor_show_a_password(instance, server):
    process = psutil.Process(server.pid)
    mine = pwd.getpwuid(os.geteuid()).pw_name
    user = server_user()
    assert process.username() == (mine if user is None else user.name)
    secret = server.credentials.password
    told = [path.read_text() for path in (instance.folder / "server").glob("*.*") if path.is_file()]
    assert secret not in " ".join([*process.cmdline(), *told, repr(server.credentials)])
    listening = {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_a_wrong_password_is_refused(server):
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        ask(server, "SELECT 1", password="wrong")


def test_an_unknown_setting_is_quoted_from_the_servers_log(spec, folder):
    wrong = base.ServerSpec("odd", spec.reference, {**SMALL, "innodb_wonder": 1})
    made = open.instance(wrong, folder, quiet)
    with pytest.raises(ServerError, match="odd: the server did not start") as caught:
        made.start()
    assert "unknown variable 'innodb_wonder=1'" in (caught.value.found or "")
    made.close()


def test_a_rounded_setting_is_an_error_with_both_values(spec, folder):
    rounded = base.ServerSpec("odd", spec.reference, {**SMALL, "innodb_buffer_pool_size": "300M"})
    made = open.instance(rounded, folder, quiet)
    with pytest.raises(ServerError, match="did not take innodb_buffer_pool_size") as caught:
        made.start()
    assert caught.value.wanted == "innodb_buffer_pool_size = 300M"
    assert caught.value.found == "innodb_buffer_pool_size = '402653184'"
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(folder) in str(p.info)]
    made.close()


def test_data_outlives_a_stop_a_snapshot_brings_it_back_and_a_kill_is_told(spec, instance, server):
    before = fill(server)
    with pytest.raises(ServerError, match="running server cannot be copied"):
        instance.snapshot()
    server.stop()
    assert not server.alive()
    assert not instance.has_snapshot()
    instance.snapshot()
    again = instance.start()
    assert ask(again, "CHECKSUM TABLE t") == before
    assert again.credentials.password != server.credentials.password
    ask(again, "DELETE FROM t WHERE id < 1000; CREATE TABLE other (id INT)")
    again.stop()
    instance.restore()
    restored = instance.start()
    assert ask(restored, "CHECKSUM TABLE t") == before
    assert ask(restored, "SHOW TABLES") == (("t",),)
    os.kill(restored.pid, signal.SIGKILL)
    limit = time.monotonic() + GONE_S
    while restored.alive() and time.monotonic() < limit:
        time.sleep(0.01)
    with pytest.raises(ServerError, match=r"had ended before it was stopped \(SIGKILL\)"):
        restored.stop()
    with pytest.raises(ServerError, match="did not stop cleanly"):
        instance.snapshot()
    instance.close()
    later = open.instance(spec, instance.folder, quiet)
    assert later.has_snapshot()  # a lab that resumes finds it
    later.close()
    other = base.ServerSpec("fast", spec.reference, {**SMALL, "innodb_file_per_table": False})
    different = open.instance(other, instance.folder, quiet)
    assert not different.has_snapshot()  # but not for another format
    different.close()


def test_a_newer_one_takes_the_common_settings_under_their_new_names_and_every_of_a_list(folder):
    asked = {"innodb_monitor_enable": ("module_log", "module_trx", "module_buffer")}
    made = open.instance(base.ServerSpec("new", "mysql:8.0.31", asked), folder, quiet)
    server = made.start()
    assert server.version() == "8.0.31"
    assert server.settings()["innodb_redo_log_capacity"] == str(512 * 1024**2)
    modules = server.ask(
        "SELECT DISTINCT subsystem FROM information_schema.innodb_metrics WHERE status = 'enabled'"
    )
    assert {"transaction", "buffer", "log"} <= {name for (name,) in modules}
    server.stop()
    made.close()


@pytest.mark.parametrize("name", ["Meß werte #1 測定's $x", "long-" * 30], ids=["odd", "long"])
def test_a_folder_may_have_an_odd_or_a_long_name(folder, name):
    made = open.instance(base.ServerSpec("odd", "mysql:5.7.22", SMALL), folder / name, quiet)
    server = made.start()
    assert made.folder.is_relative_to(folder)
    assert ask(server, "SELECT 1") == ((1,),)
    socket = server.endpoint.socket
    server.stop()
    made.close()
    assert not socket.exists()


def test_no_server_outlives_a_lab_that_is_killed(folder):
    lab = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from dbdyno.servers import base, open
        spec = base.ServerSpec("fast", {REFERENCES[1]!r}, {SMALL!r})
        server = open.instance(spec, Path({str(folder)!r}), lambda text: None).start()
        print(server.pid, flush=True)
        time.sleep(600)
        """
    )
    root = str(Path(open.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", lab], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root}
    ) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        assert psutil.Process(pid).name() == "mysqld"
        running.kill()
    limit = time.monotonic() + GONE_S
    while lives(pid):
        assert time.monotonic() < limit, "the server outlived its lab"
        time.sleep(0.02)
