import json

from dbdyno.servers.postgres import client as status


def test_only_views_that_the_server_has_are_asked_for():
    sql = status.question(["pg_stat_wal", "pg_stat_database", "pg_stat_other"], "sbtest")
    assert "pg_catalog.pg_stat_wal v" in sql
    assert "pg_catalog.pg_stat_database v WHERE v.datname = 'sbtest'" in sql
    assert "pg_stat_io" not in sql
    assert "pg_stat_other" not in sql
    assert sql.count("UNION ALL") == 2


def test_every_number_is_kept_under_its_view_and_column():
    rows = [
        ("Uptime", '{"s": 12.5}'),
        ("database", json.dumps({"datid": 16384, "datname": "sbtest", "xact_commit": 7})),
        ("wal", json.dumps({"wal_bytes": 123456789012, "stats_reset": "2026-11-21T00:00:00"})),
        (
            "io",
            json.dumps(
                {
                    "backend_type": "client backend",
                    "object": "relation",
                    "context": "normal",
                    "reads": 3,
                    "fsyncs": None,
                    "odd": True,
                }
            ),
        ),
    ]
    assert status.flattened(rows) == {
        "Uptime": 12.5,
        "database.xact_commit": 7.0,
        "wal.wal_bytes": 123456789012.0,
        "io.client backend.relation.normal.reads": 3.0,
    }
