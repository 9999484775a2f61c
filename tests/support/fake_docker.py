"""Docker's command line over plain processes and folders, for tests where there is no docker.

``$FAKE_DOCKER`` is its folder: volumes, containers, `proc` with the control group of each process,
and `calls.jsonl`, every command with what its file of environment held. A container sleeps until
it is stopped; with ``$FAKE_DOCKER_SERVER`` it is that server, set up as the entry points of the
images of MySQL, MariaDB and PostgreSQL do it.

A test calls it dozens of times, without a process of its own (`docker_on_path`); where one is
needed, what few commands need is imported there.
"""

import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("FAKE_DOCKER", "."))
SLEEPS = "trap 'kill $! 2> /dev/null; exit 0' TERM; : > ready; sleep 30 & wait"
RUNS = (
    '("$@" & exec 2> /dev/null;'  # a shell names the signal that ends its child
    " echo 0::/docker/{1} > {0}/cgroup; ln -sfn {0} {2}/$!; echo $! > {0}/pid;"
    " wait $!; code=$?; rm -f {0}/cgroup; echo $code > {0}/exit) &"
)
SETS_UP_POSTGRES = (
    'initdb --username="$POSTGRES_USER" --pwfile="$PWFILE" $POSTGRES_INITDB_ARGS &&'
    ' echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf" &&'
    ' sleep 0.5 && exec postgres "$@"'  # meanwhile the image's temporary server runs, on no port
)


def after(words, option):
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def fail(text):
    sys.stderr.write(f"{text}\n")
    sys.exit(1)


def running(place):
    try:
        os.kill(int((place / "pid").read_text()), 0)
    except (OSError, ValueError):
        return False
    return not (place / "exit").exists()


def wait_for(true):
    ends = time.monotonic() + 60
    while not true():
        if time.monotonic() > ends:
            fail("it took too long")
        time.sleep(0.02)


def mounted(words):
    pairs = [mount.split(":")[:2] for mount in after(words, "--volume")]
    return {target: ROOT / "volumes" / volume for volume, target in pairs}


def volume(action, *words):
    place = ROOT / "volumes" / words[-1]
    if action == "create":
        if place.is_dir():  # docker would take it as it is
            fail("volume already exists, says podman")
        place.mkdir(parents=True)
    elif action == "rm":
        import shutil

        shutil.rmtree(place, ignore_errors=True)
    elif not place.is_dir():
        fail("no such volume")


def run(*words):
    if words[-1].endswith("--version"):
        sys.stdout.write((ROOT / "says").read_text())
        return
    mounts = mounted(words)
    if words[-1].startswith("du -sk /from/"):
        for folder in mounts["/from"].glob(words[-1].removeprefix("du -sk /from/")):
            sizes = [path.stat().st_size for path in folder.rglob("*")]
            sys.stdout.write(f"{sum(sizes) // 1024}\t{folder}\n")
        return
    import subprocess

    subprocess.run(["cp", "-a", f"{mounts['/from']}/.", mounts["/to"]], check=True)


def create(*words):
    name = f"id{time.monotonic_ns()}"
    place = ROOT / "containers" / name
    place.mkdir(parents=True)
    environment = Path(after(words, "--env-file")[0]).read_text()
    about = {"words": words, "environment": environment, "labels": after(words, "--label")}
    (place / "about.json").write_text(json.dumps(about))
    sys.stdout.write(f"{name}\n")


