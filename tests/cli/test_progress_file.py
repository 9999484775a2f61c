from contextlib import suppress
from pathlib import Path

from dbdyno.cli.progress import GrowingFile, growing


def test_lines_are_there_at_once_and_behind_those_of_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.txt"
    for line in ("one", "two"):
        with growing(path) as file:
            file.add(line)
            assert path.read_text().endswith(f"{line}\n")
    assert path.read_text() == "one\ntwo\n"


def test_a_file_that_cannot_be_made_takes_lines_and_keeps_none(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with growing(tmp_path / "run" / "log.txt") as file:
        file.add("one")
    assert (tmp_path / "run").is_file()


def test_a_full_disk_ends_the_file_only() -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        file = GrowingFile(full)
        for _ in range(3):
            file.add("one")
        assert file._file is None
