"""Percentiles, intervals, checkpoints and formats: what is accepted and what it means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.sysbench.options.output import OutputOptions, Percentile, decimals, is_text_asked
from dbdyno.sysbench.options.values import Refusal
from support.sysbench import options


def of(**typed):
    return OutputOptions.of(options(**typed))


def percentiles(text):
    return [percentile.text for percentile in of(percentile=text).percentiles]


def test_percentiles_are_in_order_without_repeats():
    assert percentiles("95") == ["95"]
    assert percentiles("99.9,50, 95,99.90,+1") == ["1", "50", "95", "99.9"]
    assert percentiles("100,99.9999,0.0001") == ["0.0001", "99.9999", "100"]


def test_joined_percentiles_are_as_typed():
    options = of(**{"percentile": "99,99,99.9", "percentile-format": "joined"})
    assert [one.text for one in options.joined] == ["99", "99", "99.9"]
    assert [one.text for one in options.percentiles] == ["99", "99.9"]
    assert of(percentile="99").joined == ()


@pytest.mark.parametrize("text", ["0", "", None, "0,0.0"])
def test_zero_disables_percentiles(text):
    assert of(percentile=text).percentiles == ()


REFUSED = {
    ("percentile", "101"): "Invalid value for --percentile: 101",
    ("percentile", "-1"): "Invalid value for --percentile: -1",
    ("percentile", "50,0"): "Invalid value for --percentile: 0 disables them and stands alone.",
    ("percentile", "p99"): "Invalid value for the 'percentile' option: 'p99'",
    ("percentile", "nan"): "Invalid value for the 'percentile' option: 'nan'",
    ("percentile", "99.99999"): "Invalid value for the 'percentile' option: '99.99999'",
    ("report-interval", "-1"): "Invalid value for --report-interval: -1. It must be 0 or more.",
    ("report-interval", "0.001"): "Invalid value for --report-interval: 0.001. It must be 0 or",
    ("report-interval", "1s"): "Invalid value for the 'report_interval' option: '1s'",
    ("report-interval", "inf"): "Invalid value for the 'report_interval' option: 'inf'",
    ("report-checkpoints", "1,x"): "Invalid value for --report-checkpoints: 'x'",
    ("report-checkpoints", "0"): "Invalid value for --report-checkpoints: '0'",
    ("report-checkpoints", "1.5"): "Invalid value for --report-checkpoints: '1.5'",
    ("report-checkpoints", ",".join(str(n) for n in range(1, 258))): "Too many checkpoints",
    ("percentile-format", "fork"): "Invalid value for --percentile-format: 'fork'. It must be",
    ("output", "xml"): "Invalid value for --output: 'xml'. It must be one of text, json,",
    ("output-file", "/tmp/x"): "--output-file takes what --output=json, csv or hlog makes",
}


@pytest.mark.parametrize(("name", "raw"), REFUSED)
def test_what_is_out_of_range_is_refused(name, raw):
    with pytest.raises(Refusal) as refused:
        of(**{name: raw})
    assert REFUSED[name, raw] in refused.value.lines[0]


def test_intervals_may_be_shorter_than_a_second():
    assert of(report_interval="0.1").interval_s() == 0.1
    assert of(report_interval=".05").report_interval_s == 0.05
    assert of(report_interval="2.0").report_interval_s == 2


@pytest.mark.parametrize(
    ("interval", "checkpoints", "step_s"),
    [
        ("1", "", 1),
        ("1", "10,20", 1),
        ("10", "15,60", 5),
        ("0.3", "1", 0.1),
        ("0", "600,1200", 60),
        ("0", "90", 30),
        ("0", "", 60),
    ],
)
def test_a_step_divides_intervals_and_checkpoints(interval, checkpoints, step_s):
    assert of(report_interval=interval, report_checkpoints=checkpoints).step_s() == step_s


def test_formats_for_machines_have_a_row_each_second_unless_said_otherwise():
    assert [of(output=it).interval_s() for it in ("text", "json", "csv")] == [60, 1, 1]
    assert of(output="csv", report_interval="0.2").interval_s() == 0.2


def test_records_are_asked_for_only_where_they_are_needed():
    assert of(percentile="50,99.9").spec() == {"interval_s": 60, "percentiles": [50.0, 99.9]}
    assert "tell_records" not in of(report_interval="1", output="json").spec()
    assert of(report_checkpoints="5").spec()["tell_records"] is True
    assert of(output="csv").spec()["tell_records"] is True


@pytest.mark.parametrize(
    ("words", "is_text"),
    [
        ("oltp_read_only run", True),
        ("--output=json", False),
        ("--output=json --output=text", True),
        ("--output=csv --output_file=x.csv", True),
        ("--output", False),
    ],
)
def test_whose_stdout_it_is_shows_before_the_options_are_checked(words, is_text):
    assert is_text_asked(words.split()) == is_text


@given(st.integers(1, 6), st.integers(1, 999))
def test_a_time_is_exact_with_its_decimals(places, count):
    interval_s = count / 10**places
    assert float(f"{7 * interval_s:.{decimals(interval_s)}f}") == pytest.approx(7 * interval_s)


@given(st.floats(0.0001, 100.0).map(lambda percent: round(percent, 4)))
def test_a_percentile_is_read_back_from_its_name(percent):
    percentile = Percentile.of(percent)
    assert "e" not in percentile.text
    assert of(percentile=percentile.text).percentiles == (percentile,)


@given(st.text(max_size=8))
def test_any_text_is_percentiles_or_refused(text):
    try:
        percents, said = [one.percent for one in of(percentile=text).percentiles], ""
    except Refusal as refusal:
        percents, said = [0.0], refusal.lines[0]
    assert all(0 < percent <= 100 for percent in percents) or "percentile" in said
