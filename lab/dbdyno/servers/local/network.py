"""Puts a distance between load, primary and replicas: network namespaces, veth pairs and netem.

Each of them gets a network of its own, joined to the others by one cable a pair, whose two ends
each hold back what they send for half of the round trip's delay. Nothing outside can reach in.

A namespace has no name here: it lives as long as the process that holds it, and the kernel ends
that with the lab, however the lab dies. So nothing is left behind that somebody had to clean.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.plan.plan import NetworkPlan
from dbdyno.servers import process
from dbdyno.servers.process import OWN_USER, Place, inside

PROGRAMS: Final = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux"}
PROGRAMS_ALSO: Final = {"nsenter": "util-linux", "sleep": "coreutils"}
PACKETS_MAX: Final = 100_000  # held back at one end; netem's own limit of 1000 would lose some
ADDRESS: Final = "10.213.0.{}"
PATIENCE_S: Final = 5.0
COMMAND_S_MAX: Final = 30.0
CLIENT: Final = "client"


def wanted(plan: NetworkPlan) -> bool:
    """Whether the plan asks for any delay."""
    return plan.client_ms > 0 or plan.replica_ms > 0


def check(plan: NetworkPlan) -> None:
    """The machine can make the delays that the plan asks for; does nothing if it asks for none.

    Raises:
        ServerError: says what is missing: programs, rights, or netem in the kernel.
    """
    if not wanted(plan):
        return
    asked = f"client_ms {plan.client_ms:g}, replica_ms {plan.replica_ms:g}"
    missing = [name for name in (*PROGRAMS, *PROGRAMS_ALSO) if shutil.which(name) is None]
    if missing:
        packages = {(PROGRAMS | PROGRAMS_ALSO)[name] for name in missing}
        raise _refusal(asked, f"no {', '.join(missing)}", f"install {', '.join(sorted(packages))}")
    if os.geteuid() != 0:
        raise _refusal(
            asked,
            f"user {os.geteuid()} is not root",
            "run dbdyno as root, which makes the namespaces; servers then run as the user"
            f" {OWN_USER}, or as nobody where there is none",
        )
    # In a namespace of its own that ends with the command: netem must be there, and allowed.
    probe = ["unshare", "--net", "tc", *_netem("lo", 1.0)]
    said = _complaint(probe)
    if said is not None:
        hint = "this user may not make network namespaces: run outside the container"
        if "qdisc" in said:
            hint = "load the kernel module sch_netem, or use a kernel that has it"
        raise _refusal(asked, f"`{' '.join(probe)}` said: {said}", hint)


class Network:
    """The networks of one system: the load's, and one for each of its servers.

    Attributes:
        client: where the load runs.
        members: where the primary and then its replicas run.
    """

    def __init__(self, plan: NetworkPlan, members: int, folder: Path) -> None:
        """Makes the namespaces and joins them.

        Args:
            members: servers, the primary included.
            folder: an existing folder for what the programs print.

        Raises:
            ServerError: a command failed; nothing is left.
        """
        self._holders: list[subprocess.Popen[bytes]] = []
        names = [CLIENT, "primary", *(f"replica{n}" for n in range(1, members))]
        try:
            for _ in names:
                self._holders.append(_hold(folder))
            pids = dict(zip(names, (holder.pid for holder in self._holders), strict=True))
            for command, text in commands(pids, plan):
                _run(command, text)
        except BaseException:
            self.close()
            raise
        places = [Place(_address(n), namespace_of(pid)) for n, pid in enumerate(pids.values())]
        self.client, self.members = places[0], tuple(places[1:])

    def close(self) -> None:
        """Ends the namespaces; processes that still run in them keep theirs until they end."""
        for holder in self._holders:
            holder.kill()
            holder.wait()
        self._holders.clear()


def commands(pids: dict[str, int], plan: NetworkPlan) -> list[tuple[list[str], str]]:
    """What joins the namespaces that these processes hold: each command and what it is fed.

    The load has a cable to the primary alone, the servers have one to each other.
    """
    names = list(pids)
    made: list[tuple[list[str], str]] = []
    cables = [pair for pair in combinations(names, 2) if pair[0] != CLIENT or pair[1] == names[1]]
    for one, other in cables:
        ends = f"to-{other}", f"to-{one}"
        add = ["ip", "link", "add", ends[0], "netns", str(pids[one]), "type", "veth"]
        made.append(([*add, "peer", "name", ends[1], "netns", str(pids[other])], ""))
    for number, name in enumerate(names):
        peers = [other for pair in cables if name in pair for other in pair if other != name]
        lines = ["link set lo up", f"address add {_address(number)}/32 dev lo"]
        for peer in peers:
            route = f"route add {_address(names.index(peer))}/32 dev to-{peer}"
            lines += [f"link set to-{peer} up", f"{route} src {_address(number)}"]
        made.append(([*inside(namespace_of(pids[name])), "ip", "-batch", "-"], "\n".join(lines)))
        for peer in peers:
            delay_ms = plan.client_ms if CLIENT in (name, peer) else plan.replica_ms
            if delay_ms:
                tc = [*inside(namespace_of(pids[name])), "tc", *_netem(f"to-{peer}", delay_ms)]
                made.append((tc, ""))
    return made


def namespace_of(pid: int) -> Path:
    """The network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net")


def _netem(device: str, round_trip_ms: float) -> list[str]:
    half_us = round(round_trip_ms * 500)
    delay = ["netem", "delay", f"{half_us}us", "limit", str(PACKETS_MAX)]
    return ["qdisc", "add", "dev", device, "root", *delay]


def _address(number: int) -> str:
    return ADDRESS.format(number + 1)


def _hold(folder: Path) -> subprocess.Popen[bytes]:
    """A process that does nothing but live in a network of its own."""
    found = [shutil.which(name) or name for name in ("unshare", "sleep")]
    command = [found[0], "--net", found[1], "infinity"]
    holder = process.spawn(command, folder, None, folder / "network.log")
    ours, ends = namespace_of(os.getpid()).readlink(), time.monotonic() + PATIENCE_S
    with suppress(OSError):  # it ended between two looks
        while holder.poll() is None and time.monotonic() < ends:
            if namespace_of(holder.pid).readlink() != ours:
                return holder
            time.sleep(0.002)
    holder.kill()
    holder.wait()
    said = (folder / "network.log").read_text(errors="replace").strip()
    raise ServerError(
        "a network namespace could not be made",
        wanted=" ".join(command),
        found=said[-500:] or "it did not begin in time",
        hint="run as root, outside a container that forbids it",
    )


def _run(command: Sequence[str], text: str) -> None:
    said = _complaint(command, text)
    if said is not None:
        raise ServerError(
            "the network between load and servers could not be made",
            wanted=" ".join(command) + (f" <<< {text!r}" if text else ""),
            found=said,
            hint="run as root, outside a container that forbids it",
        )


def _complaint(command: Sequence[str], text: str = "") -> str | None:
    """Why a command that is fed a text did not do its work; None if it did."""
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {COMMAND_S_MAX:g} s"
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else None


def _refusal(asked: str, found: str, hint: str) -> ServerError:
    return ServerError(
        "this machine cannot put a delay between load and servers",
        wanted=f"network: {asked}",
        found=found,
        hint=f"{hint}; or leave the delay out of the plan (scales: network: {{}})",
    )
