"""Help and version, made from the tables of options, in sysbench's layout."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno import __version__, _engine
from dbdyno.sysbench.options.compat import RELEASES, V1_0
from dbdyno.sysbench.options.table import DATABASE, GENERAL, LOG, MYSQL, RANDOM, of_test
from dbdyno.sysbench.options.values import Option

_SHAPES = {
    "BOOL": "[=on|off]",
    "INT": "=N",
    "SIZE": "=SIZE",
    "DOUBLE": "=N",
    "STRING": "=STRING",
    "LIST": "=[LIST,...]",
    "FILE": "=FILENAME",
}


def version(release: str = V1_0) -> str:
    """The first line of every command; scripts read "sysbench" and the number after it."""
    return f"sysbench {RELEASES[release]} (using dbdyno {__version__})\n"


def general_help() -> str:
    """What ``--help`` shows."""
    tests = "".join(f"  {name}\n" for name in _engine.workloads())
    return "\n".join(
        [
            "Usage:\n  sysbench [options]... [testname] [command]\n",
            "Commands implemented by every test: prepare prewarm run cleanup help\n",
            _section("General options", GENERAL),
            _section("Pseudo-Random Numbers Generator options", RANDOM),
            _section("Log options", LOG),
            _section("General database options", DATABASE),
            _section("mysql options", MYSQL),
            f"Compiled-in tests:\n{tests}",
            "See 'sysbench <testname> help' for a list of options for each test.\n",
        ]
    )


def workload_help(name: str) -> str:
    """What ``<testname> help`` shows."""
    return _section(f"{name} options", of_test(name)) + "\n"


def _section(title: str, options: Sequence[Option]) -> str:
    shapes = [f"--{option.name}{_SHAPES[option.kind]}" for option in options]
    width = max(len(shape) for shape in shapes)
    lines = (
        f"  {shape:<{width}} {option.text}{_default(option)}\n"
        for shape, option in zip(shapes, options, strict=True)
    )
    return f"{title}:\n" + "".join(lines)


def _default(option: Option) -> str:
    return "" if option.default is None else f" [{option.default}]"
