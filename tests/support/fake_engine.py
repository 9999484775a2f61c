"""Messages of an engine without an engine, and a child process that sends them.

`world.FakeEngine` sends them within the lab's process. The child is for tests of the process
itself; its argument is its options as JSON, see `command`:

  tick_s  real seconds that an interval of one second takes
  fail    {"run" | "prepare": the error to answer with}
  die     true: the child kills itself after two intervals
  deaf    true: "stop" is not heard
  log     path: each request is appended to it, without its password
"""

import json
import os
import sys
import threading

SIGKILL = 9
CHILD = "import sys; sys.path.insert(0, {!r}); import fake_engine; fake_engine.main()"
STATEMENTS = {  # reads, writes, others of one event
    "oltp_read_write": (14, 4, 2),
    "oltp_read_only": (14, 0, 2),
    "oltp_write_only": (0, 4, 2),
    "oltp_point_select": (1, 0, 0),
}


def command(**options):
    """The command of a child; -S and a module already compiled halve the time of its start."""
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib would take as long as all the rest
    text = json.dumps({"tick_s": 0.002, **options}, default=str)
    return (sys.executable, "-S", "-c", CHILD.format(folder), text)


def interval(phase, second, events=100, latency_ns=80_000_000, workload="", blob="", **others):
    """A second of load, as a record has it."""
    reads, writes, rest = STATEMENTS.get(workload, (14, 4, 2))
    return {
        "phase": phase,
        "start_s": float(second),
        "end_s": second + 1.0,
        "events": events,
        "reads": reads * events,
        "writes": writes * events,
        "others": rest * events,
        "errors": {},
        "restarts": 0,
        "reconnects": 0,
        "bytes_received": 1000,
        "bytes_sent": 500,
        "latency_ns_sum": events * latency_ns,
        "latency_ns_min": latency_ns,
        "latency_ns_max": latency_ns,
        "histograms": {"event": blob},
        **others,
    }


def message(one):
    """What is told of an interval as it ends."""
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
        "backlog": one.get("backlog", 0),
        "in_flight": one.get("in_flight", 0),
        "seconds": one["end_s"] - one["start_s"],
        "latency_ms": dict.fromkeys(("50", "95", "99"), one["latency_ns_max"] / 1e6),
    }


def record(spec, intervals, **others):
    """The record of a load."""
    return {
        "engine_version": "fake",
        "reactor": "epoll",
        "threads": spec.get("threads") or 1,
        "distribution": spec["distribution"],
        "prepared": spec["prepared"],
        "intervals": intervals,
        "measured": {"cpu_s": 0.5, "cpu_share_max": 0.25},
        "failure": None,
        **others,
    }


def answers(do, spec):
    """The messages to any other request."""
    if do == "prepare":
        total = spec["tables"] * spec["table_size"]
        for table in range(1, spec["tables"] + 1):
            rows = {"rows_done": table * spec["table_size"], "rows_total": total}
            yield "progress", {"table": table, "stage": "insert", **rows}
        yield "report", {"tables": spec["tables"], "rows": total, "seconds": 0.1}
    elif do == "script":
        yield "report", {"declared": [], "known": True, "well": True}
    else:
        yield "report", {}


def main():
    """Answers the request on stdin."""
    options = json.loads(sys.argv[1])
    request = json.loads(sys.stdin.readline())
    do, spec = request["do"], request["spec"]
    if "log" in options:
        with open(options["log"], "a") as log:  # noqa: PTH123 - as in `command`
            log.write(json.dumps({"do": do, **spec, "password": None}) + "\n")
    stop = threading.Event()

    def listen():
        sys.stdin.readline()
        if not options.get("deaf"):
            stop.set()

    threading.Thread(target=listen, daemon=True).start()
    if do in options.get("fail", {}):
        messages = [("error", options["fail"][do])]
    else:
        messages = load(spec, options, stop) if do == "run" else answers(do, spec)
    for kind, value in messages:
        sys.stdout.write(json.dumps({kind: value}) + "\n")
        sys.stdout.flush()
    os._exit(0)


def load(spec, options, stop):
    """The messages of a load, which takes its time."""
    warmup, intervals = int(spec["warmup_s"]), []
    for second in range(warmup + int(spec["window_s"])):
        if stop.wait(options["tick_s"]):
            break
        intervals.append(interval("warmup" if second < warmup else "measured", second))
        yield "interval", message(intervals[-1])
        if options.get("die") and second == 1:
            sys.stderr.write("thread panicked: index out of bounds\n")
            sys.stderr.flush()
            os.kill(os.getpid(), SIGKILL)
    yield "record", record(spec, intervals, stopped_by="stop" if stop.is_set() else "time")
