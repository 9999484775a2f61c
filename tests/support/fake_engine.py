"""Speaks the engine child's protocol without an engine; time runs as fast as its test wants.

Its arguments are the options, as JSON. A test starts dozens of them: see `fakes.command`, and what
few options need is imported there.

  tick_s        real seconds that an interval of one second takes
  fail          {"run" | "prepare" | "cleanup": the error to answer with}
  kill_server   path: at the first measured interval, if the path is not there, it is made and the
                server is killed (its pid stands in the endpoint's port)
  fail_above    {"connections": n, "error": what to answer a run of more connections with}
  queue_ms      a run at a rate: latency of an event of a server that nobody else uses; it does 100
                events a second and no more
  silent        true: events run and nothing is ever answered
  die           true: the child kills itself after two intervals
  deaf          true: "stop" is not heard
  log           path: each request is appended to it, without its password
"""

import json
import os
import sys
import threading
import time

OPTIONS = {"tick_s": 0.002, "fail": {}}
SIGKILL = 9
EVENT = "event"
CAPACITY = 100


def tell(kind, value):
    sys.stdout.write(json.dumps({kind: value}) + "\n")
    sys.stdout.flush()


def kill(pid):
    """Connections are lost once a server is dead, which may take a while on a busy machine."""
    os.kill(pid, SIGKILL)
    try:
        while ") Z" not in path(f"/proc/{pid}/stat").read_text():
            time.sleep(0.001)
    except OSError:
        pass


def path(text):
    from pathlib import Path

    return Path(text)


def interval(phase, second, blob):
    return {
        "phase": phase,
        "start_s": float(second),
        "end_s": second + 1.0,
        "events": 100,
        "reads": 1400,
        "writes": 400,
        "others": 200,
        "errors": {},
        "restarts": 0,
        "reconnects": 0,
        "bytes_received": 1000,
        "bytes_sent": 500,
        "latency_ns_sum": 100 * 80_000_000,
        "latency_ns_min": 80_000_000,
        "latency_ns_max": 80_000_000,
        "histograms": {EVENT: blob},
    }


def at_rate(one, rate):
    """What falls due at a rate: served while the server can, slower the nearer to its end."""
    import base64

    from dbdyno._engine import Histogram

    seconds = int(one["start_s"]) + 1
    served = min(rate, CAPACITY)
    latency_ns = int(OPTIONS["queue_ms"] * 1e6 / max(1 - rate / CAPACITY, 0.001))
    events = round(served * seconds) - round(served * (seconds - 1))
    histogram = Histogram()
    for _ in range(events):
        histogram.record(latency_ns)
    return {
        **one,
        "events": events,
        "reads": 14 * events,
        "writes": 4 * events,
        "others": 2 * events,
        "arrivals": round(rate * seconds) - round(rate * (seconds - 1)),
        "backlog": round((rate - served) * seconds),
        "latency_ns_sum": events * latency_ns,
        "histograms": {EVENT: base64.b64encode(histogram.encode()).decode()},
    }


def told(one):
    return {
        "at_s": one["end_s"],
        "phase": one["phase"],
        "connections": 8,
        "events": one["events"],
        "queries": one["reads"] + one["writes"] + one["others"],
        "reads": one["reads"],
        "writes": one["writes"],
        "others": one["others"],
        "errors": 0,
        "reconnects": 0,
        "seconds": one["end_s"] - one["start_s"],
        "latency_ms": {"50": 80.0, "95": 80.0, "99": 80.0},
    }


def run(spec, stop):
    blob = OPTIONS.get("blob", "")
    warmup, window = int(spec["warmup_s"]), int(spec["window_s"])
    intervals, failure = [], None
    for second in range(warmup + window):
        if stop.wait(OPTIONS["tick_s"]):
            break
        one = interval("warmup" if second < warmup else "measured", second, blob)
        if spec.get("rate_per_s"):
            one = at_rate(one, spec["rate_per_s"])
        if OPTIONS.get("silent"):
            nothing = ("events", "reads", "writes", "others", "latency_ns_sum", "latency_ns_min")
            one |= {**dict.fromkeys(nothing, 0), "in_flight": spec["connections"]}
        intervals.append(one)
        tell("interval", told(one))
        if OPTIONS.get("die") and second == 1:
            sys.stderr.write("thread panicked: index out of bounds\n")
            sys.stderr.flush()
            os.kill(os.getpid(), SIGKILL)
        if second == warmup and kills(OPTIONS.get("kill_server")):
            kill(spec["endpoint"]["port"])
            failure = {"code": 2013, "sqlstate": None, "message": "Lost connection", "stage": "run"}
            break
    by = "error" if failure else "stop" if stop.is_set() else "time"
    return {
        "engine_version": "fake",
        "reactor": "epoll",
        "threads": spec.get("threads") or 1,
        "connections": spec["connections"],
        "server_version": "8.0.15",
        "placements": [{"policy": "batch", "refused": ""}],
        "distribution": spec["distribution"],
        "prepared": spec["prepared"],
        "intervals": intervals,
        "measured": {"cpu_s": 0.5, "cpu_share_max": 0.25},
        "fairness": {},
        "stopped_by": by,
        "failure": failure,
    }


def kills(marker):
    if not marker or path(marker).exists():
        return False
    path(marker).touch()
    return True


def prepare(spec):
    total = spec["tables"] * spec["table_size"]
    for table in range(1, spec["tables"] + 1):
        done = table * spec["table_size"]
        tell(
            "progress",
            {"table": table, "rows_done": done, "rows_total": total, "stage": "insert"},
        )
    tell("report", {"tables": spec["tables"], "rows": total, "seconds": 0.1})


def wait_for_stop(stop):
    sys.stdin.readline()
    if not OPTIONS.get("deaf"):
        stop.set()


def main():
    OPTIONS.update(json.loads(sys.argv[1]))
    request = json.loads(sys.stdin.readline())
    do, spec = request["do"], request["spec"]
    if "log" in OPTIONS:
        with path(OPTIONS["log"]).open("a") as log:
            log.write(json.dumps({"do": do, **spec, "password": None}) + "\n")
    stop = threading.Event()
    threading.Thread(target=wait_for_stop, args=(stop,), daemon=True).start()
    above = OPTIONS.get("fail_above")
    if do == "run" and above and spec["connections"] > above["connections"]:
        tell("error", above["error"])
    elif do in OPTIONS["fail"]:
        tell("error", OPTIONS["fail"][do])
    elif do == "run":
        tell("record", run(spec, stop))
    elif do == "prepare":
        prepare(spec)
    elif do == "script":
        tell("report", {"declared": [], "known": True, "well": True})
    else:
        tell("report", {})
    sys.stdout.flush()
    os._exit(0)
