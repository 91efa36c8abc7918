"""Scale of a timeline: idle times are collapsed."""

from conductor_app.utils.time_scale import TimeScale, collapse_idle, idle_stretches, merge_stretches

MINUTE = 60_000


def collapsed(*busy, begin=0, end=12 * MINUTE):
    return collapse_idle(TimeScale(begin, end), busy)


def test_a_long_idle_time_takes_little_of_the_width():
    scale = collapsed((0, MINUTE), (11 * MINUTE, 12 * MINUTE))

    assert scale.gaps == ((MINUTE, 11 * MINUTE),)
    assert round(scale.percent_of(MINUTE)) == 47 and round(scale.percent_of(11 * MINUTE)) == 53
    assert (scale.percent_of(0), scale.percent_of(12 * MINUTE)) == (0, 100)
    assert [gap.label for gap in scale.axis_gaps()] == ["10 min"]


def test_a_short_idle_time_is_drawn_to_scale():
    assert collapsed((0, 6 * MINUTE), (6 * MINUTE + 9_000, 12 * MINUTE)).gaps == ()


def test_times_that_overlap_are_busy_together():
    assert idle_stretches(TimeScale(0, 100), [(10, 40), (30, 60), (90, 200)]) == [(0, 10), (60, 90)]


def test_a_run_without_work_is_not_collapsed():
    assert collapsed().gaps == ()


def test_at_most_eight_idle_times_are_collapsed_and_those_are_the_longest():
    busy = [(number * 10 * MINUTE + number, number * 10 * MINUTE + number + 1) for number in range(12)]
    scale = collapsed(*busy, end=120 * MINUTE)

    assert len(scale.gaps) == 8 and scale.percent_of(scale.end) == 100


def test_a_position_has_the_time_that_is_drawn_there():
    scale = collapsed((0, MINUTE), (11 * MINUTE, 12 * MINUTE))

    for moment in (0, 30_000, MINUTE, 5 * MINUTE, 11 * MINUTE, 11 * MINUTE + 1, 12 * MINUTE):
        assert abs(scale.moment_at(scale.percent_of(moment)) - moment) <= 1


def test_no_tick_is_in_a_gap():
    scale = collapsed((0, MINUTE), (11 * MINUTE, 12 * MINUTE))

    assert [tick.label for tick in scale.ticks()] == ["0", "30 s", "1 min", "11 min 30 s"]


def test_the_axis_has_its_0_even_if_the_first_time_is_collapsed():
    scale = collapsed((11 * MINUTE, 12 * MINUTE))

    assert scale.ticks()[0].label == "0"


def test_times_close_together_become_one():
    assert merge_stretches([(5, 6), (0, 2), (3, 4)], tolerance=1) == [(0, 6)]


def test_no_label_of_the_axis_is_repeated_or_covers_the_next_one():
    second = 12 * MINUTE + 25_100
    scale = collapsed((0, 152), (second, second + 129), end=second + 129)
    ticks = scale.ticks()

    assert [tick.label for tick in ticks] == ["0", "50 ms", "100 ms", "150 ms", "12 min 25 s"]
