"""`dbdyno doctor`: gaps of this machine and disturbances of a run, each with its remedy.

`experiment.watch.inspection` reads the facts; `diagnoses` judges them and is pure. A problem makes
a run fail or its measurements void. A note makes measurements slower or less exact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

import typer

from dbdyno.cli import options
from dbdyno.experiment.data.disk import FLOOR_BYTES, bytes_expected
from dbdyno.experiment.watch.environment import UNKNOWN
from dbdyno.experiment.watch.inspection import MachineFacts, inspect
from dbdyno.experiment.watch.stacks import PERF, REFUSES
from dbdyno.judge.checks.machine import LIMITS
from dbdyno.language.catalogues import Language
from dbdyno.language.words import Text, name
from dbdyno.plan.plan import DesignPlan, Plan
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.parts import Table, table
from dbdyno.servers.process import OWN_USER
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.programs.provision import install_command

FAST_CLOCKS: Final = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
"""Clock sources that are read without a system call; the load generator reads one each event."""
MEMORY_MIN_BYTES: Final = 2 * 1024**3
"""A server with dbdyno's cache of 256 MiB takes about 700 MiB, besides files and load generator."""
SWAPPINESS_MAX: Final = 10
"""Beyond it the kernel swaps out a server's idle memory although memory is free; 60 is usual."""
SYNC_MS_MAX: Final = 20.0
"""A rotating disk needs 8 ms; with 20 ms a connection commits at most 50 times a second."""
OPEN_FILES_MIN: Final = 5120
"""MySQL wants 5 for each of the 1024 connections (max_connections) that dbdyno allows."""
CPU_FILES: Final = "/sys/devices/system/cpu"


