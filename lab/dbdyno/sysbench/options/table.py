"""The one table of options: name, type, default and description of everything dbdyno supports.

Names, types, defaults and order are sysbench 1.0.20's, and what 1.1 added; `compat` says what
differs there. Numeric options of the workloads are DOUBLE as in sysbench, where every number of a
Lua script is one.
"""

from __future__ import annotations

from dbdyno.sysbench.options.values import Option, Refusal, argument_error, canonical, fatal
from dbdyno.sysbench.typed import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Final

    from dbdyno.sysbench.options.values import Kind

LEGACY = "legacy_"
"""Stands before a legacy script's name, because today's tests share some of the names."""

ONE_TABLE = "oltp"
"""sysbench 0.4's compiled-in test."""

COMMANDS = ("prepare", "prewarm", "warmup", "run", "cleanup", "help")
"""Every word that is a command."""


_WITHOUT_VALUE: Final[Mapping[str, str | None]] = {"-": None, '""': ""}


def _options(rows: str) -> tuple[Option, ...]:
    """Options from rows of name, type, default and description, continued in indented lines.

    A default of ``-`` means no default, and ``""`` is the empty text.
    """
    options = []
    for row in rows.strip().replace("\n    ", " ").splitlines():
        name, kind, default, text = row.split(maxsplit=3)
        options.append(Option(name, cast("Kind", kind), _WITHOUT_VALUE.get(default, default), text))
    return tuple(options)


