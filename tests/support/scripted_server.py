"""Shell scripts in the place of server processes, and a connection that answers from a table."""

import subprocess
from contextlib import contextmanager

from dbdyno.errors import ServerError


@contextmanager
def scripted():
    """Starts scripts; one that prints is waited for until it has. All are ended afterwards."""
    running = []

    def start(script):
        started = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE)
        running.append(started)
        if "echo" in script:
            started.stdout.readline()
        return started

    yield start
    for started in running:
        with started:
            started.kill()


class FakeClient:
    """Answers SQL from `answers`, without a row where it has none, and notes what was asked."""

    label, answer_s_max = "fake", 60.0

    def __init__(self, answers=(), ready=True, database=""):
        self.answers, self.ready, self.database = answers, ready, database
        self.asked, self.closed = [], False

    def try_login(self):
        return self.ready

    def login(self):
        if not self.ready:
            raise ServerError(f"{self.label}: the server opened no session")

    def ask(self, sql, shown_as=""):
        self.asked.append((self.database, sql))
        return dict(self.answers).get(sql, [])

    def is_answered(self):
        return self.ready

    def close(self):
        self.closed = True
