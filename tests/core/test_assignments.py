"""Assignments of HUMAN steps: candidates, escalation and the assignee at a given time."""

import pytest

from conductor_app.core.human_tasks import (
    ANSWER_SCHEMA_KEY,
    Assignee,
    HumanQuestion,
    answer_schema,
    current_assignment,
    delegated_assignment,
    format_assignees,
    last_assignment_ends_at,
    named_template,
    parse_question,
)

MINUTE = 60_000


def question_with(*assignments, **others):
    return parse_question({ANSWER_SCHEMA_KEY: {"assignments": list(assignments), **others}})


def assignment(user, minutes=0, kind="CONDUCTOR_USER"):
    return {"assignee": {"userType": kind, "user": user}, "slaMinutes": minutes}


def test_a_question_has_a_title_a_text_and_assignees_in_order():
    found = question_with(
        assignment("ann", 30), assignment("sales", 60, "CONDUCTOR_GROUP"), displayName="Approve", question="Known?"
    )

    assert found == HumanQuestion("Approve", "Known?", (Assignee("ann", False, 30), Assignee("sales", True, 60)))


@pytest.mark.parametrize(
    ("minutes", "user", "due", "escalated"),
    [(0, "ann", 30, 0), (29, "ann", 30, 0), (30, "sales", 90, 1), (89, "sales", 90, 1), (90, "sales", 90, 1)],
)
def test_an_expired_assignment_is_followed_by_the_next_and_the_last_is_overdue(minutes, user, due, escalated):
    found = current_assignment(question_with(assignment("ann", 30), assignment("sales", 60)), 0, minutes * MINUTE)

    assert (found.assignee.who, found.due_at, found.escalated) == (user, due * MINUTE, escalated)


def test_an_assignment_without_a_limit_does_not_expire():
    found = current_assignment(question_with(assignment("ann"), assignment("bob", 5)), 0, 10**12)

    assert (found.assignee.who, found.due_at) == ("ann", None)


@pytest.mark.parametrize(
    "schema_input",
    [
        None,
        [],
        "x",
        {"assignments": "x"},
        {"assignments": [None, 1, {"assignee": "ann"}, {"assignee": {"user": 7}}]},
        {"displayName": {"a": 1}, "assignments": [{"assignee": {"user": ""}, "slaMinutes": 5}]},
    ],
    ids=repr,
)
def test_an_invalid_assignment_is_ignored(schema_input):
    assert parse_question({ANSWER_SCHEMA_KEY: schema_input}) == HumanQuestion()
    assert current_assignment(parse_question({ANSWER_SCHEMA_KEY: schema_input}), 0, 5).assignee is None


@pytest.mark.parametrize("minutes", [-1, 0, True, "30", 1e9, 10**12, None])
def test_an_invalid_time_limit_is_unlimited(minutes):
    assert question_with(assignment("ann", minutes)).assignees == (Assignee("ann"),)


@pytest.mark.parametrize(
    "schema_input",
    [{"jsonSchema": {"type": "object"}}, {"userFormTemplate": {"name": "yes_or_no", "jsonSchema": {"type": "object"}}}],
    ids=["schema of the question", "schema of its template"],
)
def test_a_question_can_have_a_schema_for_its_answer(schema_input):
    assert answer_schema({ANSWER_SCHEMA_KEY: schema_input}) == {"type": "object"}


@pytest.mark.parametrize(
    "schema_input", [None, "x", {}, {"jsonSchema": "x"}, {"userFormTemplate": [], "fullTemplate": 7}]
)
def test_an_invalid_schema_is_ignored(schema_input):
    assert answer_schema({ANSWER_SCHEMA_KEY: schema_input}) == {}


def test_an_assignee_can_be_an_external_user():
    schema_input = {"assignments": [{"assignee": {"userType": "EXTERNAL_GROUP", "user": "shop"}, "slaMinutes": 5}]}

    [found] = parse_question({ANSWER_SCHEMA_KEY: schema_input}).assignees

    assert (found.is_external, found.is_group, found.user_type) == (True, True, "EXTERNAL_GROUP")
    assert format_assignees([found]) == schema_input["assignments"]


def test_a_single_assignee_is_accepted_and_a_list_takes_precedence():
    one = {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}}

    assert [each.who for each in parse_question({ANSWER_SCHEMA_KEY: one}).assignees] == ["ann"]
    assert parse_question({ANSWER_SCHEMA_KEY: one | {"assignments": []}}).assignees == ()


def test_the_next_assignment_follows_when_the_reassignment_expires():
    first, rest = Assignee("ann"), (Assignee("bob", minutes=10), Assignee("cid"))

    def assignment_at(now):
        found = delegated_assignment(first, 1_000, rest, now)
        return found.assignee.who, found.escalated, found.due_at

    assert assignment_at(999) == ("ann", 0, 1_000)
    assert assignment_at(1_000) == ("bob", 1, 1_000 + 600_000)
    assert assignment_at(1_000 + 600_000) == ("cid", 2, None)


def test_assignments_have_a_common_end_unless_one_is_unlimited():
    assert last_assignment_ends_at([Assignee("a", minutes=1), Assignee("b", minutes=2)], 5) == 5 + 180_000
    assert last_assignment_ends_at([Assignee("a", minutes=1), Assignee("b")], 5) is None
    assert last_assignment_ends_at([], 5) is None


@pytest.mark.parametrize(
    ("schema_input", "expected"),
    [
        ({"name": "form", "version": 2}, ("form", 2)),
        ({"name": "form"}, ("form", 0)),
        ({"name": "form", "version": True}, ("form", 0)),
        ({"name": "form", "version": 2**31}, ("form", 0)),
        ({"name": " ", "version": 1}, None),
        ({"name": 7}, None),
        ("form", None),
    ],
)
def test_a_template_is_named_by_name_and_version_and_zero_is_the_newest(schema_input, expected):
    assert named_template({ANSWER_SCHEMA_KEY: {"userFormTemplate": schema_input}}) == expected
