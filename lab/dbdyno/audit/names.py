"""System, workload, load level and repeat in the names of files and folders. Pure.

    mysql80_oltp_rw_16_2 ─▶ {system}_{workload}_{threads}_{repeat}

A path is split into words. A number is a load level if it agrees with the log, at the same place in
all paths of as many words; workloads, dates and repeats are known by form, and all others name
the system. Where folders name it, other words of a file's name may name the workload.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from dbdyno.audit.logs.sysbench_log import MIXES, workload_in
from dbdyno.language.words import in_utf8

THREADS: Final = "threads"
WORKLOAD: Final = "workload"
REPEAT: Final = "repeat"
MOMENT: Final = "moment"
NOISE: Final = "noise"
NUMBER: Final = "number"
SYSTEM: Final = "system"
OF_SYSTEM: Final = (SYSTEM, NUMBER)
"""Kinds of words that name a system, if nothing else explains them."""
SHORT: Final = {
    **dict.fromkeys(("ro", "readonly"), "oltp_read_only"),
    **dict.fromkeys(("rw", "readwrite"), "oltp_read_write"),
    **dict.fromkeys(("wo", "writeonly"), "oltp_write_only"),
    **{"pointselect": "oltp_point_select", "insert": "oltp_insert", "delete": "oltp_delete"},
    **dict.fromkeys(("tpcc", "tpc-c", "tprocc"), "tpcc"),
}
"""Names of workloads as folders and files have them."""
GENERIC: Final = ("oltp", "select", "update", "read", "write", "mixed")
"""Names of workloads if there is no other."""
LETTERS: Final = r"(?:t|c)"
UNITS: Final = (
    r"(?:thds?|thrs?|th|threads?|conns?|connections?|clients?|users?|vus?|concurrency|并发|线程)"
)
AGAIN: Final = r"(?:run|rep|repeat|iter|iteration|round|trial|pass|try|attempt)s?"
DATE: Final = r"(?:19|20)\d\d(?P<sign>[-_.]?)[01]\d(?P=sign)[0-3]\d"
TIME: Final = r"[-_T. ]?[0-2]\d(?:[0-5]\d){1,2}|[-_T. ][0-2]\d(?:[-_.:][0-5]\d){2}"
FORMS: Final = {
    MOMENT: rf"{DATE}(?:{TIME})?|1[4-9]\d{{8}}",
    REPEAT: rf"{AGAIN}\d{{1,9}}",
    WORKLOAD: r"select[-_ ]random[-_ ](?:points|ranges)|bulk[-_ ]insert"
    rf"|(?:oltp[-_. ]?)?(?:{MIXES}|{'|'.join((*SHORT, *GENERIC))})",
    THREADS: rf"{LETTERS}\d{{1,9}}|\d{{1,9}}{LETTERS}"
    rf"|{UNITS}[-_= ]?\d{{1,9}}|\d{{1,9}}[-_ ]?{UNITS}",
    NOISE: rf"sysbench|sb|logs?|results?|res|out|outputs?|bench|benchmarks?|reports?|tests?|txt"
    rf"|stdout|raw|{AGAIN}",
    NUMBER: r"\d{1,9}",
    SYSTEM: r"[^\W_]+",
}
"""Kinds of words, the first that fits; a word of several parts holds together."""
WORD: Final = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(f'(?P<{kind}>{form})' for kind, form in FORMS.items())})(?![^\W_])",
    re.IGNORECASE,
)
OF_COUNTS: Final = frozenset(
    (
        *("a", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "the", "to", "with"),
        *("first", "second", "third", "next", "last", "another", "again", "no", "number", "count"),
        *("one", "two", "three", "four", "five", "fourth", "fifth"),
        *("thread", "threads", "clients", "connections", "users", "concurrency", "running"),
        *("start", "started", "starting", "begin", "beginning", "now", "seconds", "minutes"),
    )
)
"""Words of headings that only count runs."""
OF_REPEATS: Final = re.compile(r"第\s?\w{1,3}\s?[次轮遍]|\bof\s\d{1,9}\b")
SUFFIX: Final = re.compile(
    r"\.(?:log|txt|out|res|results?|dat|csv|json|html?|md|ya?ml|sysbench|stdout)$", re.IGNORECASE
)


@dataclass(frozen=True)
class Names:
    """Names in a path; a missing name is empty, or 0.

    Attributes:
        pattern: its form: "{system}_{workload}_{threads}".
    """

    system: str
    workload: str
    threads: int
    pattern: str

    def label(self, path: Path) -> str:
        """The system's name; without a name the folder, if all words have a meaning."""
        return self.system or in_utf8(path.absolute().parent.name if self.pattern else path.stem)


