import io
import tarfile
import zipfile

import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import unpack as module
from dbdyno.servers.unpack import Layout, unpack

INNER = Layout("inner.tar.gz")


def jar_of(tmp_path, *items, member="inner.tar.gz"):
    """A jar that holds a tar of (name, kind, content or link target, mode)."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for name, kind, text, mode in items:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, mode
            if kind == tarfile.REGTYPE:
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
            else:
                info.linkname = text
                archive.addfile(info)
    jar = tmp_path / "made.jar"
    with zipfile.ZipFile(jar, "w") as outer:
        outer.writestr(member, inner.getvalue())
    return jar


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_files_folders_and_inner_links_are_taken(tmp_path, target):
    jar = jar_of(
        tmp_path,
        ("bin/tool.so", tarfile.SYMTYPE, "../lib/tool.so.1", 0o777),
        ("lib", tarfile.DIRTYPE, "", 0o755),
        ("lib/tool.so.1", tarfile.REGTYPE, "code", 0o755),
    )
    unpack(jar, INNER, target)
    assert (target / "bin" / "tool.so").read_text() == "code"
    assert (target / "lib" / "tool.so.1").stat().st_mode & 0o777 == 0o755


def test_set_user_id_and_foreign_write_bits_are_dropped(tmp_path, target):
    jar = jar_of(tmp_path, ("tool", tarfile.REGTYPE, "x", 0o6777))
    unpack(jar, INNER, target)
    assert (target / "tool").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (("../evil", tarfile.REGTYPE, "x", 0o644), "leads out"),
        (("a/../../evil", tarfile.REGTYPE, "x", 0o644), "leads out"),
        (("/evil", tarfile.REGTYPE, "x", 0o644), "leads out"),
        (("link", tarfile.SYMTYPE, "/etc/passwd", 0o777), "link out"),
        (("a/link", tarfile.SYMTYPE, "../../etc", 0o777), "link out"),
        (("hard", tarfile.LNKTYPE, "/etc/passwd", 0o644), "leads out"),
        (("hard", tarfile.LNKTYPE, "elsewhere", 0o644), "which was not taken"),
        (("pipe", tarfile.FIFOTYPE, "", 0o644), "neither"),
    ],
)
def test_an_unsafe_member_is_refused(tmp_path, target, item, reason):
    with pytest.raises(ProvisionError, match=reason):
        unpack(jar_of(tmp_path, item), INNER, target)
    assert not (tmp_path / "evil").exists()
    assert list(target.iterdir()) == []


def test_nothing_is_written_through_a_link_of_the_archive(tmp_path, target):
    jar = jar_of(
        tmp_path,
        ("door", tarfile.SYMTYPE, "room", 0o777),
        ("door/file", tarfile.REGTYPE, "x", 0o644),
    )
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        unpack(jar, INNER, target)  # the folder "door" stands where the link should be


def test_left_out_members_are_not_taken(tmp_path, target):
    jar = jar_of(
        tmp_path,
        ("bad", tarfile.SYMTYPE, "/tmp/packer", 0o777),
        ("good", tarfile.REGTYPE, "x", 0o644),
    )
    unpack(jar, Layout("inner.tar.gz", left_out=("bad",)), target)
    assert [path.name for path in target.iterdir()] == ["good"]


def test_an_endless_archive_is_stopped(tmp_path, target, monkeypatch):
    monkeypatch.setattr(module, "UNPACKED_BYTES_MAX", 10)
    with pytest.raises(ProvisionError, match="larger than 10 bytes"):
        unpack(jar_of(tmp_path, ("big", tarfile.REGTYPE, "x" * 11, 0o644)), INNER, target)


def test_a_missing_member_and_a_damaged_jar_are_told(tmp_path, target):
    jar = jar_of(tmp_path, ("file", tarfile.REGTYPE, "x", 0o644))
    with pytest.raises(ProvisionError, match="holds no other"):
        unpack(jar, Layout("other"), target)
    jar.write_bytes(b"not a jar")
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        unpack(jar, INNER, target)
