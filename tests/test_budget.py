"""A stranger's bytes get a limited time and memory, and no reader takes more than linear time."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import signal
import sqlite3
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dbdyno import __main__, budget
from dbdyno.audit.audit import audit
from dbdyno.audit.facts import facts_in
from dbdyno.audit.imported import imported
from dbdyno.audit.logs.other_logs import logs_in
from dbdyno.audit.page.columns import Mapping
from dbdyno.audit.page.page import page_of
from dbdyno.audit.read import read, text_of
from dbdyno.audit.sentences import sentences_in
from dbdyno.audit.tables import publication_of
from dbdyno.errors import (
    DbdynoError,
    PlanError,
    PlanMistake,
    ProvisionError,
    StoreError,
    UsageError,
)
from dbdyno.plan import file, template
from dbdyno.servers.programs.unpack import Layout, unpack
from dbdyno.store import bundle, database
from dbdyno.store.database import open_file
from dbdyno.store.store import FILE_NAME, Store
from support import making
from support.published_logs import V1

DOUBLINGS: Final = 3
ENOUGH_S: Final = 0.02
"""CPU time of a reader that shows how it grows."""
SURE_S: Final = 1.0
"""The same if it seems to grow too fast."""
SIZE_MAX: Final = 2**20
FASTER: Final = 2
"""Growth over linear growth, far above chance; of eight times as much it is 8 if quadratic."""


def endless() -> None:
    re.fullmatch(r"(a+)+", "a" * 60 + "b")


def without_end_of_memory() -> int:
    return len([bytes(2**20) for _ in range(500)])


@pytest.mark.parametrize(
    ("work", "variable", "limit"),
    [
        (endless, budget.CPU_S, "1 s of CPU time"),
        (without_end_of_memory, budget.MEMORY_MIB, "100 MiB of memory"),
    ],
)
def test_work_beyond_a_limit_ends_with_the_limit_and_its_variable(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], variable: str, limit: str
) -> None:
    monkeypatch.setenv(budget.CPU_S, "1")
    monkeypatch.setenv(budget.MEMORY_MIB, "100")
    with pytest.raises(StoreError, match=rf"x\.zip takes(.|\n)*{limit}(.|\n)*{variable}=") as met:
        budget.within("x.zip", work, StoreError)
    assert met.value.wanted is not None


def test_a_result_and_an_error_come_back_as_they_are() -> None:
    assert budget.within("x", lambda: budget.within("y", os.getppid)) == os.getpid()

    def refuse() -> None:
        raise PlanError("x", [PlanMistake("a", "b", 3)])

    with pytest.raises(PlanError) as refused:
        budget.within("x", refuse)
    assert refused.value.mistakes == [PlanMistake("a", "b", 3)]


def test_ctrl_c_is_heard_while_c_code_works() -> None:
    def interrupt() -> None:
        os.kill(os.getppid(), signal.SIGINT)
        endless()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        budget.within("x", interrupt)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("words", ["audit", "import --as x", "run", "report", "workload check"])
def test_no_file_of_others_is_read_without_limits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
) -> None:
    """Wherever a child process would get its limits, it has too little memory."""
    monkeypatch.setattr(budget, "_restrict", lambda *_: os._exit(budget.OUT_OF_MEMORY))
    path = tmp_path / "theirs.yaml"
    path.write_text("text")
    assert __main__.main([*words.split(), str(path)]) > 0
    assert "takes more memory to read than it may" in capsys.readouterr().err
    with pytest.raises(ProvisionError, match="more memory to read than it may"):
        unpack(path, Layout(), tmp_path)


@pytest.mark.parametrize(
    "reader",
    [
        lambda path: read([path]),
        lambda path: imported([path], "made", Mapping()),
        lambda path: file.read(path, str),
        template.text_of,
    ],
    ids=["audit", "import", "plan", "template"],
)
def test_a_pipe_is_refused_and_not_waited_for(
    tmp_path: Path, reader: Callable[[Path], object]
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(DbdynoError, match="pipe, a terminal or a device: save"):
        reader(tmp_path / "pipe.yaml")
    with pytest.raises(UsageError, match="save its content in a file"):
        text_of(Path(os.devnull))


ENDLESS: Final = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n"
)


def test_a_store_with_a_view_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as forged:
        forged.execute(f"CREATE VIEW endless AS {ENDLESS}")
    with pytest.raises(StoreError, match="is not a dbdyno store"):
        Store.open(tmp_path)


def test_a_statement_of_a_store_has_a_time_and_hears_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(budget.CPU_S, "1")
    path = tmp_path / FILE_NAME
    with closing(open_file(path)) as connection:
        limit = f"1 s of CPU time(.|\n)*{budget.CPU_S}"
        with pytest.raises(StoreError, match=limit), connection.errors():
            connection.execute(ENDLESS).fetchone()
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(KeyboardInterrupt), connection.errors():
                connection.execute(ENDLESS).fetchone()
        finally:
            signal.signal(signal.SIGALRM, before)


def test_a_huge_value_of_a_store_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "VALUE_BYTES_MAX", 2**20)
    with Store.open(tmp_path) as store:
        run = store.create_run(making.plan(), "", {}, 1)
        with sqlite3.connect(tmp_path / FILE_NAME) as forged:
            forged.execute("DROP TRIGGER runs_stay_as_they_are")
            forged.execute("UPDATE runs SET environment = zeroblob(2000000)")
        with pytest.raises(StoreError, match="no value of a store has more than 1 MiB"):
            store.run(run.run_id)


# How each reader grows: its input for a size, in signs as a rule, and the reading of it.

Read = Callable[[Path], object]
Make = Callable[[Path, int], None]


def page(path: Path) -> object:
    text = text_of(path)
    facts_in(text, str(path))
    sentences_in(text)
    return page_of(text, str(path), Mapping())


def log(path: Path) -> object:
    return logs_in(text_of(path), str(path))


def imports(path: Path) -> object:
    return imported([path], "made", Mapping())


def audits(path: Path) -> object:
    return [audit(one) for one in read([path])]


def claims(path: Path) -> object:
    return publication_of(text_of(path), str(path))


def plan(path: Path) -> object:
    return file.read(path, str)


def loads(path: Path) -> object:
    return template.lua(template.read(template.text_of(path), str(path)), "made")


def bundles(path: Path) -> object:
    return bundle.read_bundle(path)


def runs(path: Path) -> object:
    with Store.open(path.parent) as store:
        return [store.measurements(run.run_id) for run in store.runs()]


def archives(path: Path) -> object:
    target = path.with_name(f"target{path.stat().st_ino}{time.monotonic_ns()}")
    target.mkdir()
    return unpack(path, Layout(), target)


def repeated(unit: str, before: str = "", behind: str = "") -> Make:
    """A text of units, each with its number where it has a place for it."""

    def make(path: Path, size: int) -> None:
        times = max(1, size // len(unit))
        parts = (unit.replace("%", str(n)) for n in range(times))
        path.write_text("".join([before, *parts, behind]))

    return make


def statement(unit: str, close: str = "", before: str = "", behind: str = "") -> Make:
    """A template with a long statement, of units and of as many closing parts."""

    def make(path: Path, size: int) -> None:
        times = size // (len(unit) + len(close))
        sql = f"{before}{unit * times}{close * times}{behind}"
        columns = {"id": {"type": "INTEGER", "value": "row"}}
        whole = {"tables": {"jobs": {"rows": 1, "columns": columns}}}
        whole["events"] = {"one": {"statements": [sql]}}
        path.write_text(json.dumps(whole))

    return make


def with_intervals(path: Path, size: int) -> None:
    measured = making.pairs((0.9,))[0]
    each = measured.intervals[:1] * max(1, size // 500)
    with Store.open(path.parent) as store:
        run = replace(store.create_run(making.plan(), "", {}, 1), run_id=measured.trial.run_id)
    bundle.write(path, run, [measured.model_copy(update={"intervals": each})])


def with_runs(path: Path, size: int) -> None:
    path.touch()
    with Store.open(path.parent) as store:
        first = store.runs()[-1] if store.run_ids() else store.create_run(making.plan(), "", {}, 1)
        for number in range(len(store.run_ids()), size // 2000):
            store.begin(replace(first, run_id=f"run-{number}"))


def with_members(path: Path, size: int) -> None:
    with tarfile.open(path, "w") as archive:
        for number in range(max(1, size // 512)):
            member = tarfile.TarInfo(f"f{number}")
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))


CSV: Final = "threads,system,tps,latency_ms_avg\n"
PLAN: Final = "systems: [mysql:8.0.15]\nworkloads: [oltp_read_only]\n"
TABLE: Final = "|threads|tps|\n|-|-|\n|1|2|\n\n"
READERS: Final[dict[Read, dict[str, Make]]] = {
    page: {
        **{
            unit: repeated(unit, "<table><tr><td>")
            for unit in ("<!--", "<a ", "<td a='", "</", "<![CDATA[", "<?", "<script>")
        },
        "ended": repeated("<td a='", "<table><tr><td>", ">"),
        "ends of blocks": repeated("<pre></nav>"),
        "nested tables": repeated("<table><tr><td>"),
        "columns of a table": repeated("a/%|", "threads|tps|", "\n-|-\n1|2\n"),
        "headings": repeated("**words %**\n"),
        "tables with headings": repeated(f"**words %**\n\n{TABLE}"),
        "tables of products": repeated(f"## MySQL 8.0.%\n\n{TABLE}"),
        "names of columns": repeated("tps\n"),
        "names and numbers": repeated("threads\ntps\n%\n5\n"),
        "rows": repeated("%,A,1.5,2.5\n", CSV),
        "memory": repeated("memory memory 12 GB each table "),
        "commands": repeated("sysbench --a=% \\\n"),
        "options": repeated("--a=% '"),
        "settings": repeated("a%=1\n", "[mysqld]\n"),
        "claims": repeated("A is % times faster. "),
    },
    log: {
        "rates": repeated("tps (", "Number of threads: 1\n[ 1s ] thds: 1 "),
        "remarks": repeated(" #", behind=" sysbench "),
        "commands": repeated("sysbench \\\n"),
        "runs of go-tpc": repeated("go-tpc "),
        "commands of pgbench": repeated("pgbench -S \\\n", "tps = 1\n"),
        "margins": repeated("host-% Threads started!\n"),
        "conditions": repeated("Running mixed OLTP test\n", "Number of threads: 1\n"),
        "JSON": repeated('"log":"'),
        "containers": repeated("c% | Number of threads: 1\n"),
        "pgbench": repeated(
            "transaction type: x\nnumber of clients: 1\n"
            "tps = 1 (including connections establishing)\n"
        ),
    },
    imports: {
        "runs": repeated(V1.replace("%", "")),
        "kinds of work": repeated("sysbench oltp_read_only --a=% run\n" + V1.replace("%", "")),
        "set-ups": repeated("set global a%=%\n=== b% ===\n" + V1.replace("%", "")),
        "rows": repeated("%,A,1.5,2.5\n", CSV, "99,A,3,4\n"),
        "systems": repeated("8,s%,1.5,2.5\n", CSV, "99,A,3,4\n"),
    },
    audits: {
        "rows": repeated("%,A,1.5,2.5\n", CSV, "9999999,A,3,4\n"),
        "rows of two systems": repeated("%,A,100%.5,2.51\n%,B,100%.5,2.52\n", CSV),
        "repeats of a cell": repeated("8,A,1.%,2.5\n", CSV),
    },
    claims: {
        "claims": repeated(
            "- {text: a, of: A, than: B, metric: latency_ms_p95, ratio_min: 2}\n", "claims:\n"
        ),
        "nesting": repeated("["),
        "quoted": repeated("a", '"'),
        "keys": repeated("k%: 1\n"),
    },
    plan: {
        "scales": repeated("  s%: {load: {threads: 3}}\n", f"{PLAN}scales:\n"),
        "values of a scale": repeated("k%: 1, ", f"{PLAN}scales: {{s: {{settings: {{", "}}}\n"),
        "systems": repeated(
            "- {label: a%, reference: mysql:8.0.15}\n", "workloads: [oltp_read_only]\nsystems:\n"
        ),
    },
    loads: {
        "brackets": statement("("),
        "pairs of brackets": statement("((a) "),
        "nested brackets": statement("(", ")"),
        "comments": statement("/* "),
        "remarks": statement("# "),
        "nested subqueries": statement("(SELECT ", ")"),
        "common tables": statement("WITH a AS "),
        "a long name": statement("a", before="SELECT 1 FROM ", behind="."),
        "quotes": statement("''"),
    },
    bundles: {"intervals": with_intervals},
    runs: {"runs": with_runs},
    archives: {"members": with_members},
}


def cpu_s(reader: Read, path: Path) -> float:
    gc.collect()
    begun = time.process_time()
    with suppress(DbdynoError):  # to refuse is to read, too
        reader(path)
    return time.process_time() - begun


def growth(reader: Read, make: Make, folder: Path) -> float:
    """How much longer eight times as much takes, against eight times as long.

    A growth that ends is none, as that up to a limit, or that of a moment with other processes.
    """
    folder.mkdir()
    size, times, grown = 256, list[float](), 1.0
    while size <= SIZE_MAX and (not times or times[-1] < (ENOUGH_S if grown < FASTER else SURE_S)):
        make(folder / "made.txt", size)
        times.append(cpu_s(reader, folder / "made.txt"))
        if len(times) > DOUBLINGS and times[-1] >= ENOUGH_S:
            grown = times[-1] / times[-1 - DOUBLINGS] / 2**DOUBLINGS
        size *= 2
    return grown


@pytest.fixture
def small_heap() -> Iterator[None]:
    """Keep objects of other tests out of collections, which would take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_reader_takes_time_in_proportion_to_the_bytes(
    reader: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_is_child", True)  # the time is that of this process
    grown = {
        kind: growth(reader, make, tmp_path / str(number))
        for number, (kind, make) in enumerate(READERS[reader].items())
    }
    assert {kind: times for kind, times in grown.items() if times >= FASTER} == {}
