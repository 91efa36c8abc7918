"""Differences between two versions of a definition, as sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.document.differences import semantic_changes
from tests.builders import simple, step_of
from tests.hypothesis_profile import property_settings


def workflow(*steps, **fields):
    return {"name": "order", "version": 1, "tasks": list(steps), **fields}


A, B, C = simple("a"), simple("b"), simple("c")


def switch(**cases):
    return step_of("SWITCH", "route", decisionCases=cases)


CHANGES = {
    "no difference": (workflow(A), workflow(A), []),
    "fields that the server sets": (workflow(A), workflow(A, version=2, updatedBy="ann", updateTime=7), []),
    "the order of keys": (workflow(A), workflow(dict(reversed(A.items()))), []),
    "an explicit default": (workflow(A), workflow({**A, "joinOn": [], "description": ""}), []),
    "an added step": (workflow(A), workflow(A, B), ["step `b` added: Worker task, after `a`"]),
    "an added first step": (workflow(A), workflow(B, A), ["step `b` added: Worker task, first of all"]),
    "an added step with another name": (
        workflow(A),
        workflow(A, simple("b", name="send_mail")),
        ["step `b` added: Worker task `send_mail`, after `a`"],
    ),
    "a step added to a case": (
        workflow(switch(x=[])),
        workflow(switch(x=[A])),
        ["step `a` added: Worker task, first in `route`"],
    ),
    "a removed step": (workflow(A, B), workflow(A), ["step `b` removed: Worker task"]),
    "retries": (workflow({**A, "retryCount": 3}), workflow({**A, "retryCount": 5}), ["`a`: retries 3 to 5"]),
    "an added input": (
        workflow(A),
        workflow({**A, "inputParameters": {"x": "${workflow.input.x}"}}),
        ["`a`: input `x` set to `${workflow.input.x}`"],
    ),
    "a removed input": (
        workflow({**A, "inputParameters": {"x": [1]}}),
        workflow({**A, "inputParameters": {}}),
        ["`a`: input `x` removed, was [1]"],
    ),
    "a changed type": (workflow(A), workflow({**A, "type": "HTTP"}), ["`a`: type `SIMPLE` to `HTTP`"]),
    "a field of the workflow": (
        workflow(A, timeoutSeconds=60),
        workflow(A, timeoutSeconds=90),
        ["time limit in seconds 60 to 90"],
    ),
    "an added output": (
        workflow(A),
        workflow(A, outputParameters={"total": "${a.output.total}"}),
        ["output `total` set to `${a.output.total}`"],
    ),
    "a changed order": (workflow(A, B, C), workflow(B, C, A), ["step `a` moved after `c`"]),
    "a step moved to the front": (workflow(A, B, C), workflow(C, A, B), ["step `c` moved to the front"]),
    "a step moved into a branch": (
        workflow(A, switch(x=[B])),
        workflow(switch(x=[B, A])),
        ["step `a` moved to another place: decisionCases[x]"],
    ),
    "a step moved out of a branch": (
        workflow(switch(x=[B, A])),
        workflow(switch(x=[B]), A),
        ["step `a` moved to the main sequence"],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_differences_are_described_in_sentences(case):
    old, new, sentences = CHANGES[case]

    assert [change.sentence for change in semantic_changes(old, new)] == sentences


def test_long_values_are_cut():
    [change] = semantic_changes(workflow(A), workflow(A, description="x" * 500))

    assert len(change.sentence) < 130


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tasks", "taskReferenceName", "name", "type", "inputParameters", "decisionCases"]), inner
        )
    ),
    max_leaves=15,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["tasks", "name", "inputParameters", "timeoutSeconds"]), JSON)


@property_settings(40)
@given(DOCUMENTS, DOCUMENTS)
def test_any_two_documents_can_be_compared_and_none_differs_from_itself(one, other):
    assert isinstance(semantic_changes(one, other), list)
    assert semantic_changes(one, one) == []
