"""Completion of command lines in bash, zsh and fish.

A shell asks at each TAB, so this file imports neither a command nor typer: `commands.txt` has the
arguments and options of all commands. A test compares it with the commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from dbdyno import _engine, shipped
from dbdyno.cli import defaults
from dbdyno.errors import DbdynoError

SCRIPTS: Final = {
    "bash": """\
_dbdyno() {
    local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^:=]/}
    local word=${line##* }
    mapfile -t COMPREPLY < <("$1" completion --line "$line" 2> /dev/null)
    # bash replaces what stands after the last : or = of the word
    COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[$breaks]}"}"}")
}
complete -o default -F _dbdyno dbdyno
""",
    "zsh": """\
_dbdyno() {
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a answers=(${(f)"$(${words[1]} completion --line "$line" 2> /dev/null)"})
    if (( $#answers )); then compadd -- $answers; else _files; fi
}
compdef _dbdyno dbdyno
""",
    "fish": """\
function __dbdyno
    set --local line (commandline --current-process --cut-at-cursor)
    set --local answers (dbdyno completion --line "$line" 2> /dev/null)
    if set --query answers[1]
        printf '%s\\n' $answers
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end
complete --command dbdyno --no-files --arguments '(__dbdyno)'
""",
}
"""A script for each shell; without an answer the shell completes names of files."""
PLAIN: Final = re.compile(r"[\w@%+=:,./-]+")
"""Words without a character that a shell interprets: bash inserts an answer without quotes."""


def words_for(line: str) -> list[str]:
    """Whole words that may stand at the end of a command line."""
    *before, last = _split(line)[1:] or [""]
    path, options, arguments = _at("dbdyno")
    values: dict[str, str] = {}
    waiting = ""
    for word in before:
        if waiting:
            values[waiting], waiting = word, ""
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            if equals:
                values[name] = value
            elif options.get(name):
                waiting = name
        elif f"{path} {word}" in defaults.commands():
            path, options, arguments = _at(f"{path} {word}")
        elif arguments and not arguments[0].endswith("..."):
            del arguments[0]
    name, equals, typed = last.partition("=")
    if not waiting and last.startswith("-") and not equals:
        return [option for option in options if option.startswith(last)]
    if not waiting and name in options:
        waiting = name
    begun = f"{name}=" if equals else ""
    typed = typed if equals else last
    kind = waiting or next(iter(arguments), "")
    answers = [*_values(kind, options.get(waiting, kind), values), *_commands_in(path, waiting)]
    fitting = [answer for answer in answers if answer.startswith(typed) and PLAIN.fullmatch(answer)]
    return [f"{begun}{answer}" for answer in fitting]


def _split(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation that has not ended
        words = line.split()
    return [*words, ""] if line[-1:].isspace() else words


def _at(path: str) -> tuple[str, dict[str, str], list[str]]:
    """A command with its options and arguments."""
    words = defaults.commands()[path]
    options = {word: value for word, value in words.items() if word.startswith("-")}
    return path, options, [word for word in words if word not in options]


def _commands_in(path: str, waiting: str) -> list[str]:
    """Names of the commands of a group, unless an option waits for its value."""
    names = [one[len(path) + 1 :] for one in defaults.commands() if one.startswith(f"{path} ")]
    return [] if waiting else [name for name in names if " " not in name]


def _values(word: str, kind: str, given: Mapping[str, str]) -> Iterable[str]:
    """Values of an option or argument.

    Args:
        word: the option, or the name of the argument in the help.
        kind: value of the option in the help.
        given: values of other options.
    """
    if "|" in kind:
        return kind.split("|")
    word = word.removesuffix("...")
    if source := SOURCES.get(word):
        return source()
    if source_of_workspace := SOURCES_OF_A_WORKSPACE.get(word):
        try:
            folder = given.get("--workspace") or defaults.workspace()
        except DbdynoError:  # of the file of defaults; other commands report it
            return ()
        return source_of_workspace(Path(folder).expanduser())
    return ()


def _references() -> list[str]:
    from dbdyno.servers.programs.catalog import CATALOG  # noqa: PLC0415 - not for other words

    return [entry.reference for entry in CATALOG]


def _plans() -> list[str]:
    return [*shipped.names(shipped.PLANS), *_files(".yaml")]


def _workloads() -> list[str]:
    built_in = (*_engine.workloads(), *_engine.legacy_workloads())
    return [*built_in, *shipped.names(shipped.WORKLOADS), *_files(".yaml", ".lua")]


def _templates() -> list[str]:
    ours = shipped.names(shipped.WORKLOADS)
    return [*(name for name in ours if name.endswith(".yaml")), *_files(".yaml")]


def _files(*suffixes: str) -> list[str]:
    """Names of files in the working folder."""
    return sorted(path.name for path in Path().iterdir() if path.suffix in suffixes)


def _runs(workspace: Path) -> list[str]:
    """Ids of runs, which are names of folders."""
    return ["latest", *(path.name for path in workspace.glob("20*-*-*/"))]


def _kept_servers(workspace: Path) -> list[str]:
    return [path.parent.name for path in workspace.glob("servers/*/lock")]


SOURCES: Final[Mapping[str, Callable[[], list[str]]]] = {
    "SYSTEM": _references,
    "REF": _references,
    "--workload": _workloads,
    "PLAN.yaml": _plans,
    "TEMPLATE.yaml": _templates,
}
SOURCES_OF_A_WORKSPACE: Final[Mapping[str, Callable[[Path], list[str]]]] = {
    **dict.fromkeys(("RUN", "BUNDLE", "--with", "--against", "--self"), _runs),
    **dict.fromkeys(("NAME", "--server"), _kept_servers),
}
"""Values of arguments, by their names in the help, and of options."""