UNKNOWN: Final = Names("", "", 0, "")


@dataclass(frozen=True)
class NamedLog:
    """A log to be named.

    Attributes:
        parts: its folders, then its own name; without the fields of a pattern.
        levels: numbers of threads in it; empty if it leaves them out.
        has_workload: whether the log says it itself.
    """

    parts: tuple[str, ...]
    levels: frozenset[int]
    has_workload: bool = False


@dataclass
class _Word:
    """A word, or several in a fixed order, in a part of a path."""

    kind: str
    text: str
    part: int
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def number(self) -> int:
        """The number in it."""
        return int(re.sub(r"\D", "", self.text))


class _Path:
    """A path in words, whose kinds become known one after the other.

    Attributes:
        name: part of the file's own name.
        level: the only number of threads in the log; 0 if it has several, or leaves it out.
    """

    def __init__(self, log: NamedLog) -> None:
        self.log = log
        self.name = len(log.parts) - 1
        self.level = next(iter(log.levels)) if len(log.levels) == 1 else 0
        self.words = [
            _Word(str(match.lastgroup), match[0], part, match.start())
            for part, text in enumerate(log.parts)
            for match in WORD.finditer(text)
        ]

    def text(self, kind: str) -> str:
        """Its first word of a kind; empty without."""
        return next((word.text for word in self.words if word.kind == kind), "")

    def pieces(self, kinds: Collection[str]) -> list[_Word]:
        """Words of these kinds side by side as they are written, with noise between them."""
        pieces: list[_Word] = []
        is_beside = False
        for word in self.words:
            if word.kind not in kinds:
                is_beside = is_beside and word.kind == NOISE
            elif is_beside and pieces[-1].part == word.part:
                text = self.log.parts[word.part][pieces[-1].start : word.end]
                pieces[-1] = _Word(SYSTEM, text, word.part, pieces[-1].start)
            else:
                pieces.append(_Word(SYSTEM, word.text, word.part, word.start))
                is_beside = True
        return pieces


def names_of(logs: Sequence[NamedLog]) -> list[Names]:
    """The names of all logs of an import, which are read together."""
    paths = list(map(_Path, logs))
    groups: dict[tuple[int, int], list[_Path]] = {}
    for path in paths:
        groups.setdefault((len(path.log.parts), len(path.words)), []).append(path)
    for group in groups.values():
        _mark_level(group)
        _mark_workloads(group)
    _mark_repeats(paths)
    systems = _systems_of(paths)
    names_by_folders: dict[str, set[str]] = {}
    for path, system in zip(paths, systems, strict=True):
        folders, name = _halves(path, system)
        names_by_folders.setdefault(folders, set()).add(name)
    return [
        _names(path, system, names_by_folders) for path, system in zip(paths, systems, strict=True)
    ]


def parts_of(files: Sequence[Path]) -> list[tuple[str, ...]]:
    """For each file the folders below their common folder, then its name without its suffix."""
    parents = [path.absolute().parent for path in files]
    top = Path(os.path.commonpath(parents)) if parents else Path()
    return [
        (*map(in_utf8, parent.relative_to(top).parts), SUFFIX.sub("", in_utf8(path.name)))
        for path, parent in zip(files, parents, strict=True)
    ]


def _mark_level(group: Sequence[_Path]) -> None:
    """Find the load level of paths of as many words; other words of its form name the system."""
    places = map(partial(_fit, group), range(len(group[0].words)))
    best = max(filter(None, places), default=None)
    for path in group:
        for place, word in enumerate(path.words):
            if best is not None and place == best[-1]:
                word.kind = THREADS
            elif word.kind == THREADS:
                word.kind = SYSTEM


