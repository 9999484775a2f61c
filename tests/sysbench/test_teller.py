"""What is said while a run goes on; whole texts are in test_running."""

import json

from dbdyno.sysbench.commands import Teller
from dbdyno.sysbench.console import Output
from dbdyno.sysbench.options.table import GLOBAL_TABLE
from dbdyno.sysbench.options.values import Values
from dbdyno.sysbench.request import General
from support.made_intervals import interval, news


def teller(rows=None, **typed):
    options = {name.replace("_", "-"): value for name, value in typed.items()}
    general = General.of(Values(GLOBAL_TABLE, options))
    teller = Teller(general, Output(3), rows)

    def tell(start_s, end_s, phase="measured", latencies_ms=(1,)):
        one = interval(start_s, end_s, [*latencies_ms], phase)
        teller.tell(json.dumps(news(one, general.spec())))

    return teller, tell


def test_the_load_s_begin_is_said_once(capsys):
    one, tell = teller()
    assert one.begun_at is None
    tell(0.0, 0.0, latencies_ms=())
    begun_at = one.begun_at
    tell(0.0, 60.0)
    one.started()
    assert capsys.readouterr().out == "Threads started!\n\n"
    assert begun_at == one.begun_at


def test_intervals_shorter_than_a_second_have_their_lines(capsys):
    _, tell = teller(report_interval="0.25")
    for number in range(4):
        tell(number / 4, (number + 1) / 4)
    tell(1.0, 1.1)
    moments = [line.split(" thds")[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert moments == ["[ 0.25s ]", "[ 0.50s ]", "[ 0.75s ]", "[ 1.00s ]"]


def test_the_first_line_after_a_warm_up_knows_nothing_of_it(capsys):
    _, tell = teller(report_interval="1", warmup_time="2")
    tell(0.0, 2.0, "warmup", [1] * 100)
    tell(2.0, 3.0)
    tell(3.0, 3.1, "drain")
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("["))
    assert line.startswith("[ 1s ] thds: 1 tps: 1.00 ")


def test_rows_come_whole_and_as_the_intervals_end():
    rows = []
    _, tell = teller(
        lambda totals, stretch: rows.append((totals.events, stretch.at_s)),
        output="csv",
        report_interval="2",
        report_checkpoints="1",
    )
    for number in range(5):
        tell(float(number), number + 1.0)
    assert rows == [(2, 2.0), (2, 4.0)]


def test_a_checkpoint_at_the_end_is_the_final_report(capsys):
    one, tell = teller(report_checkpoints="1,2", time="2")
    tell(0.0, 1.0)
    tell(1.0, 2.0)
    assert one.checkpoint_s == 1
    assert capsys.readouterr().out.count("Checkpoint report:") == 1
