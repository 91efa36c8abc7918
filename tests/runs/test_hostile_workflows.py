"""For any data in a running workflow, replies are never server errors and the workflow can be displayed."""

import pytest

from tests.builders import simple, step_of, wait

FORK = step_of(
    "FORK_JOIN_DYNAMIC",
    "fork",
    dynamicForkTasksParam="tasks",
    dynamicForkTasksInputParamName="inputs",
    inputParameters={"tasks": "${workflow.input.tasks}", "inputs": {}},
)
DYNAMIC = step_of("DYNAMIC", "dynamic", dynamicTaskNameParam="n", inputParameters={"n": "${workflow.input.n}"})
WAIT = wait("wait", duration="${workflow.input.d}")
START = step_of("START_WORKFLOW", "start", inputParameters={"startWorkflow": "${workflow.input}"})
SUB = step_of(
    "SUB_WORKFLOW",
    "sub",
    subWorkflowParam={"name": "${workflow.input.n}", "workflowDefinition": "${workflow.input.d}"},
)
HUGE = 10**18


def nested(levels):
    """Return an object nested to this depth."""
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def forked(**fields):
    """Return the input of a dynamic fork with one invalid task."""
    return [FORK, step_of("JOIN", "join")], {"tasks": [{"name": "a", "taskReferenceName": "b", **fields}]}


CASES = {
    "a name with a NUL": ([DYNAMIC], {"n": "a\0b"}),
    "a name that fits nowhere": ([DYNAMIC], {"n": "a" * 2000}),
    "a forked reference with a NUL": forked(name="a\0", taskReferenceName="b\0"),
    "a forked reference that fits nowhere": forked(name="a" * 3000, taskReferenceName="b" * 3000, type="c" * 3000),
    "forked fields of wrong types": forked(retryCount="x", startDelay="y", inputParameters=3, taskDefinition="z"),
    "a forked switch without cases": forked(type="SWITCH", decisionCases=[1]),
    "a forked body for each of nothing": forked(type="FOR_EACH", loopOver=[3], inputParameters={"parallel": {}}),
    "a forked body for each that is none": forked(type="FOR_EACH", items=4, loopOver=[simple("x")]),
    "a forked loop over a number": forked(type="DO_WHILE", loopOver=[3]),
    "a forked try with handlers that are none": forked(type="TRY_CATCH", tryTasks=[simple("x")], catchCases=[3]),
    "a forked try of nothing": forked(type="TRY_CATCH", tryTasks=[None], catchCases=[{"match": "x"}]),
    "a forked sub-workflow without a name": forked(type="SUB_WORKFLOW", subWorkflowParam=[]),
    "a forked policy beyond all bounds": forked(
        taskDefinition={"retryCount": HUGE, "timeoutSeconds": HUGE, "responseTimeoutSeconds": HUGE}
    ),
    "a forked delay beyond all bounds": forked(startDelay=HUGE),
    "deep values": ([simple("a", inputParameters={"x": "${workflow.input}"})], nested(190)),
    "a wait until the end of days": ([WAIT], {"d": "9" * 30 + "s"}),
    "a start of nothing that makes sense": ([START], {"name": "x\0", "version": "q", "input": [1], "priority": "x"}),
    "a sub-workflow with a NUL": ([SUB], {"n": "x\0", "d": {"name": "x\0", "tasks": [simple("a\0")]}}),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_values_end_in_a_reason_and_not_in_a_fault(api, case):
    tasks, given = CASES[case]
    api.define(*tasks)

    reply = api.post("/workflow", {"name": "order", "input": given})

    assert reply.status_code < 500
    if reply.status_code == 200:
        assert api.get(f"/workflow/{reply.content.decode()}").status_code == 200
    else:
        assert reply.json()["status"] == reply.status_code
