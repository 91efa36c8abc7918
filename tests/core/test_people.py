"""What a HUMAN step says of whom it asks, and who is asked at a moment."""

import pytest

from conductor_app.core.human_task import (
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


def asked(*assignments, **others):
    return parse_question({ANSWER_SCHEMA_KEY: {"assignments": list(assignments), **others}})


def to(who, minutes=0, kind="CONDUCTOR_USER"):
    return {"assignee": {"userType": kind, "user": who}, "slaMinutes": minutes}


def test_a_question_has_a_title_a_text_and_those_who_are_asked_in_turn():
    found = asked(to("ann", 30), to("sales", 60, "CONDUCTOR_GROUP"), displayName="Approve", question="Known?")

    assert found == HumanQuestion("Approve", "Known?", (Assignee("ann", False, 30), Assignee("sales", True, 60)))


@pytest.mark.parametrize(
    ("minutes", "who", "due", "escalated"),
    [(0, "ann", 30, 0), (29, "ann", 30, 0), (30, "sales", 90, 1), (89, "sales", 90, 1), (90, "sales", 90, 1)],
)
def test_whoever_lets_their_time_pass_is_followed_by_the_next_and_the_last_is_overdue(minutes, who, due, escalated):
    found = current_assignment(asked(to("ann", 30), to("sales", 60)), 0, minutes * MINUTE)

    assert (found.assignee.who, found.due_at, found.escalated) == (who, due * MINUTE, escalated)


def test_whoever_has_no_end_is_asked_for_good():
    found = current_assignment(asked(to("ann"), to("bob", 5)), 0, 10**12)

    assert (found.assignee.who, found.due_at) == ("ann", None)


@pytest.mark.parametrize(
    "said",
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
def test_what_makes_no_sense_asks_nobody_in_particular(said):
    assert parse_question({ANSWER_SCHEMA_KEY: said}) == HumanQuestion()
    assert current_assignment(parse_question({ANSWER_SCHEMA_KEY: said}), 0, 5).assignee is None


@pytest.mark.parametrize("minutes", [-1, 0, True, "30", 1e9, 10**12, None])
def test_a_span_that_makes_no_sense_is_without_end(minutes):
    assert asked(to("ann", minutes)).assignees == (Assignee("ann"),)


@pytest.mark.parametrize(
    "said",
    [{"jsonSchema": {"type": "object"}}, {"userFormTemplate": {"name": "yes_or_no", "jsonSchema": {"type": "object"}}}],
    ids=["beside it", "in its template"],
)
def test_a_question_may_bring_the_schema_of_its_answer(said):
    assert answer_schema({ANSWER_SCHEMA_KEY: said}) == {"type": "object"}


@pytest.mark.parametrize("said", [None, "x", {}, {"jsonSchema": "x"}, {"userFormTemplate": [], "fullTemplate": 7}])
def test_a_schema_that_makes_no_sense_is_none(said):
    assert answer_schema({ANSWER_SCHEMA_KEY: said}) == {}


def test_an_assignee_may_be_known_to_the_application_only():
    said = {"assignments": [{"assignee": {"userType": "EXTERNAL_GROUP", "user": "shop"}, "slaMinutes": 5}]}

    [found] = parse_question({ANSWER_SCHEMA_KEY: said}).assignees

    assert (found.is_external, found.is_group, found.user_type) == (True, True, "EXTERNAL_GROUP")
    assert format_assignees([found]) == said["assignments"]


def test_a_single_assignee_beside_the_words_is_understood_and_a_list_counts_before_it():
    one = {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}}

    assert [each.who for each in parse_question({ANSWER_SCHEMA_KEY: one}).assignees] == ["ann"]
    assert parse_question({ANSWER_SCHEMA_KEY: one | {"assignments": []}}).assignees == ()


def test_followers_are_asked_when_the_time_of_who_was_handed_the_task_is_over():
    first, rest = Assignee("ann"), (Assignee("bob", minutes=10), Assignee("cid"))

    def at(now):
        found = delegated_assignment(first, 1_000, rest, now)
        return found.assignee.who, found.escalated, found.due_at

    assert at(999) == ("ann", 0, 1_000)
    assert at(1_000) == ("bob", 1, 1_000 + 600_000)
    assert at(1_000 + 600_000) == ("cid", 2, None)


def test_assignments_end_together_unless_one_is_without_end():
    assert last_assignment_ends_at([Assignee("a", minutes=1), Assignee("b", minutes=2)], 5) == 5 + 180_000
    assert last_assignment_ends_at([Assignee("a", minutes=1), Assignee("b")], 5) is None
    assert last_assignment_ends_at([], 5) is None


@pytest.mark.parametrize(
    ("said", "expected"),
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
def test_a_template_is_named_by_name_and_version_and_zero_is_the_newest(said, expected):
    assert named_template({ANSWER_SCHEMA_KEY: {"userFormTemplate": said}}) == expected
