"""Folds stacks as `perf` and `gdb` print them: functions from the outermost to the innermost.

Names of functions and threads are the server's: any bytes. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

from dbdyno.experiment.watch.threads import group_of
from dbdyno.measurement.parts import CONNECTION, UNNAMED


@dataclass(frozen=True)
class StackSample:
    """A thread's stack at a moment.

    Attributes:
        thread: name of the thread.
        functions: the innermost function is last.
    """

    thread: str
    tid: int
    functions: tuple[str, ...]


LINE_MAX: Final = 4096
"""Longer lines are read in parts; a name counts by its first characters only."""
NAME_MAX: Final = 80
SIGNS_MAX: Final = 1000
"""Of a name, before arguments and templates are left out."""
DEPTH_MAX: Final = 64
STACKS_MAX: Final = 3000
"""Different whole stacks of a trial; of the rarest others only the innermost function is kept."""
KERNEL: Final = 1 << 63
"""Addresses from here on are the kernel's."""
UNKNOWN: Final = "[program]"
LEFT_OUT: Final = "[…]"


def perf_samples(lines: Iterable[str]) -> Iterator[StackSample]:
    """Samples of `perf script` with the fields comm, tid, ip and sym: a head, then frames."""
    head: tuple[str, int] | None = None
    frames: list[str] = []
    begun = False
    for line in chain(lines, [""]):
        words = line.split()
        if not words:
            if head and frames:
                yield StackSample(*head, tuple(reversed(frames)))
            head, frames, begun = None, [], False
        elif not begun:
            head, begun = _head_of(words), True
        else:
            with suppress(ValueError):
                is_kernel = int(words[0], 16) >= KERNEL
                name = line.split(maxsplit=1)[1] if len(words) > 1 else ""
                frames.append(_function(name, is_kernel=is_kernel))


def _head_of(words: Sequence[str]) -> tuple[str, int] | None:
    """Name and number of a thread; a name may have blanks."""
    *name, number = words
    if not name or not (number.isascii() and number.isdecimal() and len(number) < 10):
        return None
    return clean(" ".join(name), NAME_MAX), int(number)


THREAD: Final = re.compile(r"\b(?:LWP|process) ([0-9]{1,9})\b")


def gdb_samples(lines: Iterable[str]) -> Iterator[StackSample]:
    """Samples of `thread apply all bt` of `gdb`: a line for each thread, then its frames."""
    head: tuple[str, int] | None = None
    frames: list[str] = []
    for line in chain(lines, ["Thread"]):
        if line.startswith("#"):
            frames.append(_function(_named_by_gdb(line)))
        elif line.startswith("Thread"):
            if head and frames:
                yield StackSample(*head, tuple(reversed(frames)))
            number, name = THREAD.search(line), line.split('"')
            own = clean(name[1], NAME_MAX) if len(name) > 2 else ""
            head = (own, int(number[1])) if number else None
            frames = []


def _named_by_gdb(line: str) -> str:
    """The function of a line such as ``#1  0x00005 in f(int) () from /lib/x.so``."""
    _, _, text = line.partition(" ")
    text = text.strip()
    if text.startswith("0x"):
        _, _, text = text.partition(" in ")
    for place in (") from ", ") at "):
        text = text.partition(place)[0]
    return text.rpartition(" (")[0] or text


VARIANT: Final = re.compile(
    r" \[clone .*|(?:\.(?:cold|constprop|isra|llvm|lto_priv|part)(?:\.\d+)*)+$|@.*$"
)
"""What compilers and linkers add to a function's name."""
OPERATOR: Final = re.compile(r"\boperator(?:\(\)|->\*?|<=>|<<=?|>>=?|[<>]=?)")
ARGUMENTS, TEMPLATE = re.compile(r"\([^()<>]*\)"), re.compile(r"<[^()<>]*>")
HIDDEN: Final = str.maketrans("()<>", "\x01\x02\x03\x04")
"""Brackets of an operator's name, while brackets in pairs are taken out."""
SHOWN: Final = str.maketrans(
    {"\x01": "(", "\x02": ")", "\x03": "<", "\x04": ">", "\x05": "<>", "\x06": "()"}
)


