from collections import Counter

from dbdyno.stats.draw import draw


def test_a_draw_is_the_same_in_every_version() -> None:
    assert draw(1, 0, "requests", "oltp_read_write/threads=8/default") == 12454784467177573259
    assert draw(1, "pilot") == draw("1", "pilot")


def test_draws_are_spread_evenly_and_differ_by_what_they_are_about() -> None:
    drawn = [draw(seed, "system") for seed in range(4000)]
    assert len(set(drawn)) == 4000
    assert all(0 <= one < 2**64 for one in drawn)
    assert all(400 < count < 600 for count in Counter(one >> 61 for one in drawn).values())
