"""What other programs print, and a page as blogs publish it."""
# ruff: noqa: E501

from __future__ import annotations

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
# What `dbdyno sysbench --output=json|csv|hlog` wrote of a server with a service time of 0.15 s.
OWN_JSON = """\
{
 "dbdyno": "0.1.0",
 "test": "oltp_point_select",
 "options": {
  "threads": 2,
  "time": 1,
  "rate": 0
 },
 "seed": 5849684165905027124,
 "environment": {
  "engine_version": "0.1.0",
  "reactor": "io_uring",
  "server_version": "8.0.0-dbdyno-reference"
 },
 "begun_at": "2026-11-23T12:49:26Z",
 "warmup_s": 0,
 "totals": {
  "seconds": 1.052476424,
  "events": 14,
  "events_per_s": 13.301960671757527,
  "queries": 14,
  "queries_per_s": 13.301960671757527,
  "reads": 14,
  "writes": 0,
  "others": 0,
  "errors": 0,
  "errors_by_code": {},
  "restarts": 0,
  "reconnects": 0,
  "bytes_sent": 364,
  "bytes_received": 2380,
  "arrivals": 0,
  "backlog": 0,
  "in_flight": 0,
  "silence_ms_max": 150.270273,
  "latency_ms": {
   "min": 150.16693,
   "mean": 150.27191364285713,
   "max": 150.548558,
   "sum": 2103.806791,
   "percentiles": {
    "95": 150.548558
   }
  },
  "event_service_ms": {
   "min": 150.07744,
   "mean": 150.25532342857144,
   "max": 150.601727,
   "percentiles": {
    "95": 150.601727
   }
  },
  "unserved": 0,
  "unfinished": 0,
  "fairness": {
   "events_mean": 7.0,
   "events_stddev": 0.0,
   "seconds_mean": 1.0519033955000001,
   "seconds_stddev": 4.935150000007216e-05
  }
 },
 "statements": {
  "point_selects": {
   "count": 14,
   "latency_ms": {
    "min": 150.07744,
    "mean": 150.25532342857144,
    "max": 150.601727,
    "percentiles": {
     "95": 150.601727
    }
   }
  }
 },
 "intervals": [
  {
   "phase": "measured",
   "from_s": 0.0,
   "to_s": 1.0,
   "seconds": 1.0,
   "events": 12,
   "events_per_s": 12.0,
   "queries": 12,
   "queries_per_s": 12.0,
   "reads": 12,
   "writes": 0,
   "others": 0,
   "errors": 0,
   "errors_by_code": {},
   "restarts": 0,
   "reconnects": 0,
   "bytes_sent": 364,
   "bytes_received": 2040,
   "arrivals": 0,
   "backlog": 0,
   "in_flight": 2,
   "silence_ms_max": 150.270273,
   "latency_ms": {
    "min": 150.16693,
    "mean": 150.27362616666665,
    "max": 150.548558,
    "sum": 1803.283514,
    "percentiles": {
     "95": 150.548558
    }
   },
   "event_service_ms": {
    "min": 150.07744,
    "mean": 150.25220266666665,
    "max": 150.601727,
    "percentiles": {
     "95": 150.601727
    }
   }
  },
  {
   "phase": "drain",
   "from_s": 1.0,
   "to_s": 1.052476424,
   "seconds": 0.052476424,
   "events": 2,
   "events_per_s": 38.112353082595746,
   "queries": 2,
   "queries_per_s": 38.112353082595746,
   "reads": 2,
   "writes": 0,
   "others": 0,
   "errors": 0,
   "errors_by_code": {},
   "restarts": 0,
   "reconnects": 0,
   "bytes_sent": 0,
   "bytes_received": 340,
   "arrivals": 0,
   "backlog": 0,
   "in_flight": 0,
   "silence_ms_max": 150.194311,
   "latency_ms": {
    "min": 150.235121,
    "mean": 150.2616385,
    "max": 150.288156,
    "sum": 300.523277,
    "percentiles": {
     "95": 150.288156
    }
   },
   "event_service_ms": {
    "min": 150.208512,
    "mean": 150.274048,
    "max": 150.339583,
    "percentiles": {
     "95": 150.339583
    }
   }
  }
 ],
 "generator": {
  "cpu_s": 0.002251205,
  "cpu_share_max": 0.001691793
 },
 "stopped_by": "time",
 "failure": null,
 "exit_status": 0
}
"""
OWN_CSV = """\
time_s,interval_s,threads,transactions_per_s,queries_per_s,reads_per_s,writes_per_s,others_per_s,errors_per_s,reconnects_per_s,restarts_per_s,due_per_s,backlog,in_flight,silence_ms_max,latency_ms_min,latency_ms_mean,latency_ms_max,latency_ms_p95
1,1.000000,2,12.000,12.000,12.000,0.000,0.000,0.000,0.000,0.000,0.000,0,2,150.395,150.202393,150.354530,150.685576,150.685576
"""
OWN_HLOG = """\
#[dbdyno: latencies in ns; untagged: events from the moment they were due]
#[Histogram log format version 1.3]
#[StartTime: 1795438169.776 (seconds since epoch), 2026-11-23T12:49:29Z]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
0.000,1.000,150.501,HISTFAAAACd4nJNpmSzMwMDAxgABzFCaEch0M9ixgMH+A0Tg80ImATYmAHICBf8=
Tag=event_service,0.000,1.000,150.471,HISTFAAAACZ4nJNpmSzMwMDAygABzFCaEch0M9ixgMH+A0Tg80ImITYAa+EF/g==
Tag=point_selects,0.000,1.000,150.471,HISTFAAAACZ4nJNpmSzMwMDAygABzFCaEch0M9ixgMH+A0Tg80ImITYAa+EF/g==
1.000,0.053,150.313,HISTFAAAACV4nJNpmSzMwMDAwgABzFCaEch0M9ixgMH+A0Tg80ImFgBlsAXp
Tag=event_service,1.000,0.053,150.340,HISTFAAAACV4nJNpmSzMwMDAwgABzFCaEch0M9ixgMH+A0Tg80ImFgBlsAXp
Tag=point_selects,1.000,0.053,150.340,HISTFAAAACV4nJNpmSzMwMDAwgABzFCaEch0M9ixgMH+A0Tg80ImFgBlsAXp
"""