GENERAL = _options("""
threads             INT    1       connections that run events at the same time
events              INT    0       stop after this many events in all; 0 for no limit
time                INT    10      stop after this many seconds; 0 for no limit
warmup-time         INT    0       run this many seconds before anything is counted (sysbench 1.1)
forced-shutdown     STRING off     how long events in flight may outlast --time {off,N,N%}; N in
    seconds, N% of --time, no value means 5%
thread-stack-size   SIZE   64K     without effect: dbdyno has no thread and no stack for each
    connection
thread-init-timeout INT    30      seconds a connection may take to log in (sysbench 1.1); when not
    given, 10
rate                INT    0       events that fall due per second; 0 for as fast as it goes
report-interval     DOUBLE 0       print a line of rates every N seconds, 0.01 or more; 0 for none
report-checkpoints  LIST   ""      whole seconds at which a report is printed and counting begins
    again
debug               BOOL   off     verbosity 5, with what drove the load
validate            BOOL   off     shown in the header; changes nothing for databases
help                BOOL   off     print this and exit
version             BOOL   off     print the version and exit
config-file         FILE   -       options from a file of lines name=value; those that follow on the
    command line win
tx-rate             INT    0       deprecated name of --rate
max-requests        INT    0       deprecated name of --events
max-time            INT    0       deprecated name of --time
num-threads         INT    1       deprecated name of --threads
luajit-cmd          STRING -       for Lua scripts, as LuaJIT's -j {on,off,opt=...} (sysbench 1.1)
arrival             STRING poisson gaps between the events of a rate {poisson,uniform}: random or
    all the same
think-time          STRING 0       milliseconds a connection rests after each event, N or LEAST-MOST
compat              STRING 1.0     which sysbench to be {1.0,1.1}: defaults, texts, options
""")
RANDOM = _options("""
rand-type        STRING special which rows are touched {uniform,gaussian,special,pareto,zipfian};
    special puts 3 quarters of the accesses on 0.75% of the rows
rand-spec-iter   INT    12      draws averaged (special, gaussian)
rand-spec-pct    INT    1       percentage of rows in the hot zone (special)
rand-spec-res    INT    75      percentage of accesses to the hot zone (special)
rand-seed        INT    0       seed of a run's draws, for each connection its own; 0 leaves it to
    the system. prepare writes the same rows with any seed
rand-pareto-h    DOUBLE 0.2     parameter h (pareto)
rand-zipfian-exp DOUBLE 0.8     exponent (zipfian, as in sysbench 1.1)
""")
LOG = _options("""
verbosity   INT    3    0 fatal errors only, 3 reports, 5 everything
percentile  LIST   95   latency percentiles to print, such as 95 or 50,95,99.9; 0 for none. Taken
    from an HDR histogram with 3 significant digits, not from sysbench's grid of 1.8% steps
histogram   BOOL   off  print the latency histogram in the report
percentile-format STRING separate  in interval lines {separate,joined}: each percentile has words of
    its own, or all stand together in the order typed, as lat (ms,99%,99%,99.9%): 4.8/4.8/9.1
detail      BOOL   off  add to the report: statements by kind, errors by code, what the generator
    cost
output      STRING text form of the results on stdout {text,json,csv,hlog}; hlog is HdrHistogram's
    log of intervals. Errors then go to stderr
output-file FILE   ""   write json, csv or hlog to this file, and the text to stdout as always
""")
DATABASE = _options("""
db-driver  STRING mysql database driver {mysql,pgsql}
db-ps-mode STRING auto  prepared statements {auto,disable}
db-debug   BOOL   off   without effect: dbdyno has nothing more to print
server     STRING -     name of a server that dbdyno servers start has started: stands for the
    options of its driver, host, port, user, password and database that are not given
""")
MYSQL = _options("""
mysql-host                   LIST   localhost      host; localhost means the Unix socket, 127.0.0.1
    means TCP
mysql-port                   LIST   3306           TCP port; with several hosts or ports connections
    go to each host's each port in turn
mysql-socket                 LIST   -              Unix sockets; they win over hosts and ports
mysql-user                   STRING sbtest         user
mysql-password               STRING ""             password. Everybody on this machine can read it
    in the list of processes; the environment variable MYSQL_PWD is used when this option is absent
mysql-db                     STRING sbtest         database
mysql-ssl                    STRING off            TLS
    {on,off,disabled,preferred,required,verify_ca,verify_identity}; on is required, with cacert.pem,
    client-cert.pem and client-key.pem of the working directory where they are
mysql-ssl-key                STRING -              file of the client's key (sysbench 1.1)
mysql-ssl-ca                 STRING -              file of trusted certificates, with --mysql-ssl
    (sysbench 1.1)
mysql-ssl-cert               STRING -              file of the client's certificate (sysbench 1.1)
mysql-ssl-cipher             STRING ""             ciphers to choose from
mysql-compression            BOOL   off            compress what is sent and received
mysql-compression-algorithms LIST   zlib           only zlib (sysbench 1.1)
mysql-debug                  BOOL   off            verbosity 5; there are no client library calls to
    show
mysql-ignore-errors          LIST   1213,1020,1205 error codes after which an event begins again, or
    "all"
mysql-dry-run                BOOL   off            no server: every statement succeeds at once
""")
PGSQL = _options("""
pgsql-host     STRING localhost host; a path is the folder of the Unix socket
pgsql-port     INT    5432      port
pgsql-user     STRING sbtest    user
pgsql-password STRING ""        password. Everybody on this machine can read it in the list of
    processes; when this option is absent, PGPASSWORD or the file in PGPASSFILE or ~/.pgpass is used
pgsql-db       STRING sbtest    database
pgsql-sslmode  STRING prefer    TLS {disable,allow,prefer,require,verify-ca,verify-full}
""")
WORKLOAD = _options("""
auto_inc             BOOL   on     let the server number the rows of a new table
create_secondary     BOOL   on     index column k after the load
create_table_options STRING ""     end of CREATE TABLE (sysbench 1.1)
delete_inserts       DOUBLE 1      DELETE and INSERT of one row, pairs per event
distinct_ranges      DOUBLE 1      SELECT DISTINCT over a range, per event
index_updates        DOUBLE 1      UPDATE of the indexed column, per event
mysql_storage_engine STRING innodb storage engine of a new table
non_index_updates    DOUBLE 1      UPDATE of a column without index, per event
order_ranges         DOUBLE 1      SELECT with ORDER BY over a range, per event
pgsql_variant        STRING -      without effect here, as in sysbench
point_selects        DOUBLE 10     SELECT of one row by its key, per event
range_selects        BOOL   on     off leaves out all four kinds of ranges
range_size           DOUBLE 100    rows of a range
reconnect            DOUBLE 0      connect again after every N events (sysbench 1.1)
secondary            BOOL   off    give a new table KEY (id) in place of PRIMARY KEY (id)
simple_ranges        DOUBLE 1      SELECT over a range, per event
skip_trx             BOOL   off    no BEGIN and COMMIT: every statement commits by itself
sum_ranges           DOUBLE 1      SELECT SUM over a range, per event
table_size           DOUBLE 10000  rows of a table
tables               DOUBLE 1      number of tables
""")

OWN: dict[str, tuple[Option, ...]] = {
    "select_random_points": (Option("random_points", "DOUBLE", "10", "values of k in the list"),),
    "select_random_ranges": (
        Option("delta", "DOUBLE", "5", "from the first value of k in a range to its last"),
        Option("number_of_ranges", "DOUBLE", "10", "ranges of k, per event"),
    ),
}
"""What single tests have besides `WORKLOAD`."""


def of_test(test: str | None) -> tuple[Option, ...]:
    """The own options of a test (its recognised name), by name."""
    if test is not None and is_legacy(test):
        return tuple(sorted(LEGACY_OPTIONS))
    return tuple(sorted((*WORKLOAD, *OWN.get(test or "", ()))))


def is_legacy(test: str) -> bool:
    """True for tests of sysbench before 1.0."""
    return test == ONE_TABLE or test.startswith(LEGACY)


def by_name(options: Iterable[Option]) -> dict[str, Option]:
    """The options by the name under which they are looked up."""
    return {canonical(option.name): option for option in options}


GLOBAL_TABLE = by_name((*GENERAL, *RANDOM, *LOG, *DATABASE, *MYSQL, *PGSQL))

