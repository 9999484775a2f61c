"""A restored folder passes only as exactly what was listed."""

import os
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.errors import ServerError
from dbdyno.servers.local import files


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "snapshot" / "data"
    (data / "sbtest").mkdir(parents=True)
    (data / "ibdata1").write_bytes(b"system")
    (data / "sbtest" / "sbtest1.ibd").write_bytes(os.urandom(100_000))
    files.keep(data, data.parent / files.FILE)
    return data


def compare(folder):
    files.compare("fast", folder, folder.parent / files.FILE)


def test_files_are_listed_by_their_path_with_length_and_crc(folder):
    assert files.take(folder)["ibdata1"] == [6, zlib.crc32(b"system")]
    assert list(files.take(folder)) == ["ibdata1", "sbtest/sbtest1.ibd"]
    compare(folder)


def test_one_changed_byte_is_found_and_named(folder):
    table = folder / "sbtest" / "sbtest1.ibd"
    content = bytearray(table.read_bytes())
    content[70_000] ^= 1
    table.write_bytes(content)
    with pytest.raises(ServerError, match="not those of the snapshot") as caught:
        compare(folder)
    assert caught.value.found == "sbtest/sbtest1.ibd"
    assert caught.value.wanted.startswith("2 files")


def test_a_file_too_many_or_too_few_is_found(folder):
    (folder / "ibdata1").rename(folder / "ibdata2")
    with pytest.raises(ServerError) as caught:
        compare(folder)
    assert caught.value.found == "ibdata1, ibdata2"


def test_no_more_than_five_files_are_named(folder):
    for number in range(9):
        (folder / f"t{number}").touch()
    with pytest.raises(ServerError) as caught:
        compare(folder)
    assert caught.value.found == "t0, t1, t2, t3, t4 …"


@given(st.binary(max_size=200), st.integers(1, 64))
@settings(max_examples=50)
def test_a_sum_in_pieces_is_the_sum_of_the_whole(tmp_path_factory, content, piece):
    file = tmp_path_factory.getbasetemp() / "file"
    file.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_BYTES", piece)
        assert files._sum(file) == [len(content), zlib.crc32(content)]
