"""Scripts of definitions and conditions of handlers are parsed when they are saved."""

import pytest

from conductor_app.scripts import pool as syntax

NOOP = {"name": "n", "taskReferenceName": "n", "type": "NOOP"}


def step(kind, **fields):
    return {"name": "s", "taskReferenceName": "s", "type": kind, **fields}


def switch(expression, **fields):
    inputs = {"a": "${workflow.input.a}"}
    given = {"evaluatorType": "javascript", "expression": expression, "inputParameters": inputs, **fields}
    return step("SWITCH", decisionCases={"x": [NOOP]}, **given)


def document(*steps, name="order"):
    return {"name": name, "ownerEmail": "a@b.c", "tasks": list(steps)}


FAULTY = {
    "SWITCH": (switch("if ($.a b) {"), "tasks[0].expression"),
    "SWITCH in Python": (switch("return a +", evaluatorType="python"), "tasks[0].expression"),
    "SWITCH with a literal expression": (switch("${workflow.input.a} > 3"), "tasks[0].expression"),
    "DECISION": (step("DECISION", caseExpression="$.a b", decisionCases={"x": [NOOP]}), "tasks[0].caseExpression"),
    "DO_WHILE": (step("DO_WHILE", loopCondition="$.s.iteration <", loopOver=[NOOP]), "tasks[0].loopCondition"),
    "inside DO_WHILE": (
        step("DO_WHILE", loopCondition="false", loopOver=[{**switch("1 +"), "taskReferenceName": "t"}]),
        "tasks[0].loopOver[0].expression",
    ),
    "INLINE": (step("INLINE", inputParameters={"expression": "function e( {"}), "tasks[0].inputParameters.expression"),
    "LAMBDA": (
        step("LAMBDA", inputParameters={"scriptExpression": "return ("}),
        "tasks[0].inputParameters.scriptExpression",
    ),
    "HTTP_POLL": (
        step("HTTP_POLL", inputParameters={"http_request": {"uri": "http://a/", "terminationCondition": "$.a ="}}),
        "tasks[0].inputParameters.http_request.terminationCondition",
    ),
    "an inline definition": (
        step("SUB_WORKFLOW", subWorkflowParam={"name": "c", "workflowDefinition": document(switch("1 +"), name="c")}),
        "tasks[0].subWorkflowParam.workflowDefinition.tasks[0].expression",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_script_that_can_never_run_is_refused_with_its_place(api, case):
    faulty, path = FAULTY[case]

    for reply, prefix in (
        (api.put("/metadata/workflow", [document(faulty)]), "updateWorkflowDef.workflowDefList[0]."),
        (api.post("/metadata/workflow", document(faulty)), "registerWorkflowDef.workflowDef."),
        (api.post("/metadata/workflow/validate", document(faulty)), "validateWorkflowDef.workflowDef."),
    ):
        [error] = reply.json()["validationErrors"]
        assert (reply.status_code, error["path"]) == (400, prefix + path)
        assert error["message"].startswith("Expression is not well formatted: SyntaxError")
        assert "(line 1" in error["message"]


def test_the_column_of_a_lambda_is_that_of_its_own_text(api):
    reply = api.post(
        "/metadata/workflow", document(FAULTY["LAMBDA"][0] | {"inputParameters": {"scriptExpression": "1 2"}})
    )

    assert "(line 1, column 3), taskType: LAMBDA taskName s" in reply.json()["validationErrors"][0]["message"]


def test_a_faulty_jq_program_is_a_finding(api):
    faulty = document(step("JSON_JQ_TRANSFORM", inputParameters={"queryExpression": ".a | ["}))

    assert api.put("/metadata/workflow", [faulty]).status_code == 200
    [finding] = api.post("/metadata/workflow/validate", faulty).json()["findings"]
    assert (finding["severity"], finding["path"]) == ("error", "tasks[0].inputParameters.queryExpression")
    assert "(line 1, column 6)" in finding["message"]


@pytest.mark.parametrize(
    "valid",
    [
        switch("$.items.filter(i => i > 10).length > 0 ? 'big' : 'small'"),
        switch("a", evaluatorType="value-param"),
        switch("if (", evaluatorType="not_a_real_evaluator"),
        step("INLINE", inputParameters={"expression": "${workflow.input.script} +"}),
        step("DO_WHILE", loopCondition="", items="${workflow.input.items}", loopOver=[NOOP]),
    ],
    ids=["over a list of the run", "value-param", "unknown evaluator", "template", "empty"],
)
def test_a_script_that_may_run_is_accepted(api, valid):
    assert api.put("/metadata/workflow", [document(valid)]).status_code == 200


def test_a_definition_with_a_thousand_scripts_is_checked_in_one_request_to_a_helper(api, monkeypatch):
    asked = []
    evaluate = syntax.evaluate
    monkeypatch.setattr(syntax, "evaluate", lambda *args, **more: asked.append(args[0]) or evaluate(*args, **more))
    steps = [
        {**switch(f"$.a > {n} ? 'x' : 'y'"), "taskReferenceName": f"s{n}", "decisionCases": {"x": []}}
        for n in range(1000)
    ]

    reply = api.put("/metadata/workflow", [document(*steps)])

    assert (reply.status_code, asked) == (200, ["javascript-syntax"])


@pytest.mark.parametrize("method", ["post", "put"])
def test_a_handler_whose_condition_can_never_be_evaluated_is_refused(api, method):
    actions = [{"action": "complete_task", "complete_task": {"workflowId": "${x}", "taskRefName": "t"}}]
    handler = {"name": "h", "event": "conductor:a:b", "active": False, "actions": actions}
    api.post("/event", handler)

    reply = getattr(api, method)("/event", {**handler, "condition": "$.a =="})

    [error] = reply.json()["validationErrors"]
    assert (reply.status_code, error["path"].rpartition(".")[2]) == (400, "condition")
    assert "(line 1, column" in error["message"]
