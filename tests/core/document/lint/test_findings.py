"""Findings of the linter: their messages and their paths in the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.validation.checks import workflow_errors
from conductor_app.core.validation.findings import (
    ERROR,
    HINT,
    WARNING,
    LintContext,
    members_shape,
    schema_shape,
    value_shape,
)
from conductor_app.core.validation.lint import lint_definition
from conductor_app.core.validation.lint_fields import lint_task_definition
from tests.builders import noop, simple, step_of, sub_workflow, wait
from tests.hypothesis_profile import property_settings


def step_with_input(ref, expression, kind="SIMPLE", **fields):
    """Return a step with one input parameter, `x`."""
    return step_of(kind, ref, inputParameters={"x": expression}, **fields)


def lint(*steps, known=None, **fields):
    """Return kind, path and message of each finding."""
    document = {"name": "order", "tasks": list(steps), **fields}
    return [(finding.kind, finding.path, finding.message) for finding in lint_definition(document, known)]


def lint_one(*steps, known=None, **fields):
    """Return the only finding."""
    document = {"name": "order", "tasks": list(steps), **fields}
    [finding] = lint_definition(document, known)
    return finding


PAY = simple("payment")
SWITCH = step_of("SWITCH", "route", evaluatorType="value-param", expression="way", inputParameters={"way": "air"})


def test_a_valid_definition_has_no_findings():
    assert (
        lint(PAY, step_with_input("ship", "${payment.output.receipt} ${workflow.input.order} ${payment.status}")) == []
    )


def test_an_unknown_reference_is_reported_with_its_path_and_the_nearest_name():
    finding = lint_one(PAY, step_with_input("ship", "${paymnet.output.receipt}"))

    assert finding.path == "tasks[1].inputParameters.x"
    assert "There is no step `paymnet`" in finding.message and "Did you mean `payment`?" in finding.message
    assert (finding.written, finding.meant) == ("paymnet.output", "payment.output")


def test_an_unknown_reference_is_reported_in_branches_maps_lists_and_outputs():
    inner = simple("fly", inputParameters={"a": {"list": ["${nobody.output}"]}})

    assert [path for _kind, path, _message in lint({**SWITCH, "decisionCases": {"air": [inner]}})] == [
        "tasks[0].decisionCases[air][0].inputParameters.a.list[0]"
    ]
    assert lint(PAY, outputParameters={"x": "${nobody.output}"})[0][1] == "outputParameters.x"


def test_a_refused_reference_is_an_error_and_a_null_reference_is_a_warning():
    assert lint_one(step_with_input("a", "${nobody.output}")).severity == ERROR
    assert lint_one({**SWITCH, "defaultCase": [step_with_input("a", "${nobody.output}")]}).severity == WARNING


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([step_with_input("ship", "${payment.output}"), PAY], "comes after this step"),
        ([step_with_input("ship", "${ship.output}")], "this step itself"),
        (
            [
                step_of("FORK_JOIN", "f", forkTasks=[[PAY], [step_with_input("b", "${payment.output}")]]),
                step_of("JOIN", "j", joinOn=["b"]),
            ],
            "in another branch",
        ),
        (
            [{**SWITCH, "decisionCases": {"x": [PAY], "y": [step_with_input("b", "${payment.output}")]}}],
            "in another branch",
        ),
    ],
    ids=["a later step", "the step itself", "another branch", "another case"],
)
def test_a_reference_to_a_step_that_cannot_have_run_is_reported(steps, text):
    [(kind, _path, message)] = lint(*steps)

    assert kind == "not there yet" and text in message


@pytest.mark.parametrize(
    "steps",
    [
        [
            step_of("FORK_JOIN", "f", forkTasks=[[PAY], [simple("b")]]),
            step_of("JOIN", "j", joinOn=["b"]),
            step_with_input("c", "${payment.output}"),
        ],
        [
            {**SWITCH, "decisionCases": {"x": [PAY]}},
            step_with_input("c", "${payment.output} ${route.output.evaluationResult}"),
        ],
        [
            step_of(
                "DO_WHILE",
                "l",
                loopCondition="$.l['iteration'] < 3",
                loopOver=[step_with_input("a", "${payment.output}"), PAY],
            )
        ],
        [
            step_of(
                "DO_WHILE",
                "l",
                loopCondition="false",
                loopOver=[step_with_input("a", "${l.output.iteration} ${a.output.total}")],
            )
        ],
        [
            step_of(
                "TRY_CATCH",
                "t",
                tryTasks=[PAY],
                catchDefault=[step_with_input("c", "${payment.reasonForIncompletion}")],
            )
        ],
        [
            step_of(
                "TRY_CATCH",
                "t",
                tryTasks=[PAY],
                catchDefault=[],
                finallyTasks=[step_with_input("c", "${payment.output}")],
            )
        ],
    ],
    ids=["after a join", "after a switch", "previous iteration", "enclosing loop", "try body", "finally body"],
)
def test_a_reference_to_a_step_that_may_have_run_is_accepted(steps):
    assert lint(*steps) == []


def test_a_path_outside_the_output_schema_is_reported_with_a_suggestion():
    schema = {"data": {"properties": {"receipt": {"properties": {"number": {}}}, "total": {}}}}
    known = LintContext(tasks={"payment": {"outputSchema": schema}, "ship": {}})

    finding = lint_one(PAY, step_with_input("ship", "${payment.output.receipt.numbr}"), known=known)

    assert (
        "`payment.output.receipt` has no `numbr` according to its output schema. Did you mean `number`?"
        in finding.message
    )
    assert (
        lint(PAY, step_with_input("ship", "${payment.output.receipt.number} ${payment.output.total.x[0]}"), known=known)
        == []
    )


def test_a_member_missing_in_recent_outputs_is_a_hint_unless_it_looks_like_a_typo():
    recent_shape = value_shape({"receipt": 1, "lines": [1]}, "what `payment` gave recent_shape")
    known = LintContext(outputs={"payment": recent_shape})

    assert lint_one(PAY, step_with_input("ship", "${payment.output.vat}"), known=known).severity == HINT
    assert (
        lint_one(PAY, step_with_input("ship", "${payment.output.reciept}"), known=known).meant
        == "payment.output.receipt"
    )


def test_outputs_of_system_tasks_are_known():
    http = step_of("HTTP", "call", inputParameters={"http_request": {"uri": "http://x"}})

    assert lint_one(http, step_with_input("a", "${call.output.response.boddy.id}")).meant == "call.output.response.body"
    assert lint(http, step_with_input("a", "${call.output.response.body.id[0].x}")) == []


def test_a_sub_workflow_has_the_output_shape_of_its_definition():
    known = LintContext(workflow_outputs={"billing": members_shape(("invoice",), "the output parameters of billing")})
    sub = sub_workflow("bill", "billing")

    assert lint_one(sub, step_with_input("a", "${bill.output.invoise}"), known=known).meant == "bill.output.invoice"
    assert lint(sub, step_with_input("a", "${bill.output.subWorkflowId}"), known=known) == []


def test_an_undeclared_input_is_reported():
    assert (
        lint_one(step_with_input("a", "${workflow.input.ordr}"), inputParameters=["order"]).meant
        == "workflow.input.order"
    )
    assert lint(step_with_input("a", "${workflow.input.ordr}")) == []


def test_an_unknown_part_of_a_run_or_task_is_reported():
    assert lint_one(step_with_input("a", "${workflow.inptu.order}")).meant == "workflow.input"
    assert lint_one(PAY, step_with_input("a", "${payment.outptu.x}")).meant == "payment.output"


def test_an_expression_that_is_not_a_path_is_reported():
    assert "is no path" in lint_one(step_with_input("a", "${payment..}")).message


def test_steps_behind_the_end_of_a_run_are_unreachable():
    stop = step_of("TERMINATE", "stop", inputParameters={"terminationStatus": "FAILED"})

    assert lint(stop, PAY) == [
        ("unreachable", "tasks[1]", "Control never comes here: `stop` ends the run in every case.")
    ]
    both = {**SWITCH, "decisionCases": {"air": [stop]}, "defaultCase": [{**stop, "taskReferenceName": "halt"}]}
    assert [kind for kind, *_ in lint(both, PAY)] == ["unreachable"]
    assert lint({**SWITCH, "decisionCases": {"air": [stop]}}, PAY) == []


def test_a_join_that_waits_for_the_wrong_steps_is_reported():
    fork = step_of("FORK_JOIN", "f", forkTasks=[[simple("one")], [simple("two")]])

    assert lint_one(fork, step_of("JOIN", "j", joinOn=["one", "tow"])).meant == "two"
    assert "The branches end with `one`, `two`" in lint_one(fork, step_of("JOIN", "j", joinOn=[])).message
    empty = step_of("FORK_JOIN", "f", forkTasks=[[], []])
    assert lint_one(empty, step_of("JOIN", "j", joinOn=[])).message == (
        "The branches of `f` have no steps yet. Add a step to each branch."
    )
    assert "waits for no branch of the fork `f`" in lint(PAY, fork, step_of("JOIN", "j", joinOn=["payment"]))[0][2]
    assert "follows no fork" in lint_one(PAY, step_of("JOIN", "j")).message


def test_a_fork_without_a_join_is_reported():
    fork, join = step_of("FORK_JOIN", "f", forkTasks=[[simple("one")]]), step_of("JOIN", "j", joinOn=["one"])
    dynamic_fork = step_of("FORK_JOIN_DYNAMIC", "g")

    assert [path for _kind, path, message in lint(fork) if "No JOIN follows `f`" in message] == ["tasks[0]"]
    assert [path for _kind, path, message in lint(PAY, dynamic_fork, simple("x")) if "No JOIN follows" in message] == [
        "tasks[1]"
    ]
    body = step_of("DO_WHILE", "l", loopCondition="false", loopOver=[fork])
    assert "tasks[0].loopOver[0]" in [path for _kind, path, message in lint(body, join) if "No JOIN follows" in message]
    assert not [message for _kind, _path, message in lint(fork, join) if "No JOIN follows" in message]


def test_the_join_after_a_switch_follows_the_fork_at_the_end_of_its_case():
    fork, join = step_of("FORK_JOIN", "f", forkTasks=[[simple("one")]]), step_of("JOIN", "j", joinOn=["one"])
    inner = {**SWITCH, "taskReferenceName": "inner", "decisionCases": {"air": [fork]}}

    def unjoined(*steps):
        return [path for _kind, path, message in lint(*steps) if "No JOIN follows" in message]

    assert unjoined({**SWITCH, "decisionCases": {"air": [PAY, fork]}}, join) == []
    assert unjoined({**SWITCH, "decisionCases": {"air": [inner]}}, join) == []
    assert unjoined({**SWITCH, "decisionCases": {"air": [fork, PAY]}}, join) == ["tasks[0].decisionCases[air][0]"]
    assert unjoined({**SWITCH, "decisionCases": {"air": [fork]}}) == ["tasks[0].decisionCases[air][0]"]


def test_expressions_of_an_inline_definition_are_read_as_those_of_the_child():
    own = {"name": "child", "tasks": [PAY, step_with_input("ship", "${payment.output.receipt} ${workflow.input.q}")]}
    wrong = {"name": "child", "tasks": [step_with_input("ship", "${parent_step.output.x}")]}

    def sub_workflow_with(child):
        return step_of("SUB_WORKFLOW", "s", subWorkflowParam={"name": "child", "workflowDefinition": child})

    assert lint(simple("parent_step"), sub_workflow_with(own), inputParameters=["n"]) == []
    finding = lint_one(simple("parent_step"), sub_workflow_with(wrong))
    assert "There is no step `parent_step`" in finding.message
    assert finding.path == "tasks[1].subWorkflowParam.workflowDefinition.tasks[0].inputParameters.x"


def test_a_duplicate_reference_is_marked_at_its_second_use():
    finding = lint_one(PAY, {**PAY})

    assert (finding.kind, finding.path, finding.severity) == ("name clash", "tasks[1].taskReferenceName", ERROR)


def test_a_script_that_reads_a_missing_input_is_reported():
    inline = step_of(
        "INLINE", "i", inputParameters={"total": 1, "expression": "// $.note\n$.totl + '$.text' + $['total']"}
    )
    loop = step_of("DO_WHILE", "l", loopCondition="$.l.iteration < 3 && $.a.more", loopOver=[simple("a")])

    assert (lint_one(inline).path, lint_one(inline).meant) == ("tasks[0].inputParameters.expression", "total")
    assert lint(loop) == []
    assert lint_one({**SWITCH, "inputParameters": {"ways": 1}, "defaultCase": [simple("a")]}).meant == "ways"


def python_step(expression, **given):
    return step_of("INLINE", "i", inputParameters={"evaluatorType": "python", "expression": expression, **given})


def test_a_script_in_python_that_reads_its_inputs_as_javascript_does_is_reported():
    finding = lint_one(python_step("return $.total + '$.text'  # $.note", total=1))

    assert (finding.severity, finding.path) == (WARNING, "tasks[0].inputParameters.expression")
    assert finding.message == "In Python the inputs are variables: write `name` instead of `$.name`."
    assert lint(python_step("return total + '$.text'  # $.note", total=1)) == []
    assert lint(python_step("return ${workflow.input.total}")) == []


def test_a_python_script_without_a_return_value_is_reported():
    switch = {**SWITCH, "evaluatorType": "python", "expression": "'air'  # return", "defaultCase": [simple("a")]}
    loop = step_of("DO_WHILE", "l", evaluatorType="python", loopCondition="l['iteration'] < 3", loopOver=[simple("a")])

    assert (lint_one(switch).kind, lint_one(switch).path) == ("no result", "tasks[0].expression")
    assert (lint_one(loop).kind, lint_one(loop).path) == ("no result", "tasks[0].loopCondition")
    assert lint(python_step("raise ValueError(total)", total=1)) == []
    assert [kind for kind, _path, _message in lint(python_step(""))] == ["unreadable"]


@pytest.mark.parametrize(
    ("faulty", "path", "message"),
    [
        ({**SWITCH, "evaluatorType": "javscript"}, "tasks[0].evaluatorType", "Did you mean `javascript`?"),
        ({**SWITCH, "expression": ""}, "tasks[0].expression", "`expression` is empty"),
        (step_of("INLINE", "i"), "tasks[0].inputParameters.expression", "`expression` is empty"),
        (
            step_of("INLINE", "i", inputParameters={"evaluatorType": "js", "expression": "1"}),
            "tasks[0].inputParameters.evaluatorType",
            "There is no evaluator `js`",
        ),
        (step_of("LAMBDA", "l"), "tasks[0].inputParameters.scriptExpression", "`scriptExpression` is empty"),
        (step_of("JSON_JQ_TRANSFORM", "j"), "tasks[0].inputParameters.queryExpression", "`queryExpression` is empty"),
        (
            step_of("DO_WHILE", "l", loopCondition="more", evaluatorType="value-param", loopOver=[simple("a")]),
            "tasks[0].evaluatorType",
            "evaluated as JavaScript",
        ),
        (
            step_of("DO_WHILE", "l", loopCondition='"${workflow.variables.cart}" != "done"', loopOver=[simple("a")]),
            "tasks[0].loopCondition",
            "`${workflow.variables.cart}` is not replaced here",
        ),
        (
            {**SWITCH, "evaluatorType": "javascript", "expression": "'${workflow.input.m}' == 'x'"},
            "tasks[0].expression",
            "`${workflow.input.m}` is not replaced here",
        ),
    ],
)
def test_a_script_that_cannot_be_evaluated_as_it_is_meant_is_reported(faulty, path, message):
    finding = lint_one(faulty)

    assert (finding.severity, finding.path) == (WARNING, path)
    assert message in finding.message


def test_a_template_literal_of_javascript_is_not_reported():
    assert lint({**SWITCH, "evaluatorType": "javascript", "expression": "`${$.way}` == 'air'"}) == []


def test_a_loop_may_read_its_own_output_in_its_inputs():
    inputs = {"n": "${l.output.iteration}"}

    assert lint(step_of("DO_WHILE", "l", loopCondition="$.n < 3", inputParameters=inputs, loopOver=[simple("a")])) == []


@pytest.mark.parametrize(
    ("fields", "member", "hint"),
    [
        ({"items": "${workflow.input.list}"}, "item", "Known: `iteration`, `loopItem`, `loopIndex`."),
        ({"loopCondition": "false"}, "iterations", "Did you mean `iteration`?"),
        ({"inputParameters": {"items": "${workflow.input.list}"}}, "items", "Did you mean `item`?"),
    ],
)
def test_a_member_that_the_output_of_a_loop_does_not_have_is_reported(fields, member, hint):
    finding = lint_one(step_of("DO_WHILE", "l", loopOver=[step_with_input("a", f"${{l.output.{member}}}")], **fields))

    assert (finding.kind, finding.path) == ("unknown output", "tasks[0].loopOver[0].inputParameters.x")
    assert hint in finding.message


def test_the_members_of_the_output_of_a_loop_are_known():
    body = [simple("a", inputParameters={n: f"${{l.output.{n}}}" for n in ("loopItem", "loopIndex", "iteration", "3")})]

    assert lint(step_of("DO_WHILE", "l", items="${workflow.input.list}", loopOver=body)) == []


def test_a_step_with_a_fixed_script_language_ignores_its_evaluator_type():
    decision = step_of("DECISION", "d", evaluatorType="python", caseExpression="$.way", inputParameters={"way": 1})

    assert lint({**decision, "decisionCases": {"a": [simple("a")]}}) == []


def test_a_task_without_a_timeout_is_reported():
    none = {"timeoutSeconds": 0, "responseTimeoutSeconds": 0}

    assert "the run waits for ever" in lint_one(PAY, known=LintContext(tasks={"payment": none})).message
    assert lint(PAY, known=LintContext(tasks={"payment": {"timeoutSeconds": 0}})) == []


def test_unknown_names_of_tasks_and_workflows_are_reported():
    known = LintContext(tasks={"payments": {}}, workflows={"billing": frozenset((1, 2))})
    sub = sub_workflow("b", "biling")

    assert lint_one(PAY, known=known).meant == "payments"
    assert lint_one(sub, known=known).meant == "billing"
    assert "has no version 7; there is 1, 2" in lint_one(sub_workflow("b", "billing", version=7), known=known).message
    assert lint_one(wait("w"), failureWorkflow="billin", known=known).path == "failureWorkflow"
    itself = sub_workflow("b", "order")
    assert "starts itself" in lint_one(itself, known=known).message


def test_a_task_that_no_worker_has_polled_is_a_hint():
    assert lint_one(PAY, known=LintContext(worked=frozenset(("ship",)))).severity == HINT


def test_a_finding_with_a_position_replaces_an_error_without_one():
    document = {"name": "order", "tasks": [step_with_input("a", "${nobody.output}")]}

    [finding] = lint_definition(document, validation_errors=workflow_errors(document))

    assert finding.path == "tasks[0].inputParameters.x"


def test_every_error_without_a_position_has_such_a_finding():
    twice = {"name": "order", "tasks": [PAY, PAY]}
    unreadable = {"name": "order", "tasks": [step_with_input("a", "${payment..}")]}

    for document in (twice, unreadable):
        assert [each.path for each in workflow_errors(document)] == [""]
        assert [finding.severity for finding in lint_definition(document)] == [ERROR]


def test_open_schemas_cause_no_findings():
    for schema in ({}, {"properties": {"a": {}}, "additionalProperties": True}, {"anyOf": []}, [], None):
        assert schema_shape(schema, "it").members is None


FIELDS = (
    *("tasks", "type", "name", "taskReferenceName", "inputParameters", "forkTasks", "joinOn", "decisionCases"),
    *("defaultCase", "loopOver", "outputParameters", "subWorkflowParam", "taskDefinition", "outputSchema"),
    *("expression", "evaluatorType"),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["SWITCH", "JOIN", "${a.output.x}", "a", "FORK_JOIN"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=25,
)


@property_settings(80)
@given(JSON_VALUES)
def test_every_document_can_be_linted(document):
    assert isinstance(lint_definition(document), list)
    assert isinstance(lint_definition({"name": "x", "tasks": [document, document]}), list)


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"timeoutSeconds": 2}, "timeoutSeconds", "it is a field of task definitions"),
        ({"retryDelaySeconds": 2}, "retryDelaySeconds", "task definition `s`"),
        ({"inputParamters": {}}, "inputParamters", "Did you mean `inputParameters`?"),
        ({"optonal": True}, "optonal", "Did you mean `optional`?"),
        ({"terminationStatus": "FAILED"}, "terminationStatus", "Write it into `inputParameters`"),
        ({"cacheConfig": {"kye": "k"}}, "cacheConfig.kye", "Nothing reads the field `kye`"),
        ({"taskDefinition": {"retries": 3}}, "taskDefinition.retries", "Nothing reads the field `retries`"),
    ],
)
def test_a_field_of_a_step_that_nothing_reads_is_reported(fields, path, message):
    found = [each for each in lint_definition({"tasks": [simple("s", **fields)]}) if each.kind == "unknown field"]

    [finding] = found
    assert finding.path == f"tasks[0].{path}"
    assert message in finding.message


def test_fields_of_a_workflow_that_nothing_reads_are_reported():
    found = lint(PAY, tiemoutSeconds=5, retryCount=3, rateLimitConfig={"rateLimtKey": "k"})

    assert sorted(path for _kind, path, _message in found) == [
        "rateLimitConfig.rateLimtKey",
        "retryCount",
        "tiemoutSeconds",
    ]


def test_comments_and_fields_of_other_versions_are_not_reported():
    step_with_more = {**PAY, "callbackFromWorker": True, "_comment": "why", "x-note": 1, "workflowTaskType": "SIMPLE"}

    assert lint(step_with_more, tags=[], **{"$schema": "https://example.org"}) == []


def test_wait_until_is_reported_as_a_field_of_this_server():
    finding = lint_one(wait("w", wait_until="2020-01-01"))

    assert (finding.severity, finding.meant) == (HINT, "until")


def test_fields_and_limits_of_a_task_definition_are_reported():
    found = list(lint_task_definition({"name": "t", "retries": 3, "rateLimitPerFrequency": -1, "timeoutSecond": 5}))

    assert [(each.path, each.severity) for each in found] == [
        ("retries", HINT),
        ("timeoutSecond", WARNING),
        ("rateLimitPerFrequency", WARNING),
    ]


def alternatives(*joined):
    """Return a fork with a switch of two cases in one branch, and the join of these tasks."""
    route = {**SWITCH, "decisionCases": {"air": [simple("fly")]}, "defaultCase": [simple("drive")]}
    branches = [[route, noop("deliver")], [simple("bill")]]
    return step_of("FORK_JOIN", "f", forkTasks=branches), step_of("JOIN", "j", joinOn=list(joined))


@pytest.mark.parametrize(
    ("joined", "message"),
    [
        (("fly", "drive", "bill"), "`fly` and `drive` are alternatives of a step with cases"),
        (("fly", "bill"), "`fly` runs only in one case"),
        (("route", "bill"), "`route` is completed as soon as its case is chosen"),
    ],
)
def test_a_join_of_what_a_run_may_not_reach_is_reported(joined, message):
    finding = lint_one(*alternatives(*joined))

    assert (finding.severity, finding.path) == (WARNING, "tasks[1].joinOn")
    assert message in finding.message


def test_a_join_of_steps_after_the_cases_or_within_one_case_is_not_reported():
    inside = (
        step_of("FORK_JOIN", "f", forkTasks=[[simple("a")], [simple("b")]]),
        step_of("JOIN", "j", joinOn=["a", "b"]),
    )

    assert lint(*alternatives("deliver", "bill")) == []
    assert lint({**SWITCH, "decisionCases": {"air": list(inside)}}) == []


def test_a_failure_workflow_that_is_the_workflow_itself_is_reported():
    finding = lint_one(PAY, failureWorkflow="order")

    assert (finding.severity, finding.path) == (WARNING, "failureWorkflow")
    assert "starts `order` again" in finding.message


def test_input_parameters_that_are_described_as_json_text_are_known_by_their_names():
    described = ['{"device": {"value": "x", "type": "text"}}', "plain", "{no json"]

    assert (
        lint(step_with_input("a", "${workflow.input.device} ${workflow.input.plain}"), inputParameters=described) == []
    )