def _fit(group: Sequence[_Path], place: int) -> tuple[int, bool, int, int] | None:
    """Fitness of the words at a place as load level, the largest is the best; None without any.

    Where a few of many logs disagree, a name is wrong or a log, and the import says so.
    """
    words = [path.words[place] for path in group]
    if any(word.kind not in (THREADS, NUMBER) for word in words):
        return None
    has_unit = all(word.kind == THREADS for word in words)
    known = [
        (word.number, path.level)
        for word, path in zip(words, group, strict=True)
        if path.log.levels
    ]
    agreeing = [number for number, level in known if number == level]
    is_mostly = 2 * len(agreeing) > len(known) and len(set(agreeing)) > 1
    if (has_unit and not known) or (known and (len(agreeing) == len(known) or is_mostly)):
        return len(agreeing), has_unit, len({word.number for word in words}), place
    return None


def _mark_workloads(group: Sequence[_Path]) -> None:
    """Find the workload of each path, by its name or by its place in the others."""
    places = set[int]()
    for path in group:
        named = [n for n, word in enumerate(path.words) if word.kind == WORKLOAD]
        of_its_own = [n for n in named if path.words[n].text.lower() not in GENERIC]
        chosen = next(iter(of_its_own or named), None)
        for word in (path.words[n] for n in named if n != chosen):
            word.kind = NOISE if word.text.lower() == "oltp" else SYSTEM
        places.update(() if chosen is None else (chosen,))
    if len(places) == 1:
        (place,) = places
        for path in group:
            if path.words[place].kind == SYSTEM:
                path.words[place].kind = WORKLOAD


def _mark_repeats(paths: Sequence[_Path]) -> None:
    """Find numbers of repeats: behind a word for it, or 1, 2, 3 … of each cell at the end."""
    for path in paths:
        for before, word in pairwise(path.words):
            is_said = before.part == word.part and re.fullmatch(AGAIN, before.text, re.IGNORECASE)
            if word.kind == NUMBER and is_said:
                word.kind = REPEAT
    last = [(path, path.words[-1]) for path in paths if path.words]
    last = [(path, word) for path, word in last if word.part == path.name]
    alone = [
        (path, word)
        for path in paths
        for word in path.words
        if word.part < path.name and word.text == path.log.parts[word.part]
    ]
    _mark_counted(last, _has_repeat_apart)
    _mark_counted(alone, lambda path: bool(path.pieces(OF_SYSTEM)))


def _mark_counted(
    candidates: Sequence[tuple[_Path, _Word]], is_plain: Callable[[_Path], bool]
) -> None:
    """Take numbers as repeats, if they are 1, 2, 3 … in each cell.

    Args:
        is_plain: whether a number cannot belong to a system, if there is a single system.
    """
    counted = [(path, word) for path, word in candidates if word.kind == NUMBER]
    numbers: dict[tuple[object, ...], list[int]] = {}
    systems = set[tuple[str, ...]]()
    for path, word in counted:
        word.kind = REPEAT
        system = tuple(piece.text for piece in path.pieces(OF_SYSTEM))
        systems.add(system)
        cell = (system, path.text(WORKLOAD), path.text(THREADS), path.log.levels)
        numbers.setdefault(cell, []).append(word.number)
    first = min(map(min, numbers.values()), default=0)
    is_counted = first in (0, 1) and all(
        sorted(one) == list(range(first, first + len(one))) for one in numbers.values()
    )
    is_repeated = any(len(one) > 1 for one in numbers.values())
    is_apart = len(systems) > 1 or all(is_plain(path) for path, _ in counted)
    if not (is_counted and is_repeated and is_apart):
        for _, word in counted:
            word.kind = NUMBER


def _has_repeat_apart(path: _Path) -> bool:
    """False if the last number may belong to a system's name, as in "node_1"."""
    before = path.words[-2] if len(path.words) > 1 else None
    return before is None or before.part != path.name or before.kind not in OF_SYSTEM


