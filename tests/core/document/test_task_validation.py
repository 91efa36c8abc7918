"""Validation errors of task definitions, in Conductor's wording (api §3.2)."""

import pytest

from conductor_app.core.document.fields import coerce_task, normalize_task
from conductor_app.core.validation.checks import task_errors

CASES = {
    "no name": ({}, "name", "TaskDef name cannot be null or empty"),
    "an empty name": ({"name": ""}, "name", "TaskDef name cannot be null or empty"),
    "a negative number of retries": (
        {"name": "pay", "retryCount": -1},
        "retryCount",
        "TaskDef retryCount: 0 must be >= 0",
    ),
    "a response timeout of zero": (
        {"name": "pay", "responseTimeoutSeconds": 0},
        "responseTimeoutSeconds",
        "TaskDef responseTimeoutSeconds: 0 should be minimum 1 second",
    ),
    "a response timeout longer than the task timeout": (
        {"name": "pay", "timeoutSeconds": 10, "responseTimeoutSeconds": 11},
        "",
        "TaskDef: pay responseTimeoutSeconds: 11 must be less than timeoutSeconds: 10",
    ),
    "a default response timeout longer than the task timeout": (
        {"name": "pay", "timeoutSeconds": 60},
        "",
        "TaskDef: pay responseTimeoutSeconds: 3600 must be less than timeoutSeconds: 60",
    ),
    "a task timeout longer than the total timeout": (
        {"name": "pay", "timeoutSeconds": 60, "responseTimeoutSeconds": 1, "totalTimeoutSeconds": 30},
        "",
        "TaskDef: pay timeoutSeconds: 60 must be less than or equal to totalTimeoutSeconds: 30",
    ),
    "a text instead of a number": (
        {"name": "pay", "retryCount": "many"},
        "retryCount",
        "retryCount must be a whole number",
    ),
    "more than 32 bits": (
        {"name": "pay", "retryCount": 2**31},
        "retryCount",
        "retryCount must be a whole number up to 2147483647",
    ),
    "an empty text instead of an enumeration value": (
        {"name": "pay", "retryLogic": ""},
        "retryLogic",
        "retryLogic must be one of FIXED, EXPONENTIAL_BACKOFF, LINEAR_BACKOFF",
    ),
    "a list instead of an object": (
        {"name": "pay", "inputTemplate": []},
        "inputTemplate",
        "inputTemplate must be an object",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_invalid_task_definition_is_reported(case):
    document, path, message = CASES[case]

    [validation_error] = task_errors(document)

    assert (validation_error.path, validation_error.message) == (path, message)


def test_equal_response_and_task_timeouts_are_accepted():
    assert task_errors({"name": "pay", "timeoutSeconds": 60, "responseTimeoutSeconds": 60}) == []


def test_a_missing_owner_is_an_error_if_owners_are_mandatory():
    assert task_errors({"name": "pay"}) == []

    [validation_error] = task_errors({"name": "pay"}, owner_email_mandatory=True)

    assert (validation_error.path, validation_error.message) == ("ownerEmail", "ownerEmail cannot be empty")


@pytest.mark.parametrize("document", [None, 3, "pay", [], [{}], True])
def test_a_document_that_is_not_an_object_is_an_error(document):
    assert [each.message for each in task_errors(document)] == ["The document must be an object"]


def test_defaults_are_filled_in_and_unknown_fields_survive():
    normalized = normalize_task({"name": "pay", "color": "red", "retryCount": "7", "retryDelaySeconds": 2.9})

    assert normalized["color"] == "red"
    assert (normalized["retryCount"], normalized["retryDelaySeconds"], normalized["responseTimeoutSeconds"]) == (
        7,
        2,
        3600,
    )
    assert (normalized["retryLogic"], normalized["timeoutPolicy"], normalized["inputTemplate"]) == (
        "FIXED",
        "TIME_OUT_WF",
        {},
    )
    assert "concurrentExecLimit" not in normalized


def test_field_types_are_converted_without_filling_in_defaults():
    document = {"name": 7, "retryCount": "2", "enforceSchema": "False", "color": None, "inputKeys": "x"}

    assert coerce_task(document) == {
        "name": "7",
        "retryCount": 2,
        "enforceSchema": False,
        "color": None,
        "inputKeys": "x",
    }