class Rating(StrEnum):
    """Effect of a fact on a run."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Diagnosis:
    """A fact of this machine.

    Attributes:
        effect: its consequence for a run; empty if it is ok.
        remedy: a command if possible; empty if it is ok.
    """

    subject: str
    value: str
    rating: Rating = Rating.OK
    effect: str = ""
    remedy: str = ""


Doubt = tuple[bool, Rating, str, str]
"""True if it applies; rating, effect and remedy of the diagnosis then."""


def diagnoses(facts: MachineFacts) -> Iterator[Diagnosis]:
    """Judge each fact."""
    yield from _of_cpu(facts)
    yield from _of_others(facts)
    yield from _of_memory(facts)
    yield from _of_disk(facts)
    yield from _of_programs(facts)
    yield from _of_stacks(facts)
    yield from _of_limits(facts)


def _judged(subject: str, value: str, *doubts: Doubt) -> Diagnosis:
    """The diagnosis by the first applicable doubt."""
    for applies, rating, effect, remedy in doubts:
        if applies:
            return Diagnosis(subject, value, rating, effect, remedy)
    return Diagnosis(subject, value)


def _of_cpu(facts: MachineFacts) -> Iterator[Diagnosis]:
    quota, governor = facts.quota_cores, facts.environment["governor"]
    yield _judged(
        "CPUs",
        f"{facts.cpus}" if quota is None else f"{facts.cpus}, of which a quota allows {quota:.4g}",
        (
            quota is not None and quota < facts.cpus,
            Rating.NOTE,
            "processes stand still while the quota is used up",
            "start the container without --cpus, or the systemd unit without CPUQuota=",
        ),
        (
            facts.cpus < 2,
            Rating.NOTE,
            "server and load generator take turns on one CPU",
            "add a CPU, or measure a server on another machine",
        ),
    )
    yield _judged(
        "CPU governor",
        governor,
        (
            governor not in ("performance", UNKNOWN),
            Rating.NOTE,
            "the clock follows the load",
            f"echo performance | sudo tee {CPU_FILES}/cpu*/cpufreq/scaling_governor",
        ),
    )
    yield _judged(
        "turbo",
        facts.turbo,
        (
            facts.turbo == "on",
            Rating.NOTE,
            "the clock depends on heat and on the number of busy cores",
            f"echo 1 | sudo tee {CPU_FILES}/intel_pstate/no_turbo, "
            f"or without this file: echo 0 | sudo tee {CPU_FILES}/cpufreq/boost",
        ),
    )
    source = facts.environment["clocksource"]
    yield _judged(
        "clock source",
        source,
        (
            source not in (*FAST_CLOCKS, UNKNOWN),
            Rating.NOTE,
            "each reading of the clock is a system call, which costs the load generator CPU",
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    )


def _of_others(facts: MachineFacts) -> Iterator[Diagnosis]:
    """Other processes and steal, whose sum makes a measurement void; the larger is the problem."""
    others, steal = facts.others, facts.steal
    is_void = others + steal > DesignPlan().disturbance_max
    void = "measurements would be void"
    busy = f": {', '.join(facts.busy)}" if facts.busy else ""
    stop = "stop them, or allow for them with --disturbance-max"
    yield _judged(
        "other processes",
        f"{others:.1%} of the CPU{busy}",
        (is_void and others >= steal, Rating.PROBLEM, void, stop),
        (
            others > LIMITS["others"].note,
            Rating.NOTE,
            "they take CPU from server and load generator",
            stop,
        ),
    )
    elsewhere = "measure at another time, or on a machine that is not shared"
    yield _judged(
        "steal",
        f"{steal:.1%} of the CPU, {facts.environment['virtualisation']}",
        (is_void and steal > others, Rating.PROBLEM, void, elsewhere),
        (
            steal > LIMITS["steal"].note,
            Rating.NOTE,
            "other virtual machines take CPU from this one",
            elsewhere,
        ),
    )


def _of_memory(facts: MachineFacts) -> Iterator[Diagnosis]:
    yield _judged(
        "memory",
        f"{_gib(facts.memory_bytes)} available",
        (
            facts.memory_bytes < MEMORY_MIN_BYTES,
            Rating.NOTE,
            "the kernel may swap a server out or end it",
            "stop other programs, or set smaller caches: --set innodb_buffer_pool_size=64M",
        ),
    )
    used = f"{_gib(facts.swap_used_bytes)} of {_gib(facts.swap_bytes)} used"
    yield _judged(
        "swap",
        f"{used}, swappiness {facts.swappiness}" if facts.swap_bytes else "none",
        (
            facts.swap_used_bytes > 0,
            Rating.NOTE,
            f"memory moves to and from the disk, now {facts.swap_pages_per_s:.0f} pages a second",
            "sudo swapoff -a",
        ),
        (
            facts.swap_bytes > 0 and (facts.swappiness or 0) > SWAPPINESS_MAX,
            Rating.NOTE,
            "the kernel may swap a server's memory out before memory is short",
            "sudo sysctl vm.swappiness=1",
        ),
    )
    pages = facts.environment["transparent_huge_pages"]
    yield _judged(
        "transparent huge pages",
        pages,
        (
            pages == "always",
            Rating.NOTE,
            "the kernel moves a server's memory while it is measured",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    )


def _of_disk(facts: MachineFacts) -> Iterator[Diagnosis]:
    two = {"systems": ["mysql:8.0.33", "mysql:9.7.4"], "workloads": ["oltp_read_write"]}
    wanted = bytes_expected(Plan.model_validate(two))
    known, free, sync_ms = facts.environment, facts.disk_free_bytes, facts.sync_ms
    larger = "dbdyno runs clean, or choose a larger disk with --workspace"
    yield _judged(
        "disk of the workspace",
        f"{_gib(free)} free, {known['filesystem']} on {known['storage']}",
        (free < FLOOR_BYTES, Rating.PROBLEM, "no measurement begins", larger),
        (
            free < wanted,
            Rating.NOTE,
            f"a comparison of two servers with the usual rows may need {_gib(wanted)}",
            larger,
        ),
    )
    yield _judged(
        "synced write",
        "not possible" if sync_ms is None else f"{sync_ms:.2f} ms",
        (
            sync_ms is None,
            Rating.PROBLEM,
            "the workspace cannot be written",
            "choose another folder with --workspace",
        ),
        (
            known["storage_kind"] == "memory",
            Rating.NOTE,
            "the workspace is in memory, so commits cost no writes to a disk",
            "choose a folder on a disk with --workspace",
        ),
        (
            (sync_ms or 0) > SYNC_MS_MAX,
            Rating.NOTE,
            "the disk limits every load that commits",
            "choose a faster disk with --workspace",
        ),
    )


def _of_programs(facts: MachineFacts) -> Iterator[Diagnosis]:
    yield _judged(
        "load generator",
        facts.reactor,
        (
            facts.reactor == UNKNOWN,
            Rating.PROBLEM,
            "it did not complete a query on a server of its own",
            "dbdyno certify",
        ),
        (
            facts.reactor == "epoll",
            Rating.NOTE,
            "it takes more CPU for each request than with io_uring",
            "sudo sysctl kernel.io_uring_disabled=0; in a container, allow io_uring in its "
            "seccomp profile",
        ),
    )
    lost = ", ".join(library.soname for library in facts.libraries)
    products = {one.product for one in CATALOG if {*one.libraries} & {*facts.libraries}}
    yield _judged(
        "shared libraries",
        f"without {lost}" if lost else "complete",
        (
            bool(lost),
            Rating.PROBLEM,
            f"servers of {', '.join(sorted(products))} do not start",
            install_command([], facts.libraries),
        ),
    )
    lost = ", ".join(tool.program for tool in facts.tools)
    yield _judged(
        "download tools",
        f"without {lost}" if lost else "complete",
        (
            bool(lost),
            Rating.NOTE,
            "servers from their registries cannot be downloaded",
            install_command(facts.tools, []),
        ),
    )


def _of_stacks(facts: MachineFacts) -> Iterator[Diagnosis]:
    sampler, why = facts.stacks.name, facts.stacks.why
    remedy = (
        "sudo sysctl kernel.perf_event_paranoid=1; it lets all users sample processes of their "
        "own, with functions of the kernel"
        if REFUSES in why
        else "sudo apt-get install linux-perf; on Ubuntu linux-tools-generic"
    )
    halts = f"dbdyno explain halts servers to look at them: {why}"
    yield _judged(
        "stacks",
        sampler or "no sampler",
        (not sampler, Rating.NOTE, f"dbdyno explain finds no stacks: {why}", remedy),
        (sampler != PERF, Rating.NOTE, halts, remedy),
    )


def _of_limits(facts: MachineFacts) -> Iterator[Diagnosis]:
    own = f"useradd --system --no-create-home --shell /usr/sbin/nologin {OWN_USER}"
    yield _judged(
        "user of the servers",
        facts.server_user or "none",
        (
            not facts.server_user,
            Rating.PROBLEM,
            "servers do not run as root",
            f"{own}, or name a user with DBDYNO_SERVER_USER",
        ),
        (
            facts.is_root and facts.server_user == "nobody",
            Rating.NOTE,
            "other programs may run as nobody too, and read the servers' data",
            own,
        ),
    )
    files = facts.open_files_max
    yield _judged(
        "open files",
        "no limit" if files < 0 else f"{files} at most",
        (
            0 <= files < OPEN_FILES_MIN,
            Rating.NOTE,
            "MySQL lowers max_connections and table_open_cache by itself",
            "sudo prlimit --pid $$ --nofile=65536",
        ),
    )


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"


@dataclass(frozen=True)
class DoctorResult(Result):
    """The diagnoses of this machine."""

    diagnoses: tuple[Diagnosis, ...]

    def plain(self, language: Language) -> Iterator[Text]:
        """A line for each fact, and one for its remedy."""
        width = max(len(diagnosis.subject) for diagnosis in self.diagnoses)
        for diagnosis in self.diagnoses:
            yield name(f"{diagnosis.rating:<7}  {diagnosis.subject:<{width}}  {_said(diagnosis)}")
            if diagnosis.remedy:
                yield name(f"{'':<{width + 11}}remedy: {diagnosis.remedy}")

    def markdown(self) -> Iterator[Table]:
        """A row for each fact."""
        yield table(
            name("Machine"),
            self.diagnoses,
            (name("Rating"), lambda diagnosis: diagnosis.rating.value),
            (name("Subject"), lambda diagnosis: diagnosis.subject),
            (name("Value"), _said),
            (name("Remedy"), lambda diagnosis: diagnosis.remedy),
        )

    def document(self) -> dict[str, Any]:
        """Every diagnosis, and how many are problems."""
        ratings = [diagnosis.rating for diagnosis in self.diagnoses]
        return {
            "problems": ratings.count(Rating.PROBLEM),
            "diagnoses": [asdict(diagnosis) for diagnosis in self.diagnoses],
        }


def _said(diagnosis: Diagnosis) -> str:
    return ": ".join(filter(None, (diagnosis.value, diagnosis.effect)))


def command(
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
) -> None:
    """Show what this machine lacks and what may disturb a run. Exit with status 1 if a run would
    fail, or its measurements would be void.
    """
    result = DoctorResult(tuple(diagnoses(inspect(workspace))))
    sys.stdout.write(render(result, output))
    if result.document()["problems"]:
        raise typer.Exit(1)
