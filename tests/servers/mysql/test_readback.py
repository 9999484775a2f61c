import pytest

from dbdyno.errors import ServerError
from dbdyno.servers.mysql import readback
from dbdyno.servers.mysql.settings import normalise


@pytest.mark.parametrize(
    ("asked", "effective"),
    [
        ("256M", "268435456"),
        ("1g", "1073741824"),
        ("1", "ON"),
        ("off", "0"),
        ("FALSE", "OFF"),
        ("row", "ROW"),
        ("0.5", "0.500000"),
        ("10", "10.000000"),
        ("", ""),
        ("+8:00", "+08:00"),
        ("utf8", "utf8mb3"),  # MySQL from 8.0.28 on, MariaDB from 10.6 on
        ("utf8mb3", "utf8"),
        ("utf8_general_ci", "utf8mb3_general_ci"),
    ],
)
def test_spellings_of_one_value_are_the_same(asked, effective):
    assert readback.same_value(asked, effective)


@pytest.mark.parametrize(
    ("asked", "effective"),
    [
        *(("300M", "402653184"), ("1", "2"), ("ON", "2"), ("O_DIRECT", ""), ("1024", "214")),
        *(("", "0"), ("utf8", "utf8mb4"), ("utf8_bin", "utf8mb3_general_ci")),
    ],
)
def test_another_value_is_not(asked, effective):
    assert not readback.same_value(asked, effective)


def test_every_difference_is_named_with_both_values():
    asked = {"innodb_buffer_pool_size": "300M", "max_connections": "5000", "sync_binlog": "1"}
    shown = {
        "innodb_buffer_pool_size": "402653184",
        "max_connections": "214",
        "sync_binlog": "1",
    }
    with pytest.raises(ServerError) as caught:
        readback.check("fast", asked, shown)
    error = caught.value
    assert error.message.startswith(
        "fast: the server did not take innodb_buffer_pool_size, max_con"
    )
    assert error.wanted == "innodb_buffer_pool_size = 300M; max_connections = 5000"
    assert error.found == "innodb_buffer_pool_size = '402653184'; max_connections = '214'"


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"log_bin": "OFF"}, {"log_bin": "OFF"}),
        ({"log_bin": "mine"}, {"log_bin": "ON"}),
        ({"ssl": "OFF"}, {"have_ssl": "DISABLED"}),
        ({"ssl": "ON"}, {"have_ssl": "YES"}),
        ({"ssl": "OFF"}, {"have_ssl": "NO"}),
        ({"ssl": "OFF"}, {"tls_version": ""}),
        ({"ssl": "ON"}, {"tls_version": "TLSv1.2,TLSv1.3"}),
        ({"transaction_isolation": "READ-COMMITTED"}, {"tx_isolation": "READ-COMMITTED"}),
        ({"default_time_zone": "+00:00"}, {"time_zone": "+00:00"}),
        ({"sql_mode": "TRADITIONAL"}, {"sql_mode": "STRICT_ALL_TABLES,TRADITIONAL"}),
        ({"sql_mode": ""}, {"sql_mode": ""}),
        ({"optimizer_switch": "mrr=off"}, {"optimizer_switch": "icp=on,mrr=off"}),
        ({"plugin_load_add": "x.so"}, {}),
        ({"symbolic_links": "0"}, {"have_symlink": "DISABLED"}),
        ({"memlock": "ON"}, {"locked_in_memory": "ON"}),
        (normalise({"skip-character-set-client-handshake": True}), {}),
        ({"performance_schema_consumer_events_waits_current": "ON"}, {}),
    ],
)
def test_settings_shown_in_another_way_are_understood(asked, shown):
    assert readback.check("fast", asked, shown) is None


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"log_bin": "OFF"}, {"log_bin": "ON"}),
        ({"log_bin": "mine"}, {"log_bin": "OFF"}),
        ({"ssl": "OFF"}, {"have_ssl": "YES"}),
        ({"ssl": "OFF"}, {"tls_version": "TLSv1.3"}),
        ({"transaction_isolation": "READ-COMMITTED"}, {"tx_isolation": "REPEATABLE-READ"}),
        ({"symbolic_links": "0"}, {"have_symlink": "YES"}),
        ({"sql_mode": ""}, {"sql_mode": "ANSI"}),
        ({"sql_mode": "ANSI"}, {"sql_mode": ""}),
        ({"innodb_wonder": "1"}, {}),
    ],
)
def test_and_their_opposites_are_errors(asked, shown):
    ((name, text),) = asked.items()
    found = "; ".join(map(repr, shown.values())) or "no such variable"
    with pytest.raises(ServerError, match=f"did not take {name} as asked") as caught:
        readback.check("fast", asked, shown)
    assert (caught.value.wanted, caught.value.found) == (f"{name} = {text}", f"{name} = {found}")


SHOWN = [
    ("binlog", "ACTIVE", "STORAGE ENGINE", "", "GPL"),
    ("THREAD_POOL", "ACTIVE", "DAEMON", "thread_pool.so", "GPL"),
    ("TP_STATE", "ACTIVE", "INFORMATION SCHEMA", "thread_pool.so", "GPL"),
    ("clone", "DISABLED", "CLONE", "mysql_clone.so", "GPL"),
]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"plugin_load": ""},
        {"plugin_load_add": "thread_pool.so"},
        {"plugin_load": "tp=thread_pool.so; thread_pool"},
        {"plugin_load_add": ("thread_pool.so", "TP_STATE=thread_pool.so")},
    ],
)
def test_loaded_plugins_are_found_by_their_file(asked):
    assert readback.check_plugins("fast", normalise(asked), SHOWN) is None


def test_each_plugin_of_all_lists_must_be_there_and_active():
    clone = ("thread_pool.so", "x=mysql_clone.so; thread_pool.so")
    asked = normalise({"plugin_load": clone, "plugin_load_add": "thread_pool.so;other.so"})
    with pytest.raises(ServerError) as caught:
        readback.check_plugins("fast", asked, SHOWN)
    assert caught.value.message == "fast: the server did not load mysql_clone, other as asked"
    assert caught.value.found == "mysql_clone.so is DISABLED; other.so is not loaded"
