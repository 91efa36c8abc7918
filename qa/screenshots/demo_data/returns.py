"""Goods come back: runs of a week, begun and worked off at moments that are past."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conductor_app.core.decide import Report
from conductor_app.definitions import commands as definition_commands
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.utils import clock
from conductor_app.utils.formatting import DAY, HOUR, MINUTE

RETURN = "return_intake"
REFUSALS = (
    "502 from payments-3: upstream timed out after 30000 ms",
    "Account 88231 is closed; the refund cannot be sent",
    "KeyError: 'iban' in refund.py, line 118",
)
POLICIES: dict[str, dict[str, Any]] = {
    "collect_return": {"description": "Collect a parcel from the customer.", "retryCount": 2},
    "inspect_goods": {"description": "Inspect the returned goods.", "retryCount": 1, "concurrentExecLimit": 2},
    "refund_customer": {"description": "Refund the customer.", "retryCount": 0, "sideEffects": "external"},
}
WORKERS = {"refund_customer": ("pay-1@41", "pay-2@42")}
PERSON = {
    "displayName": "Approve a refund",
    "question": "The goods are damaged. Approve the refund?",
    "assignments": [{"assignee": {"userType": "CONDUCTOR_USER", "user": "olga"}, "slaMinutes": 240}],
}


@contextmanager
def freeze_time_at(moment: int) -> Iterator[None]:
    """Freeze the clock at the moment."""
    source, clock._source = clock._source, lambda: moment * 1_000_000
    try:
        yield
    finally:
        clock._source = source


def create_returns(now: int) -> None:
    """Create the returns of each hour, today and a week ago. Since noon, they use the second version."""
    with freeze_time_at(now - 8 * DAY):
        register_definition(1, "first release")
    for hour in range(24, 0, -1):
        if hour == 12:
            with freeze_time_at(now - hour * HOUR):
                register_definition(2, "Approval for expensive returns (SHOP-812)")
        for week in (7 * DAY, 0):
            for number in range(1 + hour * 5 % 4):
                create_return(now - week - hour * HOUR + number * 13 * MINUTE, may_fail=not week)


def register_definition(version: int, reason: str) -> None:
    """Register the workflow for returns. The second version adds a human approval for expensive items."""
    common = {"ownerEmail": "returns@example.com", "timeoutSeconds": 7200, "responseTimeoutSeconds": 3600}
    for name, policy in POLICIES.items():
        definition_commands.save_task({"name": name, **common, **policy}, "ann", reason=reason)
    document = {
        "name": RETURN,
        "version": version,
        "description": "Collects a return, inspects the goods and refunds the customer.",
        "ownerEmail": "returns@example.com",
        "inputParameters": ["order", "total", "expensive"],
        "tasks": steps(version),
        "outputParameters": {"refund": "${refund_customer.output.refund}"},
    }
    definition_commands.save_workflow(document, "ann", overwrite=True, reason=reason)


def steps(version: int) -> list[dict[str, Any]]:
    order, total = "${workflow.input.order}", "${workflow.input.total}"
    looked = {"total": total, "verdict": "${inspect_goods.output.verdict}"}
    approval = step("approve_refund", "HUMAN", __humanTaskDefinition=PERSON, **looked)
    cases = {"evaluatorType": "value-param", "expression": "expensive", "decisionCases": {"yes": [approval]}}
    decision = step("is_expensive", "SWITCH", expensive="${workflow.input.expensive}") | cases | {"defaultCase": []}
    return [
        step("collect_return", order=order),
        step("inspect_goods", order=order, label="${collect_return.output.label}"),
        *([decision] if version == 2 else []),
        step("refund_customer", **looked),
    ]


def step(ref: str, type: str = "SIMPLE", **inputs: Any) -> dict[str, Any]:
    return {"name": ref, "taskReferenceName": ref, "type": type, "inputParameters": inputs}


def create_return(begins: int, may_fail: bool) -> None:
    """Create one return, from its receipt to the refund, which can fail."""
    mixed = begins // (13 * MINUTE) * 31
    start_return(begins, mixed)
    begins = work_on_task(begins + 800, "collect_return", 4_000 + mixed % 3_000, label=f"RL{mixed % 9999:04}")
    begins = work_on_task(
        begins + 400, "inspect_goods", 9_000 + mixed % 14_000, verdict="as new" if mixed % 3 else "worn"
    )
    reason = REFUSALS[mixed % 3] if may_fail and mixed % 7 in (2, 5) else ""
    work_on_task(begins + 300, "refund_customer", 1_200 + mixed % 900, reason, refund=f"RF-{mixed % 99999}")


def start_return(moment: int, mixed: int, expensive: bool = False) -> str:
    order = f"R-{mixed % 100_000:05}"
    given = {"order": order, "total": 20 + mixed % 180 + 400 * expensive, "expensive": "yes" if expensive else "no"}
    with freeze_time_at(moment):
        return start_run(StartRequest(RETURN, input=given, correlation_id=order, labels=("shop",)), "till-2")


def work_on_task(begins: int, queue: str, lasts: int, reason: str = "", **output: Any) -> int:
    """Claim the next task and report on it after `lasts` seconds. Return the moment of the report."""
    worker = WORKERS.get(queue, ("hall-1@7", "hall-2@7"))[1 if reason else begins % 2]
    with freeze_time_at(begins):
        [attempt] = claim_tasks(queue, worker=worker, wait_ms=0)
    with freeze_time_at(begins + lasts):
        lines = [(f"{queue} started", begins), (f"ERROR {reason}" if reason else "done", begins + lasts)]
        task_commands.add_logs(attempt.id, lines, begins)
        outcome = "FAILED" if reason else "COMPLETED"
        task_commands.report_task(attempt.run_id, attempt.id, Report(outcome, {} if reason else output, reason), worker)
    return begins + lasts
