"""Hostile archives: whatever stands in the file, it is read whole and true, or refused in words."""

from __future__ import annotations

import stat
import struct
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno.errors import BundleError
from dbdyno.store.archive import LIMITS, SUMS, Limits, read, write

FILES = {"run.json": b"{}\n", "trials/00000.json": b'{"a": 1}\n' * 50, "README.txt": b"hello\n"}
SMALL = Limits(files=20, file_bytes=10_000, total_bytes=20_000, directory_bytes=4_000)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    write(tmp_path / "sealed.zip", FILES)
    return tmp_path / "sealed.zip"


def forged(path: Path, name: str | zipfile.ZipInfo, content: bytes = b"x") -> Path:
    """The sealed archive with one file more in it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, content)
    return path


def test_files_come_back_with_the_digest_of_their_sums(sealed: Path, tmp_path: Path) -> None:
    files, digest = read(sealed)
    assert files == FILES
    assert digest == write(tmp_path / "again.zip", dict(reversed(FILES.items())))
    assert sealed.read_bytes() == (tmp_path / "again.zip").read_bytes()


ELSEWHERE = ("../outside", "/etc/passwd", "a/../../b", "a/b/c", "trials/..", "C:\\x", "a\\b")


@pytest.mark.parametrize("name", [*ELSEWHERE, ".hidden", "", "a\nb", "a/", "\x1b[2J"])
def test_a_name_that_leads_elsewhere_is_refused(sealed: Path, name: str) -> None:
    with pytest.raises(BundleError) as caught:
        read(forged(sealed, zipfile.ZipInfo(name)))
    assert "\x1b" not in str(caught.value)


def test_links_and_devices_are_refused(sealed: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(BundleError, match="no plain file"):
        read(forged(sealed, link, b"/etc/passwd"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["extra.json", "run.json"])
def test_what_the_sums_do_not_name_is_refused(sealed: Path, name: str) -> None:
    with pytest.raises(BundleError, match=r"does not hold the files|twice"):
        read(forged(sealed, name))


def test_what_the_sums_name_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "lacking.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SUMS, f"{'0' * 64}  run.json\n")
    with pytest.raises(BundleError, match="does not hold the files"):
        read(path)


def test_a_changed_file_is_named(tmp_path: Path, sealed: Path) -> None:
    with zipfile.ZipFile(sealed) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    path = tmp_path / "changed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, one in {**content, "run.json": b'{"a": 2}'}.items():
            archive.writestr(name, one)
    with pytest.raises(BundleError, match=r"run\.json in the bundle was changed"):
        read(path)


def bomb(path: Path, size: int) -> Path:
    """A file of zeros that is a thousand times smaller when packed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SUMS, bytes(size))
    return path


def test_a_bomb_is_defused_before_it_fills_memory(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.zip", 50_000_000)
    tracemalloc.start()
    with pytest.raises(BundleError, match="larger than"):
        read(path, SMALL)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_bomb_that_lies_about_its_size_is_defused_too(tmp_path: Path) -> None:
    content = bytearray(bomb(tmp_path / "bomb.zip", 5_000_000).read_bytes())
    honest = struct.pack("<L", 5_000_000)
    path = tmp_path / "lying.zip"
    path.write_bytes(content.replace(honest, struct.pack("<L", 100)))
    with pytest.raises(BundleError):
        read(path, SMALL)


def test_many_small_files_are_refused_by_number_and_by_sum(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    write(path, {f"f{n}": b"x" for n in range(30)})
    with pytest.raises(BundleError, match="larger than"):
        read(path, SMALL)
    write(path, {f"f{n}": bytes(5_000) for n in range(10)})
    with pytest.raises(BundleError, match="larger than"):
        read(path, SMALL)


def test_many_values_in_few_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "values.zip"
    write(path, {"a.json": b"[0" + b",0" * 600 + b"]", "b.json": b"[0" + b",0" * 600 + b"]"})
    with pytest.raises(BundleError, match=r"more values than(.|\n)*up to b\.json"):
        read(path, replace(SMALL, values=1_000))
    assert read(path, replace(SMALL, values=2_000))


def test_too_much_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="too large"):
        write(tmp_path / "x.zip", {f"f{n}": b"" for n in range(60_000)})
    piece = bytes(LIMITS.file_bytes)
    with pytest.raises(BundleError, match="too large") as caught:  # to be read again
        write(tmp_path / "x.zip", {f"f{n}": piece for n in range(9)})
    assert (caught.value.found or "").endswith("576 MiB in all")


@pytest.mark.parametrize(
    "content",
    [b"", b"not a zip", b"PK\x05\x06" + bytes(18), b"PK\x05\x06" + b"\xff" * 18, b"PK" * 40],
)
def test_other_files_are_no_bundles(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.zip"
    path.write_bytes(content)
    with pytest.raises(BundleError):
        read(path)
    with pytest.raises(BundleError, match="cannot be read"):
        read(tmp_path)


def test_unknown_packing_and_comments_are_refused(tmp_path: Path, sealed: Path) -> None:
    path = tmp_path / "lzma.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(SUMS, b"")
    with pytest.raises(BundleError, match="unknown way"):
        read(path)
    with zipfile.ZipFile(sealed, "a") as archive:
        archive.comment = b"hello"
    with pytest.raises(BundleError):
        read(sealed)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_refused_or_does_no_harm(data: st.DataObject, sealed: Path) -> None:
    content = bytearray(sealed.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    damaged = sealed.parent / "damaged.zip"
    damaged.write_bytes(content[:cut] if data.draw(st.booleans()) else content)
    try:
        files, _ = read(damaged, SMALL)
    except BundleError:
        return
    assert files == FILES
