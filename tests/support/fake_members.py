"""Servers that answer from a table and write down what they were asked."""

from dbdyno.errors import ServerError
from dbdyno.servers.base import Credentials, Endpoint

FOLLOWS = ["", *[""] * 9, "Yes", "Yes", *[""] * 30]
STOPPED = ["", *[""] * 9, "Connecting", "Yes", *[""] * 23, "cannot reach the primary", *[""] * 6]


class FakeMember:
    """Answers a question by the first key of `answers` that stands in it; else with no row."""

    driver, database = "mysql", "sbtest"
    credentials = Credentials("load", "secret-4711")

    def __init__(self, label, answers=(), port=3307):
        self.label, self.answers = label, dict(answers)
        self.pid = 2**22 + port  # above any process's number: its CPU time is none
        self.endpoint = Endpoint("127.0.0.1", port, None)
        self.asked, self.living, self.stops, self.kills = [], True, 0, 0

    def ask(self, sql):
        self.asked.append(sql)
        for key, answer in self.answers.items():
            if key in sql:
                if isinstance(answer, ServerError):
                    raise answer
                return answer(sql) if callable(answer) else answer
        return []

    def version(self):
        return "8.0.33"

    def settings(self):
        return {"server_id": "1"}

    def status(self):
        return {
            name: float(value)
            for name, value in self.answers.get("SHOW GLOBAL STATUS", [])
            if value.isdigit()
        }

    def alive(self):
        return self.living

    def last_words(self):
        return f"[ERROR] of {self.label}"

    def stop(self, patience_s=60.0):
        self.stops += 1
        if not self.living:
            raise ServerError(f"{self.label}: had died")
        self.living = False

    def kill(self):
        self.kills += 1
        self.living = False
