"""Facts of a machine before a run: those of this one, and of a planted one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment.watch import inspection
from dbdyno.experiment.watch.inspection import inspect
from dbdyno.servers.process import ServerUser


def test_this_machine_has_all_facts(tmp_path: Path) -> None:
    facts = inspect(tmp_path / "not" / "there", look_s=0.1)
    assert not (tmp_path / "not").exists()
    assert facts.environment["filesystem"]
    assert 1 <= facts.cpus <= (os.cpu_count() or 1)
    assert 0 <= facts.others <= 1
    assert 0 <= facts.steal <= 1
    assert facts.memory_bytes > 0
    assert facts.swap_used_bytes <= facts.swap_bytes
    assert facts.disk_free_bytes > 0
    assert facts.sync_ms is not None
    assert facts.sync_ms > 0
    assert facts.reactor in {"io_uring", "epoll"}
    assert facts.is_root == (os.geteuid() == 0)
    assert facts.open_files_max != 0
    assert (facts.stacks.name == "perf") == (facts.stacks.why == "")


@pytest.mark.parametrize(
    ("file", "text", "turbo"),
    [
        ("intel_pstate/no_turbo", "0", "on"),
        ("intel_pstate/no_turbo", "1", "off"),
        ("cpufreq/boost", "1", "on"),
        ("cpufreq/boost", "0", "off"),
        ("other", "1", "unknown"),
    ],
)
def test_turbo_and_swappiness_are_read_below_the_root(
    tmp_path: Path, file: str, text: str, turbo: str
) -> None:
    for place, content in (
        (tmp_path / "sys/devices/system/cpu" / file, text),
        (tmp_path / "proc/sys/vm/swappiness", "7"),
    ):
        place.parent.mkdir(parents=True)
        place.write_text(f"{content}\n")
    facts = inspect(tmp_path, look_s=0.01, root=tmp_path)
    assert (facts.turbo, facts.swappiness) == (turbo, 7)


def test_the_user_of_the_servers_is_the_labs_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_there() -> None:
        raise ServerError("there is no user 'nobody' to run servers as")

    lent = ServerUser("nobody", 65534, 65534)
    for choose, name in ((lambda: lent, "nobody"), (nobody_there, "")):
        monkeypatch.setattr(inspection, "server_user", choose)
        assert inspect(tmp_path, look_s=0.01).server_user == name
    monkeypatch.setattr(inspection, "server_user", lambda: None)
    assert inspect(tmp_path, look_s=0.01).server_user
