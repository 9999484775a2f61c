"""A Ray cluster of three nodes on this machine, on a loopback address of its own.

`ray.cluster_utils` starts it in a process that ends with the test (`python -m support.ray_cluster`
with the tests' folder in the path), which takes lines: ``kill NUMBER`` ends a node at once, as a
power cut would; ``add LABEL`` starts another. Ray takes 127.0.0.1 for the machine's own address, so
the nodes are on 127.0.0.2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dbdyno._engine import Reference
from support.lab_process import words_of

ADDRESS = "127.0.0.2"
TESTS = Path(__file__).parents[1]
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_period_ms": "1000"}
"""A node that was killed is known to be dead after 5 s, and not after 15 s."""
TRIES = 3
"""Ray gives a node up whose agents do not come up within 15 s (ray-project/ray#65983): on a slow
machine, beside other tests, they may, where nothing of them is in memory yet."""


class Nodes:
    """The cluster from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self.pid = process, process.pid
        self.address = self._answer()
        self.session = Path(self._answer())

    def kill(self, number: int) -> None:
        """Ends a node, from 0, with all that runs on it."""
        self._say(f"kill {number}")

    def add(self, label: str) -> None:
        """Starts another node."""
        self._say(f"add {label}")

    def processes(self, kind: str) -> list[psutil.Process]:
        """Those of its nodes that run something of that name."""
        every = psutil.Process(self.pid).children(recursive=True)
        return [one for one in every if kind in " ".join(words_of(one))]

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._answer() == "done"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("= "):
                return line[2:].strip()
        raise AssertionError("the cluster ended")


@contextmanager
def started(*labels: str) -> Iterator[Nodes]:
    """A cluster with a node of each label; the first is its head."""
    for left in reversed(range(TRIES)):
        with _begun(labels) as process:
            try:
                nodes = Nodes(process)
            except AssertionError:
                if left:
                    continue
                raise
            try:
                yield nodes
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
            return


def _begun(labels: Sequence[str]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "support.ray_cluster", *labels],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **SETTINGS},
    )


def load_of(server: Reference, **others: Any) -> dict[str, Any]:
    """A load of eight connections on a server of known truth, as the engine is asked for it."""
    user, password, database = server.login
    return {
        "endpoint": {"host": "127.0.0.1", "port": server.port},
        **{"user": user, "password": password, "database": database},
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 100}},
        **{"connections": 8, "threads": 0, "warmup_s": 0.5, "window_s": 2.0},
        **{"interval_s": 1.0, "seed": 3, "seeding": "streams", "percentiles": [50, 95, 99]},
        **others,
    }


def serve(labels: Sequence[str]) -> None:
    """Runs the cluster until stdin ends."""
    from ray.cluster_utils import Cluster

    common = {"num_cpus": 2, "node_ip_address": ADDRESS, "object_store_memory": 80 * 2**20}
    head = {**common, "labels": {"dbdyno": labels[0]}, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.head_node]

    def add(label: str) -> None:
        nodes.append(cluster.add_node(**common, labels={"dbdyno": label}))

    for label in labels[1:]:
        add(label)
    _tell(cluster.address)
    _tell(cluster.head_node.get_session_dir_path())
    for line in sys.stdin:
        do, what = line.split()
        if do == "kill":
            cluster.remove_node(nodes[int(what)], allow_graceful=False)
        else:
            add(what)
        _tell("done")
    cluster.shutdown()


def _tell(text: str) -> None:
    sys.stdout.write(f"= {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1:])
