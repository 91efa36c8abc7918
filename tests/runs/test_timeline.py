"""Timeline: attempts as segments, in percent of the run's duration."""

from conductor_app.definitions.durations import TypicalDuration
from conductor_app.runs.models import Attempt, Task
from conductor_app.runs.timeline.queries import segments_of, task_row
from conductor_app.utils.time_scale import TimeScale


def attempt(type="HUMAN", **facts):
    moments = {"scheduled_at": 0, "visible_at": 0, "pending_since": 0}
    return Attempt(
        id="a", number=0, seq=1, **{"status": "COMPLETED", "queue": "ship", "task": Task(type=type), **moments, **facts}
    )


def segments(attempt, *, end=100, now=100):
    return [(s.kind, s.left, s.width) for s in segments_of(attempt, TimeScale(0, end), now)]


def test_an_attempt_that_waited_and_ran_is_two_segments():
    assert segments(attempt(started_at=40, ended_at=100)) == [
        ("wait", "0.00%", "40.00%"),
        ("work", "40.00%", "60.00%"),
    ]


def test_a_retry_delay_is_not_counted_as_queue_time():
    delayed = attempt(visible_at=50, started_at=60, ended_at=100)

    assert [kind for kind, *_ in segments(delayed)] == ["delay", "wait", "work"]


def test_the_bar_of_an_open_attempt_ends_now():
    assert segments(attempt(status="LEASED", started_at=50), now=75, end=75) == [
        ("wait", "0.00%", "66.67%"),
        ("work", "66.67%", "33.33%"),
    ]


def test_a_zero_duration_has_a_visible_bar_inside_the_chart():
    assert segments(attempt(scheduled_at=100, visible_at=100, started_at=100, ended_at=100)) == [
        ("work", "99.65%", "0.35%")
    ]


def test_times_outside_the_run_are_drawn_at_the_edges():
    out_of_range = attempt(scheduled_at=-50, visible_at=-50, started_at=-50, ended_at=500)

    assert segments(out_of_range) == [("work", "0.00%", "100.00%")]


def test_the_axis_is_marked_at_round_spans():
    assert [tick.label for tick in TimeScale(0, 24_000).ticks()] == ["0", "5 s", "10 s", "15 s", "20 s"]
    assert [tick.label for tick in TimeScale(0, 160_000).ticks()] == ["0", "30 s", "1 min", "1 min 30 s", "2 min"]


def test_a_span_of_years_still_has_few_marks():
    assert len(TimeScale(0, 10**12).ticks()) <= 6


def test_a_task_without_a_worker_is_held_and_never_queued():
    human = attempt(queue="", started_at=0, ended_at=80)

    assert segments(human) == [("hold", "0.00%", "80.00%")]


def test_a_step_that_the_engine_completes_at_once_is_work_and_no_wait():
    script = attempt("INLINE", queue="", started_at=0, ended_at=2)

    assert segments(script) == [("work", "0.00%", "2.00%")]


def test_a_typical_end_is_a_tick_at_the_median_if_the_chart_reaches_it():
    facts = {"started_at": 20, "ended_at": 100}

    def usual(p50):
        row = task_row(Task(), [attempt(**facts)], TimeScale(0, 100), 100, TypicalDuration(30, p50, 200))
        return row.usual and (row.usual.left, row.usual.width)

    assert usual(50) == ("70.00%", "0.35%")
    assert usual(90) is None, "the run ended before"


def test_a_reopened_join_is_not_held_while_its_run_is_closed():
    join = attempt("JOIN", queue="", started_at=70, ended_at=100)
    scale = TimeScale(0, 100, lives=((0, 20), (70, 100)))

    assert [(s.left, s.width) for s in segments_of(join, scale, 100)] == [("0.00%", "20.00%"), ("70.00%", "30.00%")]
