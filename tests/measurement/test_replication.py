"""Two readings of replication become the window's numbers."""

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.measurement import replication

BEGIN = {
    replication.REPLICAS_RUNNING: 2.0,
    replication.SEMISYNC_ON: 1.0,
    replication.COMMITS_ACKNOWLEDGED: 100.0,
    replication.COMMITS_NOT_ACKNOWLEDGED: 3.0,
    replication.TRANSACTIONS_BEHIND: 40.0,
    replication.TIMEOUT_S: 10.0,
}


def test_counts_are_growth_and_states_are_the_worse_edge():
    end = {
        replication.REPLICAS_RUNNING: 1.0,
        replication.SEMISYNC_ON: 1.0,
        replication.COMMITS_ACKNOWLEDGED: 350.0,
        replication.COMMITS_NOT_ACKNOWLEDGED: 3.0,
        replication.TRANSACTIONS_BEHIND: 5.0,
        replication.TIMEOUT_S: 60.0,
    }
    assert replication.over_window(BEGIN, end) == {
        replication.REPLICAS_RUNNING: 1.0,
        replication.SEMISYNC_ON: 1.0,
        replication.COMMITS_ACKNOWLEDGED: 250.0,
        replication.COMMITS_NOT_ACKNOWLEDGED: 0.0,
        replication.TRANSACTIONS_BEHIND: 5.0,
        replication.TIMEOUT_S: 60.0,
    }


def test_without_both_readings_nothing_is_said():
    assert replication.over_window({}, BEGIN) == {}
    assert replication.over_window(BEGIN, {}) == {}
    assert replication.over_window(BEGIN, {replication.SEMISYNC_ON: 0.0}) == {
        replication.SEMISYNC_ON: 0.0
    }


READINGS = st.dictionaries(
    st.sampled_from(list(replication.EDGES)), st.floats(0, 1e12, allow_nan=False)
)


@given(READINGS)
def test_a_window_in_which_nothing_happens_counts_nothing_and_keeps_states(reading):
    window = replication.over_window(reading, reading)
    assert set(window) == set(reading)
    for name, value in window.items():
        assert value == (0 if replication.EDGES[name] == "growth" else reading[name])
