"""Scripted servers of MySQL's protocol: a MySQL, a go-mysql-server (what Dolt is built on), and a
TiDB that answers as version 7.5 does.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle

from dbdyno.servers.base import Endpoint
from support.rogue_server import END, OK, Caller, column, greeting, rogue

Rows = list[tuple[str, ...]]
QUIT = b"\x01"
REFUSED = 1148  # on which a load sends INSERT in place of LOAD DATA
ROOM_OF_A_BYTE = 250


class ScriptedServer:
    """Answers a statement by the first key of `answers` that stands in it; refuses any other.

    An answer of None is an OK without rows.
    """

    def __init__(self, version: str, answers: Mapping[str, Rows | None]) -> None:
        self.version = version
        self.answers: dict[str, Rows | None] = {
            "SELECT VERSION()": [(version,)],
            "SELECT 1": [("1",)],
            **dict.fromkeys(("SET NAMES", "SET autocommit", "USE ")),
            **answers,
        }
        self.asked: list[str] = []

    def reply(self, caller: Caller, sql: str) -> None:
        self.asked.append(sql)
        key = next((key for key in self.answers if key in sql), None)
        if key is None:
            caller.send(b"\xff" + struct.pack("<H", REFUSED) + b"#42000it is not allowed here")
        elif (rows := self.answers[key]) is None:
            caller.send(OK)
        else:
            _send_rows(caller, rows)


def _send_rows(caller: Caller, rows: Rows) -> None:
    width = len(rows[0]) if rows else 1
    for packet in (bytes([width]), *(column(b"v") for _ in range(width)), END):
        caller.send(packet)
    for row in rows:
        caller.send(b"".join(_text(value) for value in row))
    caller.send(END)


def _text(value: str) -> bytes:
    text = value.encode()
    size = (
        bytes([len(text)])
        if len(text) <= ROOM_OF_A_BYTE
        else b"\xfc" + len(text).to_bytes(2, "little")
    )
    return size + text


@contextmanager
def serving(*servers: ScriptedServer) -> Iterator[Endpoint]:
    """An address on loopback; before several servers a balancer, which takes them in turn."""
    turns = cycle(servers)

    def talk(caller: Caller) -> None:
        server = next(turns)
        caller.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # packets come alone
        caller.send(greeting(version=server.version.encode()))
        caller.take()
        caller.send(OK)
        while not (asked := caller.take()).startswith(QUIT):
            server.reply(caller, asked[1:].decode())

    with rogue(talk) as (port, _):
        yield Endpoint("127.0.0.1", port, None)


def mysql(uuid: str, questions: int) -> ScriptedServer:
    """A MySQL of this `server_uuid` that has counted so many questions."""
    variables = {"server_uuid": uuid, "innodb_flush_log_at_trx_commit": "1"}
    status = {"Uptime": "100", "Questions": str(questions), "Innodb_page_size": "16384"}
    return ScriptedServer(
        "8.0.33",
        {
            "SHOW GLOBAL VARIABLES": list(variables.items()),
            "SHOW GLOBAL STATUS": list(status.items()),
        },
    )


def go_mysql_server() -> ScriptedServer:
    """A server with all of MySQL's counters, few of which count, and with InnoDB's settings."""
    variables = {"server_uuid": "c-3", "innodb_buffer_pool_size": "134217728", "log_bin": "0"}
    variables |= {"performance_schema": "0", "autocommit": "1"}
    counted = {"Questions": "40", "Com_select": "7", "Innodb_buffer_pool_pages_total": "1"}
    shown = {**dict.fromkeys(("Uptime", "Com_commit", "Innodb_rows_read"), "0"), **counted}
    return ScriptedServer(
        "8.0.31",
        {
            "SHOW GLOBAL VARIABLES": list(variables.items()),
            "SHOW GLOBAL STATUS": list(shown.items()),
            "EXPLAIN SELECT": [("1", "SELECT", *["NULL"] * 9, "")],
        },
    )


INERT = {
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_buffer_pool_size": "134217728",
    "innodb_doublewrite": "1",
    "log_bin": "0",
    "sync_binlog": "1",
    "performance_schema": "0",
}
"""Variables of MySQL that TiDB shows to clients, and that change nothing."""
STATUS = {
    "Ssl_cipher": "",
    "Ssl_verify_mode": "0",
    "ddl_schema_version": "58",
    "server_id": "0d5a1c9b-4c11",
    "Uptime": "757",
}
TABLE_READER = [
    ("TableReader_6", "100.00", "root", "", "data:TableRangeScan_5"),
    ("└─TableRangeScan_5", "100.00", "cop[tikv]", "table:sbtest1", "range:[101,200]"),
]
INDEX_LOOK_UP = [
    ("IndexLookUp_7", "4.00", "root", "", ""),
    ("├─IndexRangeScan_5(Build)", "4.00", "cop[tikv]", "table:sbtest1, index:k_1(k)", ""),
    ("└─TableRowIDScan_6(Probe)", "4.00", "cop[tikv]", "table:sbtest1", "keep order:false"),
]
UPDATE = [
    ("Update_4", "N/A", "root", "", "N/A"),
    ("└─Point_Get_1", "1.00", "root", "table:sbtest1", "handle:101, lock"),
]
ABOUT = "Release Version: v7.5.1\nEdition: Community\nGit Commit Hash: 7d16cc79\nStore: tikv"
CONFIG = [
    ("tidb", "10.0.0.1:4000", "log.level", "info"),
    ("tidb", "10.0.0.2:4000", "log.level", "error"),
    ("tidb", "10.0.0.1:4000", "advertise-address", "10.0.0.1"),
    ("tidb", "10.0.0.1:4000", "path", "10.0.0.3:2379"),
    ("tidb", "10.0.0.1:4000", "token-limit", "1000"),
    ("tikv", "10.0.0.4:20160", "server.grpc-concurrency", "5"),
    ("tikv", "10.0.0.4:20160", "storage.data-dir", "/data/tikv"),
    ("tikv", "10.0.0.4:20160", "security.secret-access-key", "0815"),
]
NODES = [("pd", "7.5.1", "1"), ("tidb", "7.5.1", "2"), ("tikv", "7.5.1", "3")]


def tidb(hostname: str = "tidb-0", uptime_s: int = 757) -> ScriptedServer:
    """An SQL node of a TiDB; all nodes of a cluster have one uuid and one summary."""
    variables = {"hostname": hostname, "port": "4000", "server_uuid": "same", **INERT}
    variables |= {"tidb_txn_mode": "pessimistic"}
    return ScriptedServer(
        "5.7.25-TiDB-v7.5.1",
        {
            "SHOW GLOBAL VARIABLES": list(variables.items()),
            "SHOW GLOBAL STATUS": list({**STATUS, "Uptime": str(uptime_s)}.items()),
            "SELECT tidb_version()": [(ABOUT,)],
            "cluster_info": NODES,
            "SHOW CONFIG": CONFIG,
            "cluster_statements_summary GROUP": summary(commits=100, changed=400),
            "SELECT COUNT(*), COALESCE(SUM(": [("1000.0", "2136990283958.0")],
            "EXPLAIN FORMAT=TRADITIONAL UPDATE": UPDATE,
            "WHERE k IN": INDEX_LOOK_UP,
            "EXPLAIN FORMAT=TRADITIONAL": TABLE_READER,
            "ANALYZE TABLE": None,
        },
    )


def summary(commits: int, changed: float, begin: str = "2026-11-27 10:00:00") -> Rows:
    """Statements of the cluster in the half hour from `begin` on."""
    return [
        (begin, "Commit", str(commits), "0"),
        (begin, "Update", str(2 * commits), str(changed)),
        (begin, "", "3", "0"),
    ]


class LoadedTidb(ScriptedServer):
    """A node whose cluster takes rows, which it forgets, counts commits and keeps dbdyno's mark."""

    def __init__(self, cluster: LoadedTidb | None = None) -> None:
        node = tidb("tidb-1" if cluster else "tidb-0")
        super().__init__(node.version, node.answers)
        self.mark: dict[str, str] = cluster.mark if cluster else {}
        self.commits: list[None] = cluster.commits if cluster else []

    def reply(self, caller: Caller, sql: str) -> None:
        if sql.startswith("INSERT INTO") and "dbdyno_dataset" in sql:
            self.mark |= dict(re.findall(r"\('(\w+)', '(\w+)'\)", sql))
        if sql.upper() == "COMMIT":
            self.commits.append(None)
        now = summary(commits=len(self.commits), changed=4 * len(self.commits))
        tables = [(name,) for name in ("sbtest1", "dbdyno_dataset") if self.mark]
        own = {
            "cluster_statements_summary GROUP": now,
            "SELECT table_name": tables,
            "SELECT name, value": list(self.mark.items()),
            "MAX(id)": [("1000",)],
            "SELECT 1 FROM information_schema.schemata": [("1",)],
        }
        key = next((key for key in own if key in sql), None)
        if key is not None:
            _send_rows(caller, own[key])
        elif sql.startswith(("SHOW", "LOAD DATA")) or any(known in sql for known in self.answers):
            super().reply(caller, sql)
        elif sql.startswith("SELECT"):
            _send_rows(caller, [("1",)])
        else:
            self.asked.append(sql)
            caller.send(OK)
