"""Images for podman, built from this machine's own files: no registry is asked.

An image holds a shell, the few tools that dbdyno and the entry point run, a server of the cache,
and their libraries, all at the paths they have here. The entry points do as those of the official
images of MySQL and PostgreSQL.
"""

from __future__ import annotations

import io
import re
import resource
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

TOOLS: Final = ("/bin/sh", "cat", "chown", "cp", "du", "id", "mkdir", "setpriv", "sync")
LIBRARY: Final = re.compile(r"(/\S+) \(0x")
USERS: Final = "root:x:0:0::/:/bin/sh\n{0}:x:999:999::/:/bin/sh\n"
AS_ITS_USER: Final = """#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$DATA"
    chown -R {0}:{0} "$DATA"
    exec setpriv --reuid={0} --regid={0} --clear-groups "$0" "$@"
fi
"""
ENTRY_POINTS: Final = {
    "mysql": """
set -- mysqld --datadir="$DATA" --socket=/tmp/s --pid-file=/tmp/p --secure-file-priv= "$@"
if ! [ -d "$DATA/mysql" ]; then
    "$@" --initialize-insecure
    {
        echo "CREATE USER 'root'@'$MYSQL_ROOT_HOST' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';"
        echo "GRANT ALL ON *.* TO 'root'@'$MYSQL_ROOT_HOST' WITH GRANT OPTION;"
    } > /tmp/first.sql
    set -- "$@" --init-file=/tmp/first.sql
fi
exec "$@"
""",
    "postgres": """
if ! [ -f "$PGDATA/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password $POSTGRES_INITDB_ARGS
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
fi
exec postgres "$@"
""",
}


def configured(folder: Path) -> dict[str, str]:
    """Podman's environment for a store of its own, within the limits of a confined root."""
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/graph"\n'
    )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""  # crun refuses hybrid cgroups
    (folder / "containers.conf").write_text(
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\n'
        f'[engine]\ncgroup_manager = "cgroupfs"\nlock_type = "file"\ntmp_dir = "{folder}/tmp"\n'
        f"{runtime}"
    )
    return {
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }


def reference_of(product: str, volume: str, program: Path, home: Path) -> str:
    """Build the image of a server and name it; its programs are in `home`, beside `program`."""
    name = f"localhost/dbdyno-test-{product}"
    changes = (
        f"VOLUME {volume}",
        f"ENV DATA={volume}",
        f"ENV PATH={program.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        'ENTRYPOINT ["/entry-point"]',
        f'CMD ["{program.name}"]' if product == "postgres" else "CMD []",
    )
    options = [word for change in changes for word in ("--change", change)]
    command = ["podman", "import", "--quiet", *options, "-", f"{name}:latest"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importing:
        assert importing.stdin
        with tarfile.open(fileobj=importing.stdin, mode="w|", dereference=True) as image:
            _fill(image, product, home)
    assert importing.returncode == 0
    inspect = ["podman", "image", "inspect", "--format", "{{.Digest}}", name]
    digest = subprocess.run(inspect, check=True, capture_output=True, text=True).stdout.strip()
    return f"container:{name}@{digest}"


def _fill(image: tarfile.TarFile, product: str, home: Path) -> None:
    image.add(home)
    programs = [Path(shutil.which(tool) or tool) for tool in TOOLS]
    own = [path for path in home.glob("*bin/*") if path.stat().st_mode & 0o100]
    libraries = {path for program in (*programs, *own) for path in _libraries(program)}
    for path in (*programs, *sorted(libraries)):
        if home not in path.parents:
            image.add(path)
    entry_point = AS_ITS_USER.format(product) + ENTRY_POINTS[product]
    texts = {
        "entry-point": entry_point,
        "etc/passwd": USERS.format(product),
        "etc/group": f"root:x:0:\n{product}:x:999:\n",
    }
    for name, text in texts.items():
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(text.encode()), 0o755
        image.addfile(member, io.BytesIO(text.encode()))
    temporary = tarfile.TarInfo("tmp")
    temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
    image.addfile(temporary)


def _libraries(program: Path) -> list[Path]:
    """Files that a program loads; none for scripts."""
    listed = subprocess.run(["ldd", program], check=False, capture_output=True, text=True).stdout
    return [Path(path) for path in LIBRARY.findall(listed)]