def _systems_of(paths: Sequence[_Path]) -> list[list[_Word]]:
    """For each path the words of its system: a date only in want of other words, and no words
    of all paths with folders."""
    kinds = OF_SYSTEM if any(path.pieces(OF_SYSTEM) for path in paths) else (*OF_SYSTEM, MOMENT)
    pieces = [path.pieces(kinds) for path in paths]
    inside = [
        frozenset(piece.text for piece in one)
        for path, one in zip(paths, pieces, strict=True)
        if path.name
    ]
    common = frozenset[str]().union(*inside[:1]).intersection(*inside)
    return [
        [piece for piece in one if not path.name or piece.text not in common] or one
        for path, one in zip(paths, pieces, strict=True)
    ]


def _halves(path: _Path, system: Sequence[_Word]) -> tuple[str, str]:
    """The words of a system in the folders, and in the file's own name."""
    folders = " ".join(piece.text for piece in system if piece.part < path.name)
    return folders, " ".join(piece.text for piece in system if piece.part == path.name)


def _names(path: _Path, system: list[_Word], names_by_folders: dict[str, set[str]]) -> Names:
    folders, name = _halves(path, system)
    is_known = path.text(WORKLOAD) or path.log.has_workload
    is_by_name = bool(folders and name and not is_known and len(names_by_folders[folders]) > 1)
    level = re.sub(r"\D", "", path.text(THREADS))
    return Names(
        system=folders if is_by_name else f"{folders} {name}".strip(),
        workload=name if is_by_name else workload_of(path.text(WORKLOAD)),
        threads=int(level or 0),
        pattern=_pattern(path, system, SYSTEM if not is_by_name else WORKLOAD),
    )


def crossed(systems: Sequence[str]) -> bool:
    """True for names of which two parts vary apart, as of a system and a workload: "a_x", "a_y",
    "b_x"."""
    words = {tuple(re.findall(r"[^\W_]+", system)) for system in systems}
    if len({len(one) for one in words}) != 1:
        return False
    return len(words) > max((len(set(column)) for column in zip(*words, strict=True)), default=1)


def workload_of(text: str) -> str:
    """The full name of a workload."""
    bare = text.lower()
    return SHORT.get(re.sub(r"^oltp[-_. ]?", "", bare), "") or workload_in(text) or bare


def words_of_heading(text: str) -> str:
    """A script's heading without workload, threads, dates and repeats; empty if no other words are
    left."""
    parts, place, kind = list[str](), 0, ""
    is_named = is_repeat = False
    text = OF_REPEATS.sub(" ", text)
    for match in WORD.finditer(text):
        is_repeat = match.lastgroup == NUMBER and (is_repeat or kind == NOISE)
        kind = str(match.lastgroup)
        if is_repeat or kind not in OF_SYSTEM:
            parts.append(text[place : match.start()])
            place = match.end()
        is_named = is_named or (kind == SYSTEM and match[0].lower() not in OF_COUNTS)
    kept = " ".join([*parts, text[place:]])
    return re.sub(r"^\W+|\W+$", "", " ".join(kept.split())) if is_named else ""


def _pattern(path: _Path, system: Sequence[_Word], of_name: str) -> str:
    """The form of a path, with its fields; empty if only a system is known."""
    fields = [word for word in path.words if word.kind in (THREADS, WORKLOAD, REPEAT)]
    if not fields and of_name == SYSTEM:
        return ""
    spans = {(piece.part, place) for piece in system for place in range(piece.start, piece.end)}
    moments = [word for word in path.words if word.kind == MOMENT]
    fields += [word for word in moments if (word.part, word.start) not in spans]
    parts = list(path.log.parts)
    for word in sorted([*fields, *system], key=lambda word: (word.part, word.start), reverse=True):
        is_of_name = word.kind == SYSTEM and word.part == path.name
        kind = of_name if is_of_name else word.kind
        text, sign = parts[word.part], "*" if kind == MOMENT else f"{{{kind}}}"
        parts[word.part] = f"{text[: word.start]}{sign}{text[word.end :]}"
    return "/".join(parts)
