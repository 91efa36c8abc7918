"""What a HUMAN step says of whom it asks, and who is asked at a moment."""

import pytest

from conductor_app.core.people import NAME, Assignee, Question, question, schema_of, standing

MINUTE = 60_000


def asked(*assignments, **others):
    return question({NAME: {"assignments": list(assignments), **others}})


def to(who, minutes=0, kind="CONDUCTOR_USER"):
    return {"assignee": {"userType": kind, "user": who}, "slaMinutes": minutes}


def test_a_question_has_a_title_a_text_and_those_who_are_asked_in_turn():
    found = asked(to("ann", 30), to("sales", 60, "CONDUCTOR_GROUP"), displayName="Approve", question="Known?")

    assert found == Question("Approve", "Known?", (Assignee("ann", False, 30), Assignee("sales", True, 60)))


@pytest.mark.parametrize(
    ("minutes", "who", "due", "escalated"),
    [(0, "ann", 30, 0), (29, "ann", 30, 0), (30, "sales", 90, 1), (89, "sales", 90, 1), (90, "sales", 90, 1)],
)
def test_whoever_lets_their_time_pass_is_followed_by_the_next_and_the_last_is_overdue(minutes, who, due, escalated):
    found = standing(asked(to("ann", 30), to("sales", 60)), 0, minutes * MINUTE)

    assert (found.assignee.who, found.due_at, found.escalated) == (who, due * MINUTE, escalated)


def test_whoever_has_no_end_is_asked_for_good():
    found = standing(asked(to("ann"), to("bob", 5)), 0, 10**12)

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
    assert question({NAME: said}) == Question()
    assert standing(question({NAME: said}), 0, 5).assignee is None


@pytest.mark.parametrize("minutes", [-1, 0, True, "30", 1e9, 10**12, None])
def test_a_span_that_makes_no_sense_is_without_end(minutes):
    assert asked(to("ann", minutes)).assignees == (Assignee("ann"),)


@pytest.mark.parametrize(
    "said",
    [{"jsonSchema": {"type": "object"}}, {"userFormTemplate": {"name": "yes_or_no", "jsonSchema": {"type": "object"}}}],
    ids=["beside it", "in its template"],
)
def test_a_question_may_bring_the_schema_of_its_answer(said):
    assert schema_of({NAME: said}) == {"type": "object"}


@pytest.mark.parametrize("said", [None, "x", {}, {"jsonSchema": "x"}, {"userFormTemplate": [], "fullTemplate": 7}])
def test_a_schema_that_makes_no_sense_is_none(said):
    assert schema_of({NAME: said}) == {}
