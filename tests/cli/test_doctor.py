"""`dbdyno doctor`: planted facts and how they are judged, what is printed, the exit status."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from tests.cli.test_app import run

from dbdyno.cli import doctor
from dbdyno.cli.doctor import Diagnosis, Rating, diagnoses
from dbdyno.experiment.watch.inspection import MachineFacts
from dbdyno.experiment.watch.stacks import SamplerChoice
from dbdyno.servers.programs.catalog import LIBAIO
from dbdyno.servers.programs.sources import Tool

GIB = 1024**3
QUIET = MachineFacts(
    environment={
        "governor": "performance",
        "clocksource": "tsc",
        "virtualisation": "none seen",
        "transparent_huge_pages": "madvise",
        "filesystem": "ext4",
        "storage": "nvme0n1",
        "storage_kind": "NVMe",
    },
    turbo="off",
    cpus=8,
    quota_cores=None,
    others=0.01,
    busy=(),
    steal=0.0,
    memory_bytes=16 * GIB,
    swap_bytes=0,
    swap_used_bytes=0,
    swappiness=60,
    swap_pages_per_s=0.0,
    disk_free_bytes=100 * GIB,
    sync_ms=0.5,
    reactor="io_uring",
    tools=(),
    libraries=(),
    is_root=False,
    server_user="bench",
    stacks=SamplerChoice("perf"),
    open_files_max=1_048_576,
)
BUSY = ("python3 (pid 4242, 0.71 cores)",)


def judged(**changed: object) -> dict[str, Diagnosis]:
    """What is not ok of a quiet machine with other facts, by subject."""
    own = {field.name for field in fields(MachineFacts)}
    known = {name: value for name, value in changed.items() if name not in own}
    of_fields = {name: value for name, value in changed.items() if name in own}
    facts = replace(QUIET, environment={**QUIET.environment, **known}, **of_fields)
    return {one.subject: one for one in diagnoses(facts) if one.rating is not Rating.OK}


def test_a_quiet_machine_is_ok_and_needs_no_remedy() -> None:
    every = list(diagnoses(QUIET))
    assert {one.rating for one in every} == {Rating.OK}
    assert {one.effect + one.remedy for one in every} == {""}
    assert len({one.subject for one in every}) == len(every)


def test_what_a_machine_does_not_report_is_no_doubt() -> None:
    unknown = dict.fromkeys(QUIET.environment, "unknown")
    assert judged(**unknown, turbo="unknown", swappiness=None, open_files_max=-1) == {}


NOTES = [
    ({"cpus": 1}, "CPUs", "add a CPU"),
    ({"quota_cores": 1.5}, "CPUs", "--cpus"),
    ({"governor": "powersave"}, "CPU governor", "echo performance | sudo tee /sys/"),
    ({"turbo": "on"}, "turbo", "echo 1 | sudo tee /sys/"),
    ({"clocksource": "hpet"}, "clock source", "echo tsc | sudo tee /sys/"),
    ({"others": 0.05, "busy": BUSY}, "other processes", "--disturbance-max"),
    ({"steal": 0.01}, "steal", "another time"),
    ({"memory_bytes": GIB}, "memory", "innodb_buffer_pool_size"),
    ({"swap_bytes": GIB, "swap_used_bytes": 1}, "swap", "sudo swapoff -a"),
    ({"swap_bytes": GIB}, "swap", "sudo sysctl vm.swappiness=1"),
    ({"transparent_huge_pages": "always"}, "transparent huge pages", "echo madvise | sudo tee"),
    ({"disk_free_bytes": GIB}, "disk of the workspace", "dbdyno runs clean"),
    ({"sync_ms": 40.0}, "synced write", "faster disk"),
    ({"storage_kind": "memory"}, "synced write", "--workspace"),
    ({"reactor": "epoll"}, "load generator", "kernel.io_uring_disabled=0"),
    ({"tools": (Tool("mvn", "maven"),)}, "download tools", "apt-get install -y maven"),
    ({"is_root": True, "server_user": "nobody"}, "user of the servers", "useradd --system"),
    ({"stacks": SamplerChoice("gdb", "perf is not installed")}, "stacks", "install linux-perf"),
    ({"stacks": SamplerChoice("", "perf is refused: no")}, "stacks", "perf_event_paranoid=1"),
    ({"open_files_max": 1024}, "open files", "sudo prlimit --pid $$ --nofile="),
]
PROBLEMS = [
    ({"others": 0.2, "busy": BUSY}, "other processes", "--disturbance-max"),
    ({"steal": 0.2}, "steal", "another time"),
    ({"disk_free_bytes": 1024**2}, "disk of the workspace", "dbdyno runs clean"),
    ({"sync_ms": None}, "synced write", "--workspace"),
    ({"reactor": "unknown"}, "load generator", "dbdyno certify"),
    ({"libraries": (LIBAIO,)}, "shared libraries", "apt-get install -y libaio1"),
    ({"is_root": True, "server_user": ""}, "user of the servers", "DBDYNO_SERVER_USER"),
]


CASES = [
    (changed, subject, rating, remedy)
    for rating, rows in ((Rating.NOTE, NOTES), (Rating.PROBLEM, PROBLEMS))
    for changed, subject, remedy in rows
]


@pytest.mark.parametrize(("changed", "subject", "rating", "remedy"), CASES)
def test_each_fact_is_judged_by_itself_and_has_a_remedy(
    changed: dict[str, object], subject: str, rating: Rating, remedy: str
) -> None:
    found = judged(**changed)
    assert list(found) == [subject]
    assert found[subject].rating is rating
    assert found[subject].effect
    assert remedy in found[subject].remedy


def test_steal_and_other_processes_are_a_problem_together() -> None:
    found = judged(others=0.08, steal=0.04, busy=BUSY)
    assert {name: one.rating for name, one in found.items()} == {
        "other processes": Rating.PROBLEM,
        "steal": Rating.NOTE,
    }
    assert found["other processes"].value == f"8.0% of the CPU: {BUSY[0]}"
    turned = judged(others=0.04, steal=0.08)
    assert {name: one.rating for name, one in turned.items()} == {
        "other processes": Rating.NOTE,
        "steal": Rating.PROBLEM,
    }


def test_the_servers_of_a_missing_library_are_named() -> None:
    assert judged(libraries=(LIBAIO,))["shared libraries"].effect.startswith("servers of mariadb")


def test_each_fact_is_a_line_and_a_problem_is_the_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "inspect", lambda workspace: QUIET)
    status, out, err = run("doctor", capsys=capsys)
    assert (status, err) == (0, "")
    assert {line.partition(" ")[0] for line in out.splitlines()} == {"ok"}
    busy = replace(QUIET, others=0.2, busy=BUSY, turbo="on")
    monkeypatch.setattr(doctor, "inspect", lambda workspace: busy)
    status, out, err = run("doctor", capsys=capsys)
    assert (status, err) == (1, "")
    lines = out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("problem"))
    assert lines[at].split(maxsplit=3)[3] == (
        "20.0% of the CPU: python3 (pid 4242, 0.71 cores): measurements would be void"
    )
    assert lines[at + 1].strip().startswith("remedy: stop them")
    assert lines[at + 1].index("remedy") == lines[at].index("20.0%")
    assert sum(line.startswith("note") for line in lines) == 1


def test_the_same_is_there_for_programs_and_as_markdown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "inspect", lambda workspace: replace(QUIET, sync_ms=None))
    status, out, _ = run("doctor", "--output", "json", capsys=capsys)
    found = json.loads(out)
    assert (status, found["problems"]) == (1, 1)
    (problem,) = [one for one in found["diagnoses"] if one["rating"] == "problem"]
    assert problem == {
        "subject": "synced write",
        "value": "not possible",
        "rating": "problem",
        "effect": "the workspace cannot be written",
        "remedy": "choose another folder with --workspace",
    }
    _, out, _ = run("doctor", "--output", "markdown", capsys=capsys)
    assert "| problem | synced write | not possible: the workspace cannot be written |" in out
