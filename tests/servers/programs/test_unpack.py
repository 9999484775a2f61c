import io
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs import unpack as module
from dbdyno.servers.programs.unpack import Layout, unpack

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


def test_folders_in_folders_without_end_are_refused(tmp_path, target):
    deep = "/".join("a" * 1500)
    with pytest.raises(ProvisionError, match="more than 100 folders"):
        unpack(jar_of(tmp_path, (deep, tarfile.REGTYPE, "x", 0o644)), INNER, target)


def test_second_names_of_a_file_count_as_the_copies_that_they_become(tmp_path, target, monkeypatch):
    monkeypatch.setattr(module, "UNPACKED_BYTES_MAX", 10)
    twins = [(f"twin{n}", tarfile.LNKTYPE, "big", 0o644) for n in range(2)]
    with pytest.raises(ProvisionError, match=r"twin0.*larger than 10 bytes"):
        unpack(jar_of(tmp_path, ("big", tarfile.REGTYPE, "x" * 6, 0o644), *twins), INNER, target)
    assert [path.name for path in target.iterdir()] == ["big"]


def test_an_archive_of_countless_members_is_stopped(tmp_path, target, monkeypatch):
    monkeypatch.setattr(module, "MEMBERS_MAX", 2)
    many = [(f"f{n}", tarfile.REGTYPE, "", 0o644) for n in range(3)]
    with pytest.raises(ProvisionError, match="more than 2 members"):
        unpack(jar_of(tmp_path, *many), INNER, target)


@pytest.mark.parametrize("kind", ["a comment", "a long name"])
def test_a_members_header_without_end_is_refused(tmp_path, target, kind):
    long = "x" * 2 * module.HEADER_BYTES_MAX
    archive = tmp_path / "made.tar"
    form = tarfile.PAX_FORMAT if kind == "a comment" else tarfile.GNU_FORMAT
    with tarfile.open(archive, "w", format=form) as made:
        info = tarfile.TarInfo("file" if kind == "a comment" else long)
        info.pax_headers = {"comment": long}
        made.addfile(info)
    with pytest.raises(ProvisionError, match="a header of more than"):
        unpack(archive, Layout(), target)
    assert list(target.iterdir()) == []


def test_a_missing_member_and_a_damaged_jar_are_reported(tmp_path, target):
    jar = jar_of(tmp_path, ("file", tarfile.REGTYPE, "x", 0o644))
    with pytest.raises(ProvisionError, match="holds no other"):
        unpack(jar, Layout("other"), target)
    jar.write_bytes(b"not a jar")
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        unpack(jar, INNER, target)


def test_the_folder_named_in_the_layout_becomes_the_top(tmp_path, target):
    jar = jar_of(
        tmp_path,
        ("server-8.0/bin/mysqld", tarfile.REGTYPE, "code", 0o755),
        ("server-8.0/share", tarfile.DIRTYPE, "", 0o755),
        ("README", tarfile.REGTYPE, "x", 0o644),
    )
    unpack(jar, Layout("inner.tar.gz", inside="*"), target)
    assert sorted(path.name for path in target.iterdir()) == ["bin", "share"]


def test_a_folder_that_is_not_there_is_reported(tmp_path, target):
    jar = jar_of(tmp_path, ("bin/mysqld", tarfile.REGTYPE, "x", 0o755))
    with pytest.raises(ProvisionError, match="nothing in its folder 'elsewhere'"):
        unpack(jar, Layout("inner.tar.gz", inside="elsewhere"), target)


def test_a_second_name_of_a_file_is_a_file_of_its_own(tmp_path, target):
    jar = jar_of(
        tmp_path,
        ("top/bin/tool", tarfile.REGTYPE, "code", 0o755),
        ("top/bin/alias", tarfile.LNKTYPE, "top/bin/tool", 0o755),
    )
    unpack(jar, Layout("inner.tar.gz", inside="top"), target)
    assert (target / "bin" / "alias").read_text() == "code"
    assert (target / "bin" / "alias").stat().st_nlink == 1


def zip_of(tmp_path, *items):
    """A zip of (name, mode, text)."""
    made = tmp_path / "made.zip"
    with zipfile.ZipFile(made, "w") as archive:
        for name, mode, text in items:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, text)
    return made


