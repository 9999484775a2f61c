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
from support.archives import file, jar_of, link, tar_of, twin

INNER = Layout("inner.tar.gz")


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_files_folders_and_inner_links_are_taken(tmp_path, target):
    jar = jar_of(
        tmp_path,
        link("bin/tool.so", "../lib/tool.so.1"),
        ("lib", tarfile.DIRTYPE, "", 0o755),
        file("lib/tool.so.1", "code", 0o6777),
    )
    unpack(jar, INNER, target)
    assert (target / "bin" / "tool.so").read_text() == "code"
    mode = (target / "lib" / "tool.so.1").stat().st_mode
    assert mode & 0o7777 == 0o755, "set-user-ID and foreign write bits are dropped"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (file("../evil"), "leads out"),
        (file("a/../../evil"), "leads out"),
        (file("/evil"), "leads out"),
        (link("link", "/etc/passwd"), "link out"),
        (link("a/link", "../../etc"), "link out"),
        (twin("hard", "/etc/passwd"), "leads out"),
        (twin("hard", "elsewhere"), "which was not taken"),
        (("pipe", tarfile.FIFOTYPE, "", 0o644), "neither"),
    ],
)
def test_an_unsafe_member_is_refused(tmp_path, target, item, reason):
    with pytest.raises(ProvisionError, match=reason):
        unpack(jar_of(tmp_path, item), INNER, target)
    assert not (tmp_path / "evil").exists()
    assert list(target.iterdir()) == []


def test_nothing_is_written_through_a_link_of_the_archive(tmp_path, target):
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        # the folder "door" stands where the link should be
        unpack(jar_of(tmp_path, link("door", "room"), file("door/file")), INNER, target)


def test_left_out_members_are_not_taken(tmp_path, target):
    jar = jar_of(tmp_path, link("bad", "/tmp/packer"), file("good"))
    unpack(jar, Layout("inner.tar.gz", left_out=("bad",)), target)
    assert [path.name for path in target.iterdir()] == ["good"]


@pytest.mark.parametrize(
    ("items", "message", "taken"),
    [
        ([file("big", "x" * 11)], "big.*larger than 10 bytes", []),
        # second names of a file count as the copies that they become
        (
            [file("big", "x" * 6), twin("twin0", "big"), twin("twin1", "big")],
            *("twin0.*larger than 10 bytes", ["big"]),
        ),
        ([file(f"f{n}", "") for n in range(4)], "more than 3 members", ["f0", "f1", "f2"]),
        ([file("/".join("a" * 1500))], "more than 100 folders", []),
    ],
    ids=["bytes", "second names", "members", "depth"],
)
def test_an_archive_without_an_end_is_stopped(tmp_path, target, monkeypatch, items, message, taken):
    monkeypatch.setattr(module, "UNPACKED_BYTES_MAX", 10)
    monkeypatch.setattr(module, "MEMBERS_MAX", 3)
    with pytest.raises(ProvisionError, match=message):
        unpack(jar_of(tmp_path, *items), INNER, target)
    assert sorted(path.name for path in target.iterdir()) == taken


@pytest.mark.parametrize("names", [[".", "."], ["elsewhere/a", "elsewhere/b"], ["in/a", "in/b"]])
def test_members_are_counted_before_they_are_skipped(tmp_path, target, monkeypatch, names):
    monkeypatch.setattr(module, "UNPACKED_BYTES_MAX", 10)
    archive = tmp_path / "made.tar"
    tar_of(archive, "gz", *(file(name, "x" * 6) for name in names))
    with pytest.raises(ProvisionError, match="larger than 10 bytes"):
        unpack(archive, Layout(inside="in", left_out=("*",)), target)


def test_a_size_below_zero_makes_no_room(tmp_path, target, monkeypatch):
    monkeypatch.setattr(module, "UNPACKED_BYTES_MAX", 10)
    with tarfile.open(tmp_path / "made.tar", "w", format=tarfile.GNU_FORMAT) as made:
        folder = tarfile.TarInfo("folder")
        folder.type, folder.size = tarfile.DIRTYPE, -100
        made.addfile(folder)
        big = tarfile.TarInfo("big")
        big.size = 11
        made.addfile(big, io.BytesIO(b"x" * 11))
    with pytest.raises(ProvisionError, match="larger than 10 bytes"):
        unpack(tmp_path / "made.tar", Layout(), target)


SPARSE = {
    "GNU": {},
    "PAX 0.0": {"GNU.sparse.size": "1"},
    "PAX 0.1": {"GNU.sparse.size": "1", "GNU.sparse.map": "0,1"},
    "PAX 1.0": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
}


@pytest.mark.parametrize("form", SPARSE)
def test_the_map_of_a_sparse_file_is_not_read(tmp_path, target, form):
    with tarfile.open(tmp_path / "made.tar", "w", format=tarfile.PAX_FORMAT) as made:
        sparse = tarfile.TarInfo("sparse")
        sparse.pax_headers = SPARSE[form]
        sparse.type = sparse.type if SPARSE[form] else tarfile.GNUTYPE_SPARSE
        made.addfile(sparse)
    with pytest.raises(ProvisionError, match="it is a sparse file"):
        unpack(tmp_path / "made.tar", Layout(), target)


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
    jar = jar_of(tmp_path, file("file"))
    with pytest.raises(ProvisionError, match="holds no other"):
        unpack(jar, Layout("other"), target)
    jar.write_bytes(b"not a jar")
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        unpack(jar, INNER, target)


def test_the_folder_named_in_the_layout_becomes_the_top_and_must_be_there(tmp_path, target):
    share = ("server-8.0/share", tarfile.DIRTYPE, "", 0o755)
    jar = jar_of(tmp_path, file("server-8.0/bin/mysqld", "code", 0o755), share, file("README"))
    with pytest.raises(ProvisionError, match="nothing in its folder 'elsewhere'"):
        unpack(jar, Layout("inner.tar.gz", inside="elsewhere"), target)
    unpack(jar, Layout("inner.tar.gz", inside="*"), target)
    assert sorted(path.name for path in target.iterdir()) == ["bin", "share"]


def test_a_second_name_of_a_file_is_a_file_of_its_own(tmp_path, target):
    items = file("top/bin/tool", "code", 0o755), twin("top/bin/alias", "top/bin/tool")
    unpack(jar_of(tmp_path, *items), Layout("inner.tar.gz", inside="top"), target)
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


def packed_as(folder, kind):
    """A small archive, as bytes."""
    if kind == "zip":
        items = ("bin/mysqld", 0, "code" * 50), ("bin/link", 0o120777, "mysqld")
        return zip_of(folder, *items).read_bytes()
    made = folder / "made.tar"
    tar_of(made, kind, file("bin/mysqld", "code" * 50), link("bin/link", "mysqld"))
    return made.read_bytes()


PARTS = st.sampled_from(["a", "b", "..", ".", "", "bin", "door"])
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
MEMBERS = st.tuples(PATHS, KINDS, PATHS, st.just(0o777))


IN_THE_WAY = [link("a/b", "b"), link("a", "a")]


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
    items = [link(name, end) for name, end in links.items()]
    jar = jar_of(tmp_path, *items, file("top/file"))
    with pytest.raises(ProvisionError, match="link out"):
        unpack(jar, INNER, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.jar", "target"]


with TemporaryDirectory() as made_in:
    WHOLE_BYTES = {kind: packed_as(Path(made_in), kind) for kind in ("gz", "xz", "zip")}


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
