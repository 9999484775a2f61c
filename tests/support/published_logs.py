"""What other programs print, and a page as blogs publish it."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.audit.logs.other_logs import LoggedRow, LoggedText, logs_in
from dbdyno.audit.logs.sysbench_log import LoggedRun

V1 = """\
sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)

Running the test with following options:
Number of threads: 16
Report intermediate results every 1 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 1s ] thds: 16 tps: 512.33 qps: 10310.21 (r/w/o: 7222.55/2061.03/1026.63) lat (ms,95%): 44.98 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 16 tps: 498.01 qps: 9961.20 (r/w/o: 6973.14/1992.04/996.02) lat (ms,95%): 46.63 err/s: 1.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            14154
        write:                           4044
        other:                           2022
        total:                           20220
    transactions:                        1011   (505.07 per sec.)
    queries:                             20220  (10101.47 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0012s
    total number of events:              1011

Latency (ms):
         min:                                   10.11
         avg:                                   31.62
         max:                                   90.30
         95th percentile:                       45.79
         sum:                                31967.82

Threads fairness:
    events (avg/stddev):           63.1875/1.07
    execution time (avg/stddev):   1.9980/0.00
"""
V05 = """\
sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 8
[   10s] threads: 8, tps: 125.30, reads: 1757.00, writes: 501.90, response time: 77.24ms (95%), errors: 0.00, reconnects:  0.00
OLTP test statistics:
    queries performed:
        read:                            17570
        write:                           5020
        other:                           2510
        total:                           25100
    transactions:                        1255   (125.42 per sec.)
    read/write requests:                 22590  (2257.49 per sec.)
    other operations:                    2510   (250.83 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0067s
    total number of events:              1255
    total time taken by event execution: 79.9461s
    response time:
         min:                                 30.12ms
         avg:                                 63.70ms
         max:                                140.05ms
         approx.  95 percentile:              78.11ms

Threads fairness:
    events (avg/stddev):           156.8750/0.60
    execution time (avg/stddev):   9.9933/0.01
"""
V04 = """\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 4

OLTP test statistics:
    queries performed:
        read:                            140014
        write:                           50005
        other:                           20002
        total:                           210021
    transactions:                        10001  (166.63 per sec.)
    deadlocks:                           0      (0.00 per sec.)
    read/write requests:                 190019 (3165.93 per sec.)
    other operations:                    20002  (333.26 per sec.)

Test execution summary:
    total time:                          60.0201s
    total number of events:              10001
    total time taken by event execution: 239.9801
    per-request statistics:
         min:                                  8.96ms
         avg:                                 24.00ms
         max:                                150.20ms
         approx.  95 percentile:              36.49ms
"""
FORK = "[ 3s ] thds: 2 tps: 9.00 qps: 180.00 (r/w/o: 126/36/18) lat (ms,99%,99%,99.9%): 24.83/24.83/28.67 err/s: 0.00 reconn/s: 0.00"
PGBENCH = """pgbench (16.3)
starting vacuum...end.
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 50
query mode: simple
number of clients: 8
number of threads: 2
maximum number of tries: 1
duration: 60 s
number of transactions actually processed: 219311
number of failed transactions: 0 (0.000%)
latency average = 2.188 ms
latency stddev = 1.512 ms
initial connection time = 14.115 ms
tps = 3655.632817 (without initial connection time)
"""
OLDER = """transaction type: <builtin: select only>
scaling factor: 50
number of clients: 16
number of threads: 4
latency average = 0.512 ms
tps = 31200.100000 (including connections establishing)
tps = 31250.250000 (excluding connections establishing)
"""
HAMMERDB = """Vuser 1:Rampup 2 minutes complete ...
Vuser 1:8 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 120345 NOPM from 279812 MySQL TPM
Vuser 1:16 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 180001 NOPM from 418777 MySQL TPM
"""
PAGE = """
# Postern 4 against Mistral 2

| Component | Machine |
| --- | --- |
| database | 32 cores, 128 GB |

We ran oltp_read_write for 300 seconds. Postern is always faster than Mistral. At 64 threads Postern
is 50 % faster than Mistral. Postern reaches 1,500 TPS. Mistral's p95 latency is lower than
Postern's. With a small data set Mistral is faster than Postern.

TPS, read write:

| System | 16 | 64 |
| --- | ---: | ---: |
| Postern | 1,000.50 | 1,500.10 |
| Mistral | 1,010.20 | 1,000.07 |

```
Mistral is faster than Postern in this listing
```

| System | Workload | Threads | p95 (ms) | TPS |
| --- | --- | ---: | ---: | ---: |
| Postern | oltp_point_select | 16 | 1.50 | 9000.0 |
| Mistral | oltp_point_select | 16 | 1.40 | 8000.0 |
"""
# Beginnings of what `dbdyno sysbench --output=json|csv|hlog` writes.
OWN_JSON = """\
{
 "dbdyno": "0.1.0",
 "test": "oltp_point_select",
 "options": {
"""
OWN_CSV = """\
time_s,interval_s,threads,transactions_per_s,queries_per_s,reads_per_s,writes_per_s,others_per_s
1,1.000000,2,12.000,12.000,12.000,0.000,0.000
"""
OWN_HLOG = """\
#[dbdyno: latencies in ns; untagged: events from the moment they were due]
#[Histogram log format version 1.3]
"""


def runs_in(text: str, source: str) -> Sequence[LoggedRun]:
    """The runs of sysbench in a log; UsageError for the first part that cannot be read."""
    return _whole(text, source).runs


def rows_in(text: str, source: str) -> Sequence[LoggedRow]:
    """The runs of other programs in a log; UsageError as `runs_in`."""
    return _whole(text, source).rows


def _whole(text: str, source: str) -> LoggedText:
    log = logs_in(text, source)
    if log.refusals:
        raise log.refusals[0]
    return log