@lru_cache(maxsize=20_000)
def _function(name: str, *, is_kernel: bool = False) -> str:
    """A function without return type, arguments and contents of templates: ``Log::write<>``.

    Kernel functions end with ``_[k]``, as in flame graphs.
    """
    known = "" if name.strip() in ("[unknown]", "??") else VARIANT.sub("", name.strip())
    known = clean(known.replace("(anonymous namespace)", "{anonymous}"), SIGNS_MAX)
    text, before = OPERATOR.sub(lambda sign: sign[0].translate(HIDDEN), known), ""
    while text != before:  # the innermost brackets first
        before = text
        text = TEMPLATE.sub("\x05", ARGUMENTS.sub("\x06", text))
    text = text.replace(" \x05", "\x05").replace("\x06::", "::").replace("{lambda\x06", "{lambda")
    text = text.partition("\x06")[0] or text
    if "operator " not in text:
        text = text.strip().rpartition(" ")[2]
    short = text.translate(SHOWN).replace(";", ":")[:NAME_MAX]
    if is_kernel:
        return f"{short[: NAME_MAX - 4] or '[kernel]'}_[k]"
    return short or UNKNOWN


GROUPS: Final[Mapping[str, str]] = {
    CONNECTION: (
        "handle_connection|do_handle_one_connection|do_command|dispatch_command"
        "|threadpool_process_request|PostgresMain|BackendMain"
    ),
    "ib_log_writer": "log_writer",
    "ib_log_wr_notif": "log_write_notifier",
    "ib_log_flush": "log_flusher",
    "ib_log_fl_notif": "log_flush_notifier",
    "ib_log_checkpt": "log_checkpointer",
    "ib_pg_flush_co": "buf_flush_page_(?:cleaner|cleaner_coordinator|coordinator_thread)",
    "ib_pg_flush": "buf_flush_page_cleaner_(?:worker|thread)",
    "ib_io_handler": "io_handler_thread",
    "ib_src_main": "srv_master_(?:thread|callback)",
    "ib_srv_purge": "srv_purge_coordinator_thread|purge_coordinator_callback",
    "ib_srv_wkr": "srv_worker_thread|purge_worker_callback",
    "walwriter": "WalWriterMain",
    "checkpointer": "CheckpointerMain",
    "background writer": "BackgroundWriterMain",
    "autovacuum": "AutoVac(?:Worker|Launcher)Main|StartAutoVac(?:Worker|Launcher)",
    "io worker": "IoWorkerMain",
    "parallel worker": "ParallelWorkerMain",
}
"""Functions near the roots of a group's stacks, for threads without a name: those of MySQL and
of MariaDB, and processes of PostgreSQL that began within the window. The group is the one that
`watch.threads` gives to the same thread of a server that names it."""
ROOTS: Final = [(group, re.compile(roots)) for group, roots in GROUPS.items()]


def folded(
    samples: Iterable[StackSample], groups: Mapping[int, str], program: str
) -> dict[str, int]:
    """Number of samples of each stack, joined by semicolons behind its group of threads.

    A copy of a deep stack lacks its root; its thread is then known by its other stacks.

    Args:
        groups: of threads by number, as far as they were read.
        program: name of the process, which threads without a name of their own have too.
    """
    taken = list(samples)
    known = {thread: group for thread, group in groups.items() if group != UNNAMED}
    for sample in taken:
        if sample.tid not in known and (root := _group_by_root(sample.functions)):
            known[sample.tid] = root
    counts: Counter[str] = Counter()
    for sample in taken:
        group = known.get(sample.tid) or group_of(sample.thread, program, "")
        counts[";".join((clean(group.replace(";", ":"), NAME_MAX), *_shown(sample)))] += 1
    kept = Counter(dict(counts.most_common(STACKS_MAX)))
    for stack in counts.keys() - kept.keys():
        group, *_, innermost = stack.split(";")
        kept[f"{group};{LEFT_OUT};{innermost}"] += counts[stack]
    return dict(kept)


def _group_by_root(functions: Iterable[str]) -> str | None:
    return next((group for name in functions if (group := _group_of(name))), None)


@lru_cache(maxsize=20_000)
def _group_of(function: str) -> str | None:
    name = function.rpartition("::")[2]
    return next((group for group, roots in ROOTS if roots.fullmatch(name)), None)


def _shown(sample: StackSample) -> tuple[str, ...]:
    """The functions, a run of unknown ones as one, a deep stack without its middle."""
    pairs = zip(("", *sample.functions), sample.functions, strict=False)
    names = tuple(name for before, name in pairs if name != UNKNOWN or before != UNKNOWN)
    if len(names) < DEPTH_MAX:
        return names
    half = DEPTH_MAX // 2
    return (*names[: half - 2], LEFT_OUT, *names[-half:])


def clean(text: str, most: int) -> str:
    """The text's beginning, with a question mark for each sign that cannot be printed."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:most])
