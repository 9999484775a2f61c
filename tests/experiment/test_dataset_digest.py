"""The digest is of every table's rows and sum, asked for in pieces; it is kept and read back."""

import pytest

from dbdyno.errors import ServerError
from dbdyno.experiment import dataset as experiment_dataset
from dbdyno.experiment.dataset import FILE, keep, kept, take, taken_or_empty
from dbdyno.plan.plan import DatasetPlan
from support import making


class Server:
    """Answers each question with the next of the rows it was given."""

    database = "sbtest"

    def __init__(self, *rows):
        self.rows, self.asked = list(rows), []

    def ask(self, sql):
        self.asked.append(sql)
        if not self.rows:
            raise ServerError("gone")
        return [self.rows.pop(0)]


def plan(**dataset):
    return making.plan().model_copy(update={"dataset": DatasetPlan(**dataset)})


def test_equal_rows_have_one_digest_and_one_row_changes_it():
    two = plan(tables=2, rows=1000)
    digests = [
        experiment_dataset.take(two, Server(("1000", "77"), ("1000", last)))
        for last in ("88", "88", "89")
    ]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == experiment_dataset.SHOWN


def test_large_tables_are_asked_for_in_pieces_that_are_added_up(monkeypatch):
    monkeypatch.setattr(experiment_dataset, "PIECE_ROWS", 400)
    server = Server(("400", "5"), ("400", "6"), ("200", "7"))
    pieces = experiment_dataset.take(plan(tables=1, rows=1000), server)
    assert [sql.partition("BETWEEN")[2] for sql in server.asked] == [
        " 1 AND 400",
        " 401 AND 800",
        " 801 AND 1200",
    ]
    monkeypatch.setattr(experiment_dataset, "PIECE_ROWS", 1000)
    assert take(plan(tables=1, rows=1000), Server(("1000", "18"))) == pieces


def test_tables_are_those_of_the_layout():
    server = Server(("10", "1"))
    take(plan(layout="legacy_one", tables=1, rows=10), server)
    assert "FROM `sbtest`.`sbtest` WHERE" in server.asked[0]


def test_it_is_kept_beside_the_snapshot(tmp_path):
    folder = tmp_path / "instance"
    assert kept(folder) == ""
    keep(folder, "abc")
    assert kept(folder) == "abc"
    (folder / FILE).write_text("[1]")
    assert kept(folder) == ""


def test_a_server_that_does_not_answer_leaves_it_open():
    assert taken_or_empty(plan(tables=1, rows=10), Server()) == ""
    with pytest.raises(ServerError):
        take(plan(tables=1, rows=10), Server())
