import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import ProvisionError
from dbdyno.servers import open
from dbdyno.servers.programs.sources import client, digest_of, fetched_file, run_client

DIGEST_OF_CODE = "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b"


def test_what_a_client_prints_is_handed_on_and_runs_where_it_is_told(tmp_path):
    said = run_client(["/bin/sh", "-c", "pwd; echo $OWN"], "asking", tmp_path, {"OWN": "word"})
    assert said.split() == [str(tmp_path), "word"]


def test_a_failing_client_is_quoted_with_its_last_lines(tmp_path):
    command = ["/bin/sh", "-c", "seq 20; echo '[ERROR] no such thing' >&2; exit 3"]
    with pytest.raises(ProvisionError, match="could not fetch it \\(exit 3\\)") as caught:
        run_client(command, "sh could not fetch it", tmp_path)
    lines = (caught.value.found or "").split()
    assert "14" in lines
    assert "13" not in lines
    assert "[ERROR] no such thing" in (caught.value.found or "")
    assert "settings of sh" in (caught.value.hint or "")


def test_a_client_that_hangs_is_given_up(tmp_path):
    with pytest.raises(ProvisionError, match=r"longer than 0\.3 s"):
        run_client(["/bin/sleep", "30"], "sleeping", tmp_path, limit_s=0.3)


def test_a_client_beside_python_is_preferred_and_a_missing_one_keeps_its_name():
    assert client("python3") == str(Path(sys.executable).parent / "python3")
    assert client("no-such-client") == "no-such-client"


def test_a_wrong_digest_names_both(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"code")
    assert fetched_file(file, "g:a:1", DIGEST_OF_CODE, "again") == file
    with pytest.raises(ProvisionError, match="g:a:1 is not the file") as caught:
        fetched_file(file, "g:a:1", "0" * 64, "again")
    assert caught.value.wanted == f"sha256 {'0' * 64}"
    assert caught.value.found == f"sha256 {DIGEST_OF_CODE}"
    assert caught.value.hint == "again"
    assert digest_of(file) == DIGEST_OF_CODE


def test_a_file_that_did_not_come_is_told(tmp_path):
    with pytest.raises(ProvisionError, match="there is no file"):
        fetched_file(tmp_path / "file", "g:a:1", DIGEST_OF_CODE, "again")


def test_the_client_dies_with_a_killed_lab(tmp_path):
    note = tmp_path / "pid"
    lab = textwrap.dedent(
        f"""
        from pathlib import Path
        from dbdyno.servers.programs.sources import run_client
        run_client(["/bin/sh", "-c", "echo $$ > {note}; exec sleep 600"], "x", Path("/"))
        """
    )
    paths = {"PYTHONPATH": str(Path(open.__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", lab], env={**os.environ, **paths}) as running:
        limit = time.monotonic() + 20
        while not note.is_file() or not note.read_text():
            assert running.poll() is None, "the lab ended before its client began"
            assert time.monotonic() < limit
            time.sleep(0.02)
        pid = int(note.read_text())
        running.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < limit, "the client outlived its lab"
        time.sleep(0.02)
