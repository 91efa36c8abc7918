"""Runs that are under way are moved to the newest version of their definition, many at once."""

from conductor_app.engine.operations import Operation, apply_operation
from tests.insight.situations import define, now_of, started, step, work


def test_a_run_goes_on_by_the_newest_version_from_where_it_stands(clock, db):
    run = started(step("charge"), step("pack"))
    define("order", step("charge"), step("ship"), version=2)

    apply_operation(run.pk, Operation("upgrade", reason="the carrier has changed"), "olga")
    work("charge")
    work("ship")

    assert (now_of(run).version, now_of(run).status) == (2, "COMPLETED")
