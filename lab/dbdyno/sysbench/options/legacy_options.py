"""Options of the tests of before 1.0, with their defaults.

sysbench's scripts have no table of options: they accept any word and read some of them. Here they
have one, so that a mistyped option is refused and not ignored.
"""

from __future__ import annotations

from dbdyno.sysbench.options.values import Option

SCRIPT = (
    Option("oltp-table-size", "DOUBLE", "10000", "rows of a table"),
    Option("oltp-tables-count", "DOUBLE", "1", "number of tables"),
    Option("oltp-range-size", "DOUBLE", "100", "rows of a range"),
    Option("oltp-point-selects", "DOUBLE", "10", "SELECT of one row by its key, per event"),
    Option("oltp-simple-ranges", "DOUBLE", "1", "SELECT over a range, per event"),
    Option("oltp-sum-ranges", "DOUBLE", "1", "SELECT SUM over a range, per event"),
    Option("oltp-order-ranges", "DOUBLE", "1", "SELECT with ORDER BY over a range, per event"),
    Option("oltp-distinct-ranges", "DOUBLE", "1", "SELECT DISTINCT over a range, per event"),
    Option("oltp-index-updates", "DOUBLE", "1", "UPDATE of the indexed column, per event"),
    Option("oltp-non-index-updates", "DOUBLE", "1", "UPDATE of a column without index, per event"),
    Option("oltp-delete-inserts", "DOUBLE", "1", "DELETE and INSERT of one row, pairs per event"),
    Option("oltp-range-selects", "BOOL", "on", "off leaves out all four kinds of ranges"),
    Option("oltp-read-only", "BOOL", "off", "no statement that writes"),
    Option("oltp-write-only", "BOOL", "off", "no statement that reads"),
    Option("oltp-skip-trx", "BOOL", "off", "no BEGIN and COMMIT"),
    Option("oltp-auto-inc", "BOOL", "on", "let the server number the rows of a new table"),
    Option("oltp-secondary", "BOOL", "off", "give a new table KEY (id) in place of PRIMARY KEY"),
    Option("oltp-create-secondary", "BOOL", "on", "index column k after the load"),
    Option("mysql-table-engine", "STRING", "innodb", "engine; myisam locks tables for BEGIN"),
    Option("mysql-table-options", "STRING", "", "text at the end of CREATE TABLE"),
    Option("myisam-max-rows", "DOUBLE", "1000000", "MAX_ROWS of a new table"),
    Option("random-points", "DOUBLE", "10", "values of k in the list (select_random_points)"),
    Option("number-of-ranges", "DOUBLE", "10", "ranges of k (select_random_ranges)"),
    Option("random-ranges-delta", "DOUBLE", "5", "from a range's first k to its last"),
    Option("pgsql-variant", "STRING", None, "without effect here"),
)
"""What the scripts of 0.5 read."""

ONE_TABLE = (
    Option("oltp-test-mode", "STRING", "complex", "kind of events {complex,simple,nontrx}"),
    Option(
        "oltp-nontrx-mode",
        "STRING",
        "select",
        "statement of the mode nontrx {select,update_key,update_nokey,insert,delete}",
    ),
    Option("oltp-table-name", "STRING", "sbtest", "the table; only sbtest"),
    Option("oltp-reconnect-mode", "STRING", "session", "connect again {session,transaction}"),
    Option("oltp-reconnect", "BOOL", "off", "connect again after each event"),
    Option("oltp-user-delay-min", "DOUBLE", "0", "microseconds before a statement; only 0"),
    Option("oltp-user-delay-max", "DOUBLE", "0", "microseconds before a statement; only 0"),
    Option("oltp-sp-name", "STRING", None, "without effect here"),
    Option("mysql-engine-trx", "STRING", "auto", "no locks tables in place of BEGIN {auto,yes,no}"),
)
"""What the test `oltp` of 0.4 read besides."""

WITHOUT_EFFECT = (
    Option("oltp-connect-delay", "DOUBLE", "10000", "accepted: dbdyno waits for no connection"),
    Option("oltp-dist-type", "STRING", None, "--rand-type, where that is absent"),
    Option("oltp-dist-iter", "INT", None, "--rand-spec-iter, where that is absent"),
    Option("oltp-dist-pct", "INT", None, "--rand-spec-pct, where that is absent"),
    Option("oltp-dist-res", "INT", None, "--rand-spec-res, where that is absent"),
    Option("rand-init", "BOOL", "off", "accepted: a run is seeded by --rand-seed or at random"),
    Option("init-rng", "BOOL", "off", "accepted, as rand-init"),
    Option("seed-rng", "INT", "0", "accepted, as rand-init"),
)
"""What is accepted and shapes no statement."""

OPTIONS = (*SCRIPT, *ONE_TABLE, *WITHOUT_EFFECT)
