"""Networks between load and servers: which commands make them, and when they are refused."""

import os
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.plan.plan import NetworkPlan
from dbdyno.servers import process
from dbdyno.servers.local import network

DELAYED = NetworkPlan(client_ms=0.8, replica_ms=2)
PIDS = {"client": 11, "primary": 12, "replica1": 13, "replica2": 14}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with nothing but fakes, which write down how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def fake(name, body="exit 0"):
        script = f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/calls\n{body}\n'
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    for name in (*network.PROGRAMS, *network.PROGRAMS_ALSO):
        fake(name)
    return fake


def calls(folder: Path) -> str:
    return (folder / "calls").read_text()


def commands(plan: NetworkPlan) -> list[str]:
    lines = []
    for command, text in network.commands(PIDS, plan):
        words = " ".join(Path(word).name if word.endswith("nsenter") else word for word in command)
        lines += [words, *(f"    {line}" for line in text.splitlines())]
    return lines


def test_the_load_has_a_cable_to_the_primary_and_the_servers_have_one_to_each_other():
    cables = [line for line in commands(NetworkPlan()) if line.startswith("ip link add")]
    assert cables == [
        "ip link add to-primary netns 11 type veth peer name to-client netns 12",
        "ip link add to-replica1 netns 12 type veth peer name to-primary netns 13",
        "ip link add to-replica2 netns 12 type veth peer name to-primary netns 14",
        "ip link add to-replica2 netns 13 type veth peer name to-replica1 netns 14",
    ]
    assert not [line for line in commands(NetworkPlan()) if "netem" in line]


def test_each_has_one_address_and_a_route_to_each_of_its_cables():
    lines = commands(NetworkPlan())
    begin = lines.index("nsenter --net=/proc/12/ns/net ip -batch -")
    assert lines[begin + 1 : begin + 9] == [
        "    link set lo up",
        "    address add 10.213.0.2/32 dev lo",
        "    link set to-client up",
        "    route add 10.213.0.1/32 dev to-client src 10.213.0.2",
        "    link set to-replica1 up",
        "    route add 10.213.0.3/32 dev to-replica1 src 10.213.0.2",
        "    link set to-replica2 up",
        "    route add 10.213.0.4/32 dev to-replica2 src 10.213.0.2",
    ]


def test_each_end_holds_back_half_of_the_round_trip():
    delays = [line for line in commands(DELAYED) if "netem" in line]
    qdisc = "tc qdisc add dev {} root netem delay {}us limit 100000"
    of_client = f"nsenter --net=/proc/11/ns/net {qdisc.format('to-primary', 400)}"
    of_primary = [
        f"nsenter --net=/proc/12/ns/net {qdisc.format(device, delay)}"
        for device, delay in (("to-client", 400), ("to-replica1", 1000), ("to-replica2", 1000))
    ]
    assert delays[:4] == [of_client, *of_primary]
    assert len(delays) == 8


def test_one_of_two_delays_alone_is_made_alone():
    delays = [line for line in commands(NetworkPlan(replica_ms=2)) if "netem" in line]
    assert len(delays) == 6
    assert not [line for line in delays if "to-client" in line or "/proc/11/" in line]


def test_no_delay_asks_nothing_of_the_machine(monkeypatch):
    monkeypatch.setenv("PATH", "")
    network.check(NetworkPlan())
    assert not network.wanted(NetworkPlan())
    assert network.wanted(NetworkPlan(replica_ms=0.1))


def test_a_machine_with_netem_is_taken(programs, tmp_path):
    network.check(DELAYED)
    assert calls(tmp_path) == (
        "unshare --net tc qdisc add dev lo root netem delay 500us limit 100000\n"
    )


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Error: Specified qdisc kind is unknown.", "load the kernel module sch_netem"),
        ("unshare: unshare failed: Operation not permitted", "run outside the container"),
    ],
)
def test_what_the_kernel_refuses_is_quoted_with_what_to_do(programs, said, hint):
    programs("unshare", f"echo '{said}' >&2; exit 2")
    with pytest.raises(ServerError, match="cannot put a delay between load and servers") as caught:
        network.check(DELAYED)
    assert caught.value.wanted == "network: client_ms 0.8, replica_ms 2"
    assert said in (caught.value.found or "")
    assert hint in (caught.value.hint or "")


def test_a_command_that_hangs_is_given_up(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "COMMAND_S_MAX", 0.2)
    programs("unshare", "exec /bin/sleep 60")
    with pytest.raises(ServerError, match="cannot put a delay") as caught:
        network.check(DELAYED)
    assert "did not end within 0.2 s" in (caught.value.found or "")


def test_missing_programs_are_named_with_their_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError) as caught:
        network.check(DELAYED)
    assert caught.value.found == "no ip, tc, unshare, nsenter, sleep"
    assert (caught.value.hint or "").startswith("install coreutils, iproute2, util-linux")


def test_a_user_who_is_not_root_is_refused(programs, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServerError) as caught:
        network.check(DELAYED)
    assert caught.value.found == "user 1000 is not root"
    assert "run dbdyno as root" in (caught.value.hint or "")


def test_a_command_that_fails_ends_every_namespace(programs, tmp_path, monkeypatch):
    held = []

    def hold(folder):
        held.append(process.spawn(["/bin/sleep", "600"], tmp_path, None, tmp_path / "log"))
        return held[-1]

    programs("ip", "echo 'RTNETLINK answers: File exists' >&2; exit 2")
    monkeypatch.setattr(network, "_hold", hold)
    with pytest.raises(ServerError, match="could not be made") as caught:
        network.Network(DELAYED, 2, tmp_path)
    assert "File exists" in (caught.value.found or "")
    assert "ip link add to-primary netns" in (caught.value.wanted or "")
    assert len(held) == 3
    assert all(holder.poll() is not None for holder in held)


def test_a_namespace_that_cannot_be_had_is_reported(programs, tmp_path, monkeypatch):
    spawn = process.spawn

    def ends_at_once(*asked):  # but is seen as running, as when it ends between two looks
        holder = spawn(*asked)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        monkeypatch.setattr(holder, "poll", lambda: None)
        return holder

    monkeypatch.setattr(process, "spawn", ends_at_once)
    programs("unshare", "echo 'unshare failed: Operation not permitted'; exit 1")
    with pytest.raises(ServerError, match="a network namespace could not be made") as caught:
        network.Network(DELAYED, 1, tmp_path)
    assert caught.value.found == "unshare failed: Operation not permitted"


def test_a_command_goes_inside_a_namespace_or_stays_as_it_is(programs, tmp_path):
    assert process.inside(None) == []
    inside = process.inside(network.namespace_of(7))
    assert inside == [str(tmp_path / "bin" / "nsenter"), "--net=/proc/7/ns/net"]
