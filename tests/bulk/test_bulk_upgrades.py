"""Runs that are under way are moved to the newest version of their definition, many at once."""

from conductor_app.runs.commands.plans import Operation, apply_operation
from tests.builders import simple
from tests.scenario import claim_and_report, define_workflow, reload_run, start_run_of


def test_an_upgraded_run_continues_at_its_position(clock, db):
    run = start_run_of(simple("charge"), simple("pack"))
    define_workflow("order", simple("charge"), simple("ship"), version=2)

    apply_operation(run.pk, Operation("upgrade", reason="the carrier has changed"), "olga")
    claim_and_report("charge")
    claim_and_report("ship")

    assert (reload_run(run).version, reload_run(run).status) == (2, "COMPLETED")
