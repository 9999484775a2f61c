import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers.programs.identify import files_of


@pytest.fixture
def tree(tmp_path):
    def make(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        return tmp_path

    return make


def test_a_vendors_archive(tree):
    home = tree("bin/mysqld", "share/charsets/Index.xml", "lib/plugin/clone.so", "bin/libssl.so.1")
    found = files_of(home / "bin/mysqld")
    assert (found.base, found.share, found.plugins) == (home, home / "share", home / "lib/plugin")
    assert found.libraries is None  # a program in its place finds its own


def test_an_unpacked_debian_package(tree):
    home = tree(
        "usr/sbin/mariadbd", "usr/share/mariadb/charsets/Index.xml", "usr/lib/mysql/plugin/a.so"
    )
    found = files_of(home / "usr/sbin/mariadbd")
    assert found.base == home / "usr"
    assert found.share == home / "usr/share/mariadb"
    assert found.plugins == home / "usr/lib/mysql/plugin"


def test_a_program_on_top_with_libraries_beside_it(tree):
    home = tree("mysqld", "libaio.so.1", "share/charsets/Index.xml")
    found = files_of(home / "mysqld")
    assert (found.base, found.plugins, found.libraries) == (home, None, home)


def test_a_program_alone_cannot_run(tree):
    home = tree("bin/mysqld")
    with pytest.raises(ProvisionError, match="no messages and character sets") as caught:
        files_of(home / "bin/mysqld")
    assert caught.value.hint == "unpack the server's whole archive"
