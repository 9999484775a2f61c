"""sysbench's tests without a database: their work, its counts, and the lines that scripts read.

Their texts are compared with those of sysbench where it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.source import ROOT
from support.sysbench import Shell, shape

PROGRAM = shutil.which("sysbench", path="/usr/bin:/usr/local/bin")
BLOCK = 16384
TWO_FILES = "fileio --file-num=2 --file-total-size=128K"
MASKED = re.compile(r"using [^)]*|[\d.]+ seconds \(.*\)")


def counts(shell: Shell, line: str) -> list[int]:
    """Events, reads, writes and others of a run."""
    ended = shell(f"{line} --output=json run")
    assert ended.returncode == 0, ended
    totals = json.loads(ended.stdout)["totals"]
    return [totals[name] for name in ("events", "reads", "writes", "others")]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("--file-test-mode=rndrd --file-fsync-freq=10", [100, 100, 0, 0]),
        ("--file-test-mode=seqrd", [100, 100, 0, 0]),
        # 84 requests, two syncs after each ten of them, two at the end of the thread.
        ("--file-test-mode=rndrw --file-rw-ratio=1 --file-fsync-freq=10", [100, 42, 42, 18]),
        ("--file-test-mode=rndrw --threads=3", [100, 60, 40, 6]),
        ("--file-test-mode=rndrw --file-rw-ratio=0 --file-fsync-end=off", [100, 0, 100, 0]),
        ("--file-test-mode=rndwr --file-fsync-all", [100, 0, 100, 100]),
        ("--file-test-mode=seqrewr --file-fsync-mode=fdatasync", [100, 0, 100, 2]),
        ("--file-test-mode=seqwr --file-extra-flags=dsync", [100, 0, 100, 2]),
    ],
)
def test_files_are_read_written_and_synced_as_often_as_by_sysbench(
    shell: Shell, mode: str, expected: list[int]
) -> None:
    assert shell(f"{TWO_FILES} prepare").returncode == 0
    assert counts(shell, f"{TWO_FILES} {mode} --events=100 --time=0") == expected


def test_blocks_are_written_one_after_the_other_to_the_files_in_the_folder(
    shell: Shell, tmp_path: Path
) -> None:
    files = [tmp_path / f"test_file.{number}" for number in range(2)]
    for file in files:
        file.write_bytes(b"\xff" * 4 * BLOCK)
    other = tmp_path / "test_file.2"
    other.write_bytes(b"mine")
    line = f"{TWO_FILES} --file-test-mode=seqrewr --time=0"
    assert shell(f"{line} --events=5 run").returncode == 0
    assert [file.read_bytes().count(0) for file in files] == [4 * BLOCK, BLOCK]
    assert shell(f"{TWO_FILES} cleanup").stdout.endswith("Removing test files...\n")
    assert sorted(tmp_path.glob("test_file.*")) == [other]
    assert shell(f"{TWO_FILES} cleanup").returncode == 0
    assert shell(f"{TWO_FILES} --file-test-mode=seqwr --events=9 --time=0 run").returncode == 0
    assert [file.stat().st_size for file in files] == [4 * BLOCK, 4 * BLOCK]


def called(folder: Path, before: str, line: str, after: str = "") -> str:
    """Stdout of a line of the persona between other statements in its process."""
    code = f"import sys, dbdyno.sysbench.entry as s\n{before}\ns.main(sys.argv[1:])\n{after}"
    ended = subprocess.run(
        [sys.executable, "-c", code, *line.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "lab"), "HOME": str(folder)},
    )
    return ended.stdout


def test_reads_ask_the_system_for_every_byte(shell: Shell, tmp_path: Path) -> None:
    assert shell(f"{TWO_FILES} prepare").returncode == 0
    bytes_read = "print(open('/proc/self/io').readline().split()[1])"
    line = f"{TWO_FILES} --file-test-mode=rndrd --events=1000 --time=0 --verbosity=0 run"
    before, after = map(int, called(tmp_path, bytes_read, line, bytes_read).split())
    assert 1000 * BLOCK <= after - before < 1000 * BLOCK + 2_000_000


def test_a_write_that_fails_ends_the_run(shell: Shell, tmp_path: Path) -> None:
    assert shell(f"{TWO_FILES} prepare").returncode == 0
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({BLOCK}, {BLOCK}))"
    said = called(tmp_path, limit, f"{TWO_FILES} --file-test-mode=seqrewr run")
    assert f"Failed to write file! file: test_file.0 pos: {BLOCK} errno = 27 " in said
    assert "General statistics" not in said


def test_prepare_keeps_what_is_there_and_adds_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    last = [shell(f"{TWO_FILES} prepare").stdout.splitlines()[-3:] for _ in range(2)]
    assert last[0][:2] == ["Creating file test_file.0", "Creating file test_file.1"]
    assert last[0][2].startswith("131072 bytes written in 0.")
    assert last[1] == [
        "Reusing existing file test_file.0",
        "Reusing existing file test_file.1",
        "No bytes written.",
    ]
    grown = shell("fileio --file-num=2 --file-total-size=200K prepare").stdout.splitlines()
    assert grown[-3:-1] == [f"Extending existing file test_file.{number}" for number in range(2)]
    assert (tmp_path / "test_file.0").stat().st_size == 7 * BLOCK


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("memory --memory-total-size=1M", 1024),
        ("memory --memory-total-size=1M --memory-block-size=2K --memory-oper=read", 512),
        ("memory --memory-total-size=1M --threads=3 --memory-scope=local", 1023),
        ("memory --memory-total-size=16K --memory-access-mode=rnd", 16),
        ("memory --memory-total-size=16K --memory-access-mode=rnd --memory-oper=read", 16),
        ("memory --memory-total-size=16K --memory-oper=none", 16),
        ("threads --events=7 --threads=3 --thread-locks=2", 7),
        ("mutex --threads=3 --mutex-locks=100 --mutex-num=1 --mutex-loops=10", 3),
    ],
)
def test_a_run_ends_by_itself_after_its_share_of_the_work(
    shell: Shell, line: str, expected: int
) -> None:
    assert counts(shell, f"{line} --time=30") == [expected, 0, 0, 0]


def test_memory_is_told_in_operations_and_mebibytes(shell: Shell) -> None:
    written = shell("memory --memory-total-size=3M --memory-block-size=8K run").stdout
    assert re.search(r"\nTotal operations: 384 \( *[\d.]+ per second\)\n\n", written)
    assert re.search(r"\n3\.00 MiB transferred \([\d.]+ MiB/sec\)\n\n\nGeneral", written)
    nothing = shell("memory --memory-total-size=1M --memory-oper=none run").stdout
    assert "transferred" not in nothing


SHARES = (
    "memory --memory-total-size=1M",
    "memory --memory-total-size=1M --memory-oper=none --threads=2",
    "memory --rate=50 --time=2 --report-interval=1",
    "threads --events=3",
    "threads --rate=5 --time=2 --report-interval=1",
    "mutex --mutex-locks=50",
    "cpu --cpu-max-prime=100 --events=20",
    *(
        f"{TWO_FILES} --file-test-mode={mode} --events=40 --time=0"
        for mode in ("rndrw", "rndrd", "rndwr", "seqrd", "seqrewr", "seqwr")
    ),
    f"{TWO_FILES} --file-test-mode=rndwr --events=40 --file-fsync-all --file-extra-flags=direct",
    f"{TWO_FILES} --file-test-mode=rndrw --rate=50 --time=2 --report-interval=1",
    f"{TWO_FILES} --file-test-mode=rndrw --rate=50 --time=2 --report-checkpoints=1",
    "fileio --file-num=3 --file-total-size=100K --file-test-mode=seqrd --events=5",
)


def masked(text: str) -> list[str]:
    """The text's shape, with intervals' first lines only, and without padding before numbers."""
    lines: list[str] = []
    for line in shape(text):
        kept = re.sub(r" +#", " #", line).replace("( #", "(#")
        if not (kept.startswith("[ #") and kept in lines):
            lines.append(kept)
    return lines


def theirs(tmp_path: Path, words: str) -> subprocess.CompletedProcess[str]:
    if PROGRAM is None:
        pytest.skip("sysbench is not installed: apt-get install sysbench")
    command = [PROGRAM, *words.split()]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )


@pytest.mark.parametrize("line", SHARES)
def test_only_numbers_differ_from_sysbench(shell: Shell, tmp_path: Path, line: str) -> None:
    commands = ["prepare", "prepare", "run", "cleanup"] if line.startswith("fileio") else ["run"]
    for command in commands:
        asked = f"{line} {command}"
        other, ours = theirs(tmp_path, asked), shell(asked)
        assert other.returncode == ours.returncode == 0, ours
        if command == "run":
            # A report in the middle has no fairness here, as for all tests.
            text = re.sub(r"\nThreads fairness:\n.*\n.*\n(?=\n+File)", "", other.stdout)
            lag = r"Timer lag of the generator: .*\n\n?"  # our own
            assert masked(re.sub(lag, "", ours.stdout)) == masked(text)
        if command == "cleanup":
            assert MASKED.sub("", ours.stdout) == MASKED.sub("", other.stdout)


def test_prepare_says_what_sysbench_says(shell: Shell, tmp_path: Path) -> None:
    line = "fileio --file-num=3 --file-total-size=30M --file-block-size=4096 prepare"
    other = theirs(tmp_path, line).stdout
    for file in tmp_path.glob("test_file.*"):
        file.unlink()
    assert MASKED.sub("", shell(line).stdout) == MASKED.sub("", other)


@pytest.mark.parametrize("name", ["fileio", "memory", "threads", "mutex"])
def test_options_have_sysbench_s_names_defaults_and_order(
    shell: Shell, tmp_path: Path, name: str
) -> None:
    def options(text: str) -> list[tuple[str, str]]:
        return re.findall(r"^  --([a-z-]+).*?(\[[^ ]*\]|)$", text, re.MULTILINE)

    shown = options(shell(f"{name} help").stdout)
    assert shown == options(theirs(tmp_path, f"{name} help").stdout)


FATAL = {
    "fileio run": "Missing required argument: --file-test-mode",
    "fileio --file-test-mode=foo run": "Invalid IO operations mode: foo.",
    "fileio --file-num=0 prepare": "Invalid value for file-num: 0",
    "fileio --file-extra-flags=direct,foo prepare": "Invalid value for file-extra-flags: foo",
    "fileio --file-test-mode=rndrd run": "Cannot open file 'test_file.0' errno = 2 ",
    "fileio --file-io-mode=async prepare": "--file-io-mode: dbdyno does not do this yet",
    "fileio --file-merged-requests=4 prepare": "--file-merged-requests: dbdyno does not",
    "fileio --file-test-mode=rndrd --validate run": "--validate: dbdyno does not do this yet",
    "fileio --file-total-size=1K --file-test-mode=rndrd run": "--file-block-size=16384: wanted",
    "memory --memory-block-size=12 run": "Invalid value for memory-block-size: 12",
    "memory --memory-oper=foo run": "Invalid value for memory-oper: foo",
    "memory --memory-hugetlb=on run": "--memory-hugetlb: dbdyno does not do this yet",
    "mutex --mutex-num=0 run": "Invalid value for mutex-num: 0",
    "threads --thread-locks=0 run": "Invalid value for thread-locks: 0",
}


@pytest.mark.parametrize("line", FATAL)
def test_what_cannot_be_done_is_refused_in_sysbench_s_words_where_it_has_any(
    shell: Shell, line: str
) -> None:
    refused = shell(line)
    assert refused.returncode == 1, refused
    assert f"\n\nFATAL: {FATAL[line]}" in refused.stdout
    assert "Threads started!" not in refused.stdout


def test_files_of_another_size_are_refused(shell: Shell) -> None:
    assert shell(f"{TWO_FILES} prepare").returncode == 0
    refused = shell("fileio --file-num=2 --file-test-mode=rndrd run")
    expected = "FATAL: Size of file 'test_file.0' is 64KiB, but at least 1GiB is expected.\n"
    assert refused.returncode == 1
    assert expected in refused.stdout


@pytest.mark.parametrize("name", ["fileio", "memory", "threads", "mutex"])
def test_a_command_is_needed(shell: Shell, name: str) -> None:
    bare = shell(name)
    told = f"The '{name}' test requires a command argument. See 'sysbench {name} help'\n"
    assert (bare.returncode, bare.stderr) == (1, told)
    if name != "fileio":
        refused = shell(f"{name} prepare")
        told = f"'{name}' test does not implement the 'prepare' command.\n"
        assert (refused.returncode, refused.stderr) == (1, told)


def test_the_option_of_older_versions_names_them_too(shell: Shell) -> None:
    assert shell("--test=memory --num-threads=2 --memory-total-size=1M run").returncode == 0


def test_a_document_on_stdout_holds_no_line_of_a_test(shell: Shell) -> None:
    line = "memory --rate=50 --time=2 --report-interval=1 --output=json run"
    assert json.loads(shell(line).stdout)["exit_status"] == 0
    assert shell("memory --memory-total-size=1M --verbosity=0 run").stdout == ""
