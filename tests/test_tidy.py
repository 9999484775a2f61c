"""The project's shape as tests: who may import whom, how large things grow, what is not written.

A limit that only stands in a text is forgotten by the third month. Whoever needs an exception
writes it into the table here, with its reason, where a reviewer sees it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

from support import source
from support.source import LAB, ROOT, named

# Each room and the rooms it may import; a room may always import itself. Each row names only rows
# below it. ARCHITECTURE.md shows the same table.
ARROWS: dict[str, str] = {
    "__main__": "cli sysbench shipped errors",
    "cli": "fleet serve api export experiment audit report store servers judge sysbench "
    "plan measurement stats language shipped files budget errors _engine",
    "serve": "store report judge plan measurement language files errors",
    "api": "export report store judge plan measurement language errors",
    "export": "report judge measurement files errors",
    "fleet": "experiment servers store plan measurement files errors _engine",
    "experiment": "servers store plan measurement stats interpreter files errors _engine",
    "audit": "judge sysbench plan measurement language budget errors _engine",
    "report": "judge plan measurement stats language interpreter files errors _engine",
    "store": "plan measurement stats files budget errors _engine",
    "servers": "plan measurement interpreter files budget errors _engine",
    "judge": "plan measurement stats _engine",
    "sysbench": "shipped errors _engine",
    "plan": "measurement shipped budget errors _engine",
    "measurement": "stats _engine",
    "stats": "errors _engine",
    "language": "errors",
    "files": "errors",
    "budget": "errors _engine",
    "errors": "_engine",
    "interpreter": "",
    "shipped": "",
    "_engine": "",
}
# The same for the folders of engine/core/src.
ENGINE_ARROWS: dict[str, str] = {
    "run": "worker script opening record reactor session spec error random system time "
    "workload driver",
    "worker": "script opening record spec reactor session time workload error random driver",
    "opening": "spec session workload error driver",
    "script": "record spec session time workload error random driver",
    "reference": "session record system random driver",
    "record": "time workload error random",
    "dataset": "spec session error random driver",
    "control": "spec session error driver",
    "spec": "reactor session time workload error random driver",
    "reactor": "system time",
    "relay": "time",
    "time": "random",
    "workload": "random driver",
    "session": "error system driver",
    "driver": "",
    "error": "",
    "random": "",
    "system": "",
}
FILES_OF_A_FOLDER = 12
# Folders with more files than that, and why.
CROWDED = {
    "engine/wire/src/mysql": "one file a message of the protocol",
    "lab/dbdyno/cli": "one file a command, or a few that belong together",
    "lab/dbdyno/plan": "one file a part of a plan",
}
LINES_OF_A_FILE = 600
# Files with more lines than that, which they may not exceed, and why.
LONG: dict[str, int] = {}
LINES_OF_A_SMALL_FILE = 120
# Files below that with a single importer, and why they stand alone.
SMALL_WITH_ONE_IMPORTER = {
    "servers.local.network": "its tests, and all that touches sockets and a child process",
    "audit.audit": "the door of the audit",
    "audit.page.grids": "the door of the finders of tables",
    "audit.sentences": "words of a page, apart from the YAML that quotes them",
    "export.files": "the door of the export",
    "fleet.fleet": "the door of the fleet",
    "judge.multiplier_table": "written by validation/multipliers.py",
    "plan.sql": "a language of its own, read in linear time",
    "plan.risks": "what a stranger's plan may do here is a security boundary",
    "report.charts.charts": "the list of charts, which grows by rows",
    "report.charts.checkpoints": "one file a reading of a chart's data",
    "report.charts.costs": "one file a chart",
    "report.write": "the door of the report",
    "servers.foreign.postgres_container": "one file a product",
    "servers.watcher": "a process of its own, which imports nothing",
    "servers.launch": "a process of its own, which imports nothing",
    "stats.usl": "a law that knows nothing of benchmarks",
    "store.histogram_log": "a file format of its own",
}
# Dataclasses that change, as they gather what a step of the work finds.
CHANGING = {
    "audit.logs.sysbench_log.LoggedRun",
    "audit.names._Word",
    "experiment.arm._Arm",
    "experiment.context.RunContext",
    "experiment.durability._Load",
    "experiment.procedure.Steps",
    "experiment.trial._EngineReport",
    "fleet.hosts._Running",
    "plan.document.Document",
    "servers.programs.unpack._Taking",
}
# NamedTuples of each room, which may only become fewer; sysbench's start waits for no dataclass.
TUPLES = {
    **{"audit": 10, "cli": 4, "errors": 1, "experiment": 4, "fleet": 8, "judge": 5},
    **{"measurement": 2, "report": 4, "servers": 2, "stats": 14, "store": 1, "sysbench": 18},
}
LINES_OF_A_FUNCTION = 60
BYTES_OF_A_FILE = 500_000
# Patterns that are not written, what to do instead, and the files in which they are meant.
HOSTS = ("repo1.maven", "repo.maven", "registry.npmjs", "pythonhosted", "deb.debian", "//pypi.org")
BANNED = {
    r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b": "open an issue, or do it",
    r"\b(uti" r"ls|hel" r"pers)\b": "name the work that is done",
    r"(?<![\w.])/(wo" r"rk|ro" r"ot)/": "a path of one machine: take it from an argument",
    r"[Mm]ethod\.md [1" r"E3]": "an internal study: name a section of docs/how-it-works",
    "|".join(re.escape(host) for host in HOSTS): "registries are the clients' business",
}
NOT_SEARCHED = {"Cargo.lock", "LICENSE", "tests/test_tidy.py"}
INPUTS = ROOT / "engine" / "fuzz" / "corpus"
"""Bytes as servers send them."""


def room(module: str) -> str:
    """The room a module of the lab belongs to."""
    return module.split(".", maxsplit=1)[0]


def test_imports_point_only_downwards() -> None:
    modules = source.lab_modules()
    unknown = {module for module in modules if room(module) not in ARROWS}
    assert unknown == set(), "say in the table which room it belongs to"
    upward = {
        (module, needed)
        for module, path in modules.items()
        for needed in source.imports(path)
        if room(needed) not in {room(module), *ARROWS[room(module)].split()}
    }
    assert upward == set(), "these rooms may not import those"


def test_the_table_of_arrows_itself_points_only_downwards() -> None:
    rows = list(ARROWS)
    upward = [(a, b) for a in rows for b in ARROWS[a].split() if rows.index(b) <= rows.index(a)]
    assert upward == []


def test_making_and_judging_never_meet() -> None:
    making = set(" ".join(ARROWS[r] for r in ("servers", "experiment")).split())
    judging = set(" ".join(ARROWS[r] for r in ("judge", "report")).split())
    assert not making & {"judge", "report"}
    assert not judging & {"experiment", "servers", "store"}


def imports() -> dict[str, frozenset[str]]:
    """Every module of the lab with the modules of the lab that it imports."""
    modules = source.lab_modules()
    return {m: source.imports(p) & modules.keys() - {m} for m, p in modules.items()}


def circle(graph: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """What is left of a graph once everything that rests on nothing left is taken away."""
    while free := {name for name, needs in graph.items() if not needs & graph.keys()}:
        graph = {name: needs for name, needs in graph.items() if name not in free}
    return graph


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(imports()) == {}


def rust_imports(path: Path) -> set[str]:
    """Modules of its crate that a Rust file names, as `room` or `room::file`, tests left out."""
    work = re.sub(r"//.*", "", path.read_text().partition("#[cfg(test)]\nmod tests")[0])
    here = path.relative_to(next(p for p in path.parents if p.name == "src")).with_suffix("").parts
    folder = "::".join(here[:-1])
    work = re.sub(r"\bsuper::(?!super)", f"crate::{folder}::" if folder else "crate::", work)
    found = set(re.findall(r"\bcrate::(\w+(?:::\w+)?)", work))
    for prefix, names in re.findall(r"\bcrate::((?:\w+::)*)\{([^;]*)\};", work):
        flat = re.sub(r"\{[^{}]*\}", "", names)
        found |= {f"{prefix}{name}" for name in re.findall(r"(?:^|,)\s*(\w+(?:::\w+)?)", flat)}
    return found


def rust_modules(crate: str) -> dict[str, Path]:
    """Every module of a crate, `room` or `room::file`; what lies deeper belongs to its file."""
    src = ROOT / "engine" / crate / "src"
    paths = [p for p in code_files() if src in p.parents and p.name != "lib.rs"]
    parts = {p: [x for x in p.relative_to(src).with_suffix("").parts if x != "mod"] for p in paths}
    return {"::".join(names): path for path, names in parts.items()}


def test_rooms_of_the_engine_point_only_downwards() -> None:
    upward = {
        f"{room} -> {needed}"
        for module, path in rust_modules("core").items()
        for room in [module.split("::")[0]]
        for needed in {name.split("::")[0] for name in rust_imports(path)}
        if needed in ENGINE_ARROWS and needed not in (room, *ENGINE_ARROWS[room].split())
    }
    assert upward == set()
    rows = list(ENGINE_ARROWS)
    table = [(a, b) for a in rows for b in ENGINE_ARROWS[a].split()]
    assert [(a, b) for a, b in table if rows.index(b) <= rows.index(a)] == []


def test_files_of_the_engine_use_each_other_in_no_circle() -> None:
    for crate in ("wire", "core", "binding"):
        modules = rust_modules(crate)
        graph = {
            name: frozenset(rust_imports(path) & modules.keys() - {name, name.split("::")[0]})
            for name, path in modules.items()
        }
        assert circle(graph) == {}, crate


def code_files() -> list[Path]:
    """Files of the product itself: lab, engine, benchmarks, validation; no tests, no `__init__`."""
    return [
        path
        for path in source.with_suffix(".py", ".rs")
        if not {"tests", "fuzz", "examples"} & set(path.relative_to(ROOT).parts)
        and path.name not in ("__init__.py", "tests.rs")
    ]


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    count = Counter(named(path.parent) for path in code_files())
    full = {folder for folder, files in count.items() if files > FILES_OF_A_FOLDER}
    assert full == set(CROWDED), "which of its files are one idea, or which folder is missing?"


def test_a_prefix_that_three_files_share_is_a_folder() -> None:
    sharing = defaultdict(set)
    for path in code_files():
        sharing[named(path.parent), path.stem.split("_")[0]].add(path.name)
    assert {key: names for key, names in sharing.items() if len(names) > 2} == {}


def test_a_small_file_with_one_importer_has_a_reason() -> None:
    graph = imports()
    importers = Counter(needed for needs in graph.values() for needed in needs)
    small = {
        module
        for module, path in source.lab_modules().items()
        if path.name != "__init__.py"
        and path.read_text().count("\n") < LINES_OF_A_SMALL_FILE
        and importers[module] == 1
    }
    assert small == set(SMALL_WITH_ONE_IMPORTER), "merge it into its importer, or give the reason"


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(set)
    for module, path in source.lab_modules().items():
        for node in source.nodes(path):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_a_value_is_a_noun_or_a_frozen_dataclass() -> None:
    changing, tuples = set(), Counter[str]()
    for module, path in source.lab_modules().items():
        for node in source.nodes(path):
            if isinstance(node, ast.ClassDef):
                made_by = [ast.unparse(one) for one in node.decorator_list]
                if any(re.match(r"dataclass(?!.*frozen=True)", one) for one in made_by):
                    changing.add(f"{module}.{node.name}")
                tuples[room(module)] += any(ast.unparse(one) == "NamedTuple" for one in node.bases)
    assert changing == CHANGING, "freeze it, or say what it gathers"
    assert {name: count for name, count in tuples.items() if count > TUPLES.get(name, 0)} == {}


def test_the_engine_points_from_binding_to_core_to_wire() -> None:
    may = {"wire": set[str](), "core": {"dbdyno-wire"}, "binding": {"dbdyno-core", "dbdyno-wire"}}
    for crate, allowed in may.items():
        manifest = (ROOT / "engine" / crate / "Cargo.toml").read_text()
        asked = set(re.findall(r"^(dbdyno-\w+|pyo3)\b", manifest, re.MULTILINE))
        assert asked - allowed <= ({"pyo3"} if crate == "binding" else set()), crate
    for path in (ROOT / "engine" / "wire").rglob("*.rs"):
        outside = re.search(r"std::(net|time|fs|thread)\b|tokio|mio::", path.read_text())
        assert outside is None, f"{named(path)}: wire knows no socket and no clock"


def test_files_and_functions_can_be_read_in_one_go() -> None:
    long_files, long_functions = {}, []
    for path in source.with_suffix(".py", ".rs"):
        work, _, _ = path.read_text().partition("#[cfg(test)]\nmod tests {")
        lines = work.count("\n")
        if lines > LONG.get(named(path), LINES_OF_A_FILE):
            long_files[named(path)] = lines
        functions = source.functions(path)
        long_functions += [(named(path), f) for f in functions if f.lines > LINES_OF_A_FUNCTION]
    assert long_files == {}, "find the second idea in it"
    assert long_functions == []


def test_no_exception_outlives_its_reason() -> None:
    lines = {name: (ROOT / name).read_text().count("\n") for name in LONG}
    assert {name: LONG[name] for name in LONG} == lines, "a long file may only shrink"
    assert all(lines > LINES_OF_A_FILE for lines in LONG.values())


def test_nothing_is_written_that_should_not_be() -> None:
    assert {named(path): wrong for path in source.files() if (wrong := complaints(path))} == {}


def complaints(path: Path) -> list[str]:
    """What is wrong with a file's text or its size."""
    content = path.read_bytes()
    told = ["too large"] if len(content) > BYTES_OF_A_FILE else []
    if b"\0" in content or named(path) in NOT_SEARCHED or path.is_relative_to(INPUTS):
        return told
    text = content.decode()
    for pattern, instead in BANNED.items():
        if found := re.search(pattern, text):
            told.append(f"{found[0]!r}: {instead}")
    lines = enumerate(text.split("\n"), 1)
    told += [f"trailing white space in line {n}" for n, line in lines if line != line.rstrip()]
    if text and not text.endswith("\n"):
        told.append("the last line has no end")
    return told


def test_the_marker_of_types_is_shipped() -> None:
    assert (LAB / "py.typed").is_file()


KINDS_ASKED = r"\b(is_endpoint|is_imported|may_rest|has_own_tables)\b"
# Files of rooms that tell of runs, and the deed for which they ask what a system is.
KINDS_ACTED_ON = {
    "lab/dbdyno/cli/flow.py": "measures no imported run",
    "lab/dbdyno/cli/servers.py": "starts no endpoint",
    "lab/dbdyno/cli/transfer.py": "says what a stranger's plan would do",
    "lab/dbdyno/cli/trust.py": "refuses the risks of a stranger's plan",
    "lab/dbdyno/cli/workload.py": "tries no template on an endpoint",
}


def test_what_tells_of_a_run_asks_for_facts_and_not_for_its_kind() -> None:
    asking = {
        named(path)
        for room in ("judge", "report", "cli")
        for path in (LAB / room).rglob("*.py")
        if re.search(KINDS_ASKED, path.read_text())
    }
    assert asking == set(KINDS_ACTED_ON)
