"""The supervisor with a server that only sleeps: what it does is told by the server's label.

Run as a script in place of `dbdyno.servers.kept.supervisor`, so that what surrounds a kept server
is proved with real processes and locks in milliseconds.
"""

import subprocess
import sys
from pathlib import Path

from dbdyno.errors import ServerError, UsageError
from dbdyno.servers.base import MYSQL, Credentials, Endpoint
from dbdyno.servers.kept import supervisor


class Server:
    driver = MYSQL
    endpoint = Endpoint("127.0.0.1", 3307, None)
    credentials = Credentials("dbdyno", "secret-4711")
    database = "sbtest"

    def __init__(self):
        self.process = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
        self.pid = self.process.pid

    def version(self):
        return "8.0.15"

    def alive(self):
        return self.process.poll() is None

    def last_words(self):
        return "it began\n[ERROR] got signal 9\n"


class Instance:
    def __init__(self, spec, folder, report):
        self.spec, self.folder, self.server = spec, folder, None
        report(f"laying out {spec.reference} with {dict(spec.settings)}")
        if spec.label == "odd":
            raise UsageError("it cannot be", wanted="something else")

    def start(self):
        if self.spec.label == "broken":
            raise ServerError("it does not start", found="exit 1", hint="try again")
        if self.spec.label == "silent":
            sys.exit("no word of it")
        self.server = Server()
        return self.server

    def close(self):
        if self.server is not None:
            self.server.process.kill()
            self.server.process.wait()


class Servers:
    instance = Instance

    @staticmethod
    def pinned(reference, report):
        return reference

    @staticmethod
    def programs(reference):
        return None


if __name__ == "__main__":
    supervisor.open = Servers  # type: ignore[attr-defined, assignment]
    supervisor.detached(Path(sys.argv[1]))