def test_the_tree_of_a_zip_is_taken_and_programs_become_executable(tmp_path, target):
    made = zip_of(
        tmp_path,
        ("a/b/bin/", 0o40755, ""),
        ("a/b/bin/mysqld", 0, "code"),
        ("a/b/share/errors", 0o644, "x"),
        ("a/b/bin/mysqld-debug", 0o755, "x"),
        ("a/b/lib/tool.so", 0o120777, "tool.so.1"),
        ("META-INF/MANIFEST.MF", 0, "x"),
    )
    layout = Layout(inside="a/b", left_out=("bin/*-debug",), executable=("bin/*",))
    unpack(made, layout, target)
    assert (target / "bin" / "mysqld").stat().st_mode & 0o777 == 0o755
    assert (target / "share" / "errors").stat().st_mode & 0o777 == 0o644
    assert (target / "lib" / "tool.so").readlink().name == "tool.so.1"
    assert not (target / "bin" / "mysqld-debug").exists()


@pytest.mark.parametrize(
    ("name", "mode", "text", "reason"),
    [
        ("../evil", 0o644, "x", "leads out"),
        ("/evil", 0o644, "x", "leads out"),
        ("link", 0o120777, "/etc/passwd", "link out"),
        ("a/link", 0o120777, "../../etc", "link out"),
        ("link", 0o120777, "x" * 5000, "no end"),
    ],
)
def test_an_unsafe_member_of_a_zip_is_refused(tmp_path, target, name, mode, text, reason):
    with pytest.raises(ProvisionError, match=reason):
        unpack(zip_of(tmp_path, (name, mode, text)), Layout(), target)
    assert list(target.iterdir()) == []


def packed_as(kind):
    """A small archive, as bytes."""
    made = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bin/mysqld", "code" * 50)
            link = zipfile.ZipInfo("bin/link")
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "mysqld")
        return made.getvalue()
    with tarfile.open(fileobj=made, mode=f"w:{kind}") as archive:
        info = tarfile.TarInfo("bin/mysqld")
        info.size = 200
        archive.addfile(info, io.BytesIO(b"code" * 50))
        link = tarfile.TarInfo("bin/link")
        link.type, link.linkname = tarfile.SYMTYPE, "mysqld"
        archive.addfile(link)
    return made.getvalue()


PARTS = st.sampled_from(["a", "b", "..", ".", "", "bin", "door"])
MEMBERS = st.tuples(
    st.lists(PARTS, min_size=1, max_size=4).map("/".join),
    st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE]),
    st.lists(PARTS, min_size=1, max_size=4).map("/".join),
    st.just(0o777),
)


IN_THE_WAY = [("a/b", tarfile.SYMTYPE, "b", 0o777), ("a", tarfile.SYMTYPE, "a", 0o777)]


@example(IN_THE_WAY, "")
@given(st.lists(MEMBERS, max_size=8), st.sampled_from(["", "a", "*"]))
@settings(max_examples=150)
def test_no_archive_whatever_reaches_outside_its_folder(items, inside):
    with TemporaryDirectory() as name:
        top = Path(name) / "top"
        (top / "target").mkdir(parents=True)
        with suppress(ProvisionError):
            unpack(jar_of(Path(name), *items), Layout("inner.tar.gz", inside), top / "target")
        assert [path.name for path in top.iterdir()] == ["target"]
        for path in top.rglob("*"):
            assert path.resolve().is_relative_to(top / "target")


@pytest.mark.parametrize(
    "links",
    [
        {"d1/d2/a": "../../top", "d1/d2/a/x": "../../../q"},
        {"x/m": ".", "x/l": "m/../../z"},
        {"x/m": ".", "x/l": "m/m/../../..", "x/l/evil": "x"},
    ],
)
def test_links_that_lead_out_only_together_are_refused(tmp_path, target, links):
    items = [(name, tarfile.SYMTYPE, end, 0o777) for name, end in links.items()]
    jar = jar_of(tmp_path, *items, ("top/file", tarfile.REGTYPE, "x", 0o644))
    with pytest.raises(ProvisionError, match="link out"):
        unpack(jar, INNER, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.jar", "target"]


WHOLE_BYTES = {kind: packed_as(kind) for kind in ("gz", "xz", "zip")}


@given(
    st.sampled_from(sorted(WHOLE_BYTES)),
    st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=4)), max_size=3),
    st.floats(0.1, 1),
)
@settings(max_examples=200)
def test_a_damaged_archive_is_unpacked_or_reported_and_nothing_else(kind, changes, kept):
    content = bytearray(WHOLE_BYTES[kind])
    for where, new in changes:
        at = int(where * len(content))
        content[at : at + len(new)] = new
    with TemporaryDirectory() as name:
        archive, target = Path(name) / "archive", Path(name) / "target"
        archive.write_bytes(content[: int(kept * len(content))])
        target.mkdir()
        with suppress(ProvisionError):
            unpack(archive, Layout(), target)