NOT_OF_1_0 = frozenset(
    (
        *("arrival", "compat", "detail", "luajit-cmd"),
        *("mysql-compression-algorithms", "mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key"),
        *("output", "output-file", "percentile-format", "pgsql-sslmode", "rand-zipfian-exp"),
        *("server", "think-time", "thread-init-timeout", "warmup-time"),
    )
)
"""Those of them that sysbench 1.1 added, and dbdyno's own."""


# Options of the tests of before 1.0. sysbench's scripts accept any word and read some of them; a
# table lets a mistyped option be refused and not ignored.

SCRIPT = _options("""
oltp-table-size        DOUBLE 10000   rows of a table
oltp-tables-count      DOUBLE 1       number of tables
oltp-range-size        DOUBLE 100     rows of a range
oltp-point-selects     DOUBLE 10      SELECT of one row by its key, per event
oltp-simple-ranges     DOUBLE 1       SELECT over a range, per event
oltp-sum-ranges        DOUBLE 1       SELECT SUM over a range, per event
oltp-order-ranges      DOUBLE 1       SELECT with ORDER BY over a range, per event
oltp-distinct-ranges   DOUBLE 1       SELECT DISTINCT over a range, per event
oltp-index-updates     DOUBLE 1       UPDATE of the indexed column, per event
oltp-non-index-updates DOUBLE 1       UPDATE of a column without index, per event
oltp-delete-inserts    DOUBLE 1       DELETE and INSERT of one row, pairs per event
oltp-range-selects     BOOL   on      off leaves out all four kinds of ranges
oltp-read-only         BOOL   off     no statement that writes
oltp-write-only        BOOL   off     no statement that reads
oltp-skip-trx          BOOL   off     no BEGIN and COMMIT
oltp-auto-inc          BOOL   on      let the server number the rows of a new table
oltp-secondary         BOOL   off     give a new table KEY (id) in place of PRIMARY KEY
oltp-create-secondary  BOOL   on      index column k after the load
mysql-table-engine     STRING innodb  engine; myisam locks tables for BEGIN
mysql-table-options    STRING ""      text at the end of CREATE TABLE
myisam-max-rows        DOUBLE 1000000 MAX_ROWS of a new table
random-points          DOUBLE 10      values of k in the list (select_random_points)
number-of-ranges       DOUBLE 10      ranges of k (select_random_ranges)
random-ranges-delta    DOUBLE 5       from a range's first k to its last
pgsql-variant          STRING -       refused: redshift, tables of which dbdyno does not create
""")
"""What the scripts of 0.5 read."""

LEGACY_ONE_TABLE = _options("""
oltp-test-mode      STRING complex kind of events {complex,simple,nontrx}
oltp-nontrx-mode    STRING select  statement of the mode nontrx
    {select,update_key,update_nokey,insert,delete}
oltp-table-name     STRING sbtest  the table; only sbtest
oltp-reconnect-mode STRING session connect again {session,transaction}
oltp-reconnect      BOOL   off     connect again after each event
oltp-user-delay-min DOUBLE 0       microseconds before a statement; only 0
oltp-user-delay-max DOUBLE 0       microseconds before a statement; only 0
oltp-sp-name        STRING -       without effect here
mysql-engine-trx    STRING auto    no locks tables in place of BEGIN {auto,yes,no}
""")
"""What the test `oltp` of 0.4 read besides."""

LEGACY_OTHERS = _options("""
oltp-connect-delay DOUBLE 10000 without effect: dbdyno waits for no connection
oltp-dist-type     STRING -     --rand-type, where that is absent
oltp-dist-iter     INT    -     --rand-spec-iter, where that is absent
oltp-dist-pct      INT    -     --rand-spec-pct, where that is absent
oltp-dist-res      INT    -     --rand-spec-res, where that is absent
rand-init          BOOL   on    off is without effect: a run is seeded by --rand-seed, or at random
init-rng           BOOL   on    as rand-init
seed-rng           INT    0     --rand-seed, where that is absent
""")
"""Options that shape no statement."""

LEGACY_OPTIONS = (*SCRIPT, *LEGACY_ONE_TABLE, *LEGACY_OTHERS)


WITHOUT_DATABASE = {
    "fileio": "blocks read from and written to files",
    "cpu": "primes counted",
    "memory": "blocks of memory read or written",
    "threads": "mutexes taken and processors yielded",
    "mutex": "many mutexes taken at once",
}
"""Tests of sysbench that are no workloads of the engine, with their descriptions."""


def unsupported(what: str, missing: str) -> Refusal:
    """The message about a feature of sysbench missing in this version of dbdyno."""
    return argument_error(f"{what}: this version of dbdyno does not do this yet: {missing}")


def check_is_supported(name: str, ours: Sequence[str]) -> None:
    """Refuse a test outside `ours`."""
    if name not in ours:
        raise fatal(f"Cannot find benchmark '{name}': no such built-in test, file or module")