def start(name):
    import socket
    import subprocess

    place = ROOT / "containers" / name
    about = json.loads((place / "about.json").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (place / "port").write_text(str(port))
    program, more = os.environ.get("FAKE_DOCKER_SERVER"), {}
    if program is None:
        command = ["sh", "-c", SLEEPS]
    elif Path(program).name == "postgres":
        command, more = postgres(place, about, program, port)
    else:
        command = server(place, about, program, port)
    (ROOT / "proc").mkdir(exist_ok=True)
    (place / "ready").unlink(missing_ok=True)
    with (place / "log").open("w") as log:
        subprocess.run(
            ["sh", "-c", RUNS.format(place, name, ROOT / "proc"), "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=place,  # which every user may enter
            env={**os.environ, **more},
            check=True,
        )
    wait_for(lambda: (place / "pid").exists() and (place / "pid").read_text().strip())
    if program is None:
        wait_for((place / "ready").exists)  # stopped before its trap it would end by the signal


def server(place, about, program, port):
    """The command of a real server on the volume, initialised first if that is empty."""
    import shutil
    import subprocess

    words = about["words"]
    (data,) = mounted(words).values()
    base = Path(program).parent.parent
    share = base / "share"
    common = [
        *(program, "--no-defaults", "--user=nobody", f"--datadir={data}", f"--basedir={base}"),
        *(f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets"),
        *(f"--socket={data}/s", f"--pid-file={data}/p", "--secure-file-priv="),
    ]
    given = [word for word in words[words.index("--env-file") + 3 :] if word[:11] != "--init-file"]
    first = place / "rootfs" / "dbdyno.sql"
    if not any(data.iterdir()):
        if os.geteuid() == 0:
            shutil.chown(data, "nobody")
        subprocess.run([*common, "--initialize-insecure", *given], check=True, stderr=2)
        password = about["environment"].split("MYSQL_ROOT_PASSWORD=")[1].split("\n")[0]
        first.parent.mkdir()
        first.write_text(
            f"CREATE USER 'root'@'%' IDENTIFIED BY '{password}';\n"
            "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n"
        )
    first.chmod(0o644)
    return [*common, *given, f"--port={port}", "--bind-address=127.0.0.1", f"--init-file={first}"]


def postgres(place, about, program, port):
    """The command of a real PostgreSQL on the volume, and what it finds in its environment."""
    import shutil

    words = about["words"]
    ((mount, volume),) = mounted(words).items()
    more = dict(line.split("=", 1) for line in about["environment"].splitlines())
    data = volume / Path(more["PGDATA"]).relative_to(mount)
    password = place / "password"
    password.write_text(more.pop("POSTGRES_PASSWORD", ""))
    more |= {"PGDATA": str(data), "PWFILE": str(password)}
    more["PATH"] = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"
    (image,) = [number for number, word in enumerate(words) if "@sha256:" in word]
    given, script = list(words[image + 1 :]), SETS_UP_POSTGRES
    if "--entrypoint" in words:
        _, script, _, *given = given
        script = script.replace("/dbdyno.sql", str(place / "rootfs" / "dbdyno.sql"))
    here = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories="]
    given += [word for setting in here for word in ("-c", setting)]
    alone = []
    if os.geteuid() == 0:
        shutil.chown(volume, "nobody")
        alone = ["setpriv", "--reuid=nobody", "--clear-groups"]
    return [*alone, "sh", "-c", script, "sh", *given], more


def stop(*words):
    import signal

    place = ROOT / "containers" / words[-1]
    if not running(place):
        return
    asked = after(json.loads((place / "about.json").read_text())["words"], "--stop-signal")
    if not asked or "FAKE_DOCKER_SERVER" not in os.environ:
        asked = ["SIGTERM"]  # a shell in the background cannot wait for SIGINT
    os.kill(int((place / "pid").read_text()), signal.Signals[asked[0]])
    wait_for((place / "exit").exists)


def inspect(*words):
    place = ROOT / "containers" / words[-1]
    if not place.is_dir():
        fail("no such container")
    if "Pid" in words[1]:
        said = (place / "pid").read_text().strip()
    elif "Running" in words[1]:
        said = str(running(place)).lower()
    else:
        said = (place / "exit").read_text().strip()
    sys.stdout.write(f"{said}\n")


def rm(*words):
    import shutil
    import signal

    place = ROOT / "containers" / words[-1]
    if not place.is_dir():
        fail("no such container")
    if running(place):
        os.kill(int((place / "pid").read_text()), signal.SIGKILL)
        wait_for((place / "exit").exists)
    shutil.rmtree(place)


def ps(*words):
    label = words[-1].removeprefix("label=")
    for place in (ROOT / "containers").glob("*"):
        if label in json.loads((place / "about.json").read_text())["labels"]:
            sys.stdout.write(f"{place.name}\n")


def cp(source, target):
    import shutil

    name, _, path = target.partition(":")
    place = ROOT / "containers" / name / "rootfs"
    place.mkdir()
    shutil.copy(source, place / path.lstrip("/"))


def image(*words):
    if not (ROOT / "pulled").exists():
        fail("no such image")
    sys.stdout.write((ROOT / "pulled").read_text())


def pull(name):
    (ROOT / "pulled").write_text('{"/var/lib/mysql": {}}')


def port(name, inner):
    sys.stdout.write(f"127.0.0.1:{(ROOT / 'containers' / name / 'port').read_text()}\n")


def logs(*words):
    sys.stdout.write((ROOT / "containers" / words[-1] / "log").read_text())


def version():
    if (ROOT / "broken").exists():
        fail("Cannot connect to the Docker daemon")


def main(words):
    with (ROOT / "calls.jsonl").open("a") as calls:
        calls.write(f"{json.dumps(words)}\n")
    globals()[words[0]](*words[1:])
