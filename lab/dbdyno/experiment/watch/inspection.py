"""Facts of this machine before a run: needs of the run, and disturbances.

The code of a run's own watch reads them, so `dbdyno doctor` shows beforehand the causes of later
findings. A fact is `unknown` if the machine does not report it.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from dbdyno import _engine
from dbdyno.errors import ServerError
from dbdyno.experiment.certify import login_at
from dbdyno.experiment.data.disk import nearest
from dbdyno.experiment.watch import environment, host
from dbdyno.experiment.watch.environment import ROOT, UNKNOWN
from dbdyno.experiment.watch.neighbours import busiest
from dbdyno.experiment.watch.probe import probe_speed
from dbdyno.experiment.watch.proc import text_of
from dbdyno.experiment.watch.stacks import SamplerChoice, sampler_for
from dbdyno.files import temporary_folder
from dbdyno.measurement.disturbance import host_cpu
from dbdyno.servers.process import server_user
from dbdyno.servers.programs import provision
from dbdyno.servers.programs.catalog import CATALOG, LIBRARIES, Library
from dbdyno.servers.programs.sources import Tool

LOOK_S: Final = 1.5
"""Seconds for which other processes are watched."""


@dataclass(frozen=True)
class MachineFacts:
    """This machine as a run in a workspace would find it.

    Attributes:
        environment: description of the machine, as a run stores it.
        turbo: `on`, `off` or `unknown`.
        cpus: CPUs that this process may use.
        quota_cores: cores allowed by control groups, if they have a quota.
        others: share of the CPU used by other processes (0 to 1).
        busy: the busiest of these processes, by name and pid.
        steal: share of the CPU given to others by the hypervisor (0 to 1).
        memory_bytes: memory available now, also to the control groups of this process.
        swappiness: how readily the kernel swaps, 0 to 200.
        swap_pages_per_s: pages moved to or from swap now.
        disk_free_bytes: free space where the workspace is.
        sync_ms: time of a small synced write there, if the folder can be written.
        reactor: how the load generator waits for sockets: `io_uring`, `epoll` or `unknown`.
        tools, libraries: needed by some server of the catalog, and missing.
        server_user: user of the servers' processes; empty if dbdyno is root and lacks this user.
        stacks: sampler of stacks, tried on this process.
        open_files_max: hard limit of open files; -1 without a limit.
    """

    environment: Mapping[str, str]
    turbo: str
    cpus: int
    quota_cores: float | None
    others: float
    busy: tuple[str, ...]
    steal: float
    memory_bytes: int
    swap_bytes: int
    swap_used_bytes: int
    swappiness: int | None
    swap_pages_per_s: float
    disk_free_bytes: int
    sync_ms: float | None
    reactor: str
    tools: tuple[Tool, ...]
    libraries: tuple[Library, ...]
    is_root: bool
    server_user: str
    stacks: SamplerChoice
    open_files_max: int


def inspect(workspace: Path, look_s: float = LOOK_S, root: Path = ROOT) -> MachineFacts:
    """Read all facts, in `look_s` and some tenths of a second.

    Args:
        root: where `proc` and `sys` are.
    """
    pid, place = os.getpid(), nearest(workspace)
    before = host.read(0, pid)
    busy = busiest(0, look_s)
    seen = host.sample(before, host.read(0, pid), 0.0)
    cores = max(host_cpu(seen), 1e-9)
    others = seen.host_cpu_user + seen.host_cpu_system - seen.generator_cpu
    swap = psutil.swap_memory()
    swappiness = text_of(root / "proc/sys/vm/swappiness").strip()
    available, allowed = seen.memory_available_bytes, host.memory_allowed_bytes(pid)
    wanted = {tool.program: tool for entry in CATALOG for tool in entry.source.tools}
    tools, libraries = provision.lacking(wanted.values(), LIBRARIES)
    return MachineFacts(
        environment=environment.describe(place, root),
        turbo=_turbo(root),
        cpus=len(os.sched_getaffinity(0)),
        quota_cores=host.quota_cores(pid),
        others=max(0.0, others) / cores,
        busy=tuple(busy),
        steal=seen.host_cpu_steal / cores,
        memory_bytes=available if allowed is None else min(available, allowed),
        swap_bytes=swap.total,
        swap_used_bytes=swap.used,
        swappiness=int(swappiness) if swappiness.isdecimal() else None,
        swap_pages_per_s=seen.swap_pages_per_s or 0.0,
        disk_free_bytes=shutil.disk_usage(place).free,
        sync_ms=probe_speed(place).sync_ms,
        reactor=_reactor(),
        tools=tuple(tools),
        libraries=tuple(libraries),
        is_root=os.geteuid() == 0,
        server_user=_server_user(),
        stacks=_stacks(pid),
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    )


def _turbo(root: Path) -> str:
    """Intel's driver has a switch against turbo, other drivers a switch for it."""
    cpu = root / "sys/devices/system/cpu"
    forbidden = text_of(cpu / "intel_pstate/no_turbo").strip()
    allowed = text_of(cpu / "cpufreq/boost").strip()
    return {"0": "on", "1": "off"}.get(forbidden) or {"1": "on", "0": "off"}.get(allowed, UNKNOWN)


def _reactor() -> str:
    """The engine's reactor here, from the record of a query on a server of its own."""
    try:
        server = _engine.Reference("fixed", 0.001)
        spec = {
            **login_at(server),
            "connections": 1,
            "window_s": 1.0,
            "events": 1,
            "seed": 1,
            "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 9}},
        }
        return str(_engine.run(spec, None, _engine.Stop())["reactor"])
    except (OSError, RuntimeError):
        return UNKNOWN


def _stacks(pid: int) -> SamplerChoice:
    with temporary_folder() as folder:
        return sampler_for(pid, folder)


def _server_user() -> str:
    try:
        user = server_user()
    except ServerError:
        return ""
    return user.name if user else psutil.Process().username()
