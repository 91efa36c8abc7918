"""Edits of a workflow document: the steps are where they belong, and every reference still means the same step."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.definition import walk
from conductor_app.core.errors import Invalid, NotFound, RequestRefused
from conductor_app.core.expressions import needed_references
from conductor_app.core.step_edits import (
    WRAPPERS,
    delete_step,
    insert_steps,
    move_step,
    places_of,
    references_of,
    rename_step,
    replace_step,
    wrap_step,
)
from conductor_app.core.validation.checks import workflow_errors
from tests.builders import catch, definition, fork, join, loop, noop, step, sub_workflow, switch, try_
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition


def outline(steps) -> list:
    """Return the references of a document as nested lists: a step with its bodies is a list."""
    found = []
    for each in steps:
        inner = [each[name] for name in ("loopOver", "tryTasks") if name in each]
        inner += [*each.get("forkTasks", []), *each.get("decisionCases", {}).values()]
        ref = each["taskReferenceName"]
        found.append([ref, *(outline(body) for body in inner)] if inner else ref)
    return found


def outline_of(edit) -> list:
    return outline(edit.document["tasks"])


def joined(document, ref="join") -> list[str]:
    return next(spot.step["joinOn"] for spot in walk(document["tasks"]) if spot.ref == ref)


BRANCHES = definition(fork([step("a")], [step("b")], ref="fork"), step("c"))


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("tasks[0]", ["new", ["fork", ["a"], ["b"]], "join", "c"]),
        ("tasks[3]", [["fork", ["a"], ["b"]], "join", "c", "new"]),
        ("tasks[0].forkTasks[1][0]", [["fork", ["a"], ["new", "b"]], "join", "c"]),
    ],
)
def test_a_step_is_inserted_at_its_place(place, expected):
    edit = insert_steps(BRANCHES, place, [noop("new")])

    assert outline_of(edit) == expected and edit.path == place


def test_the_first_step_of_an_empty_body_creates_the_body():
    edit = insert_steps(definition({**loop("again"), "loopOver": []}), "tasks[0].loopOver[0]", [noop("new")])
    assert outline_of(edit) == [["again", ["new"]]]

    edit = insert_steps(definition({**switch("route", {"x": []})}), "tasks[0].defaultCase[0]", [noop("new")])

    assert edit.document["tasks"][0]["defaultCase"] == [noop("new")]


@pytest.mark.parametrize("field", ["catchDefault", "finallyTasks"])
def test_a_body_that_a_try_step_leaves_out_is_created_by_its_first_step_and_removed_with_its_last(field):
    document = definition(try_("safe", step("charge"), on=[catch()]), step("other"))
    place = f"tasks[0].{field}[0]"

    inserted = insert_steps(document, place, [noop("new")])
    moved = move_step(document, "tasks[1]", place)

    assert inserted.path == place and inserted.document["tasks"][0][field] == [noop("new")]
    assert moved.path == place and moved.document["tasks"][0][field] == [step("other")]
    assert delete_step(inserted.document, place).document == document
    assert move_step(moved.document, place, "tasks[1]").document == document


def test_inserted_steps_get_references_that_are_not_in_use():
    new = fork([step("a")], [step("x", inputs={"from": "${a.output.n}"})], ref="fork")

    edit = insert_steps(BRANCHES, "tasks[3]", new)

    assert outline_of(edit)[3:] == [["fork_2", ["a_2"], ["x"]], "join_2"]
    assert joined(edit.document, "join_2") == ["a_2", "x"]
    assert edit.document["tasks"][3]["forkTasks"][1][0]["inputParameters"] == {"from": "${a_2.output.n}"}


@pytest.mark.parametrize("place", ["tasks[1]", "tasks[9]", "tasks[0].loopOver[0]", "tasks", "x[0]", "tasks[-1]", ""])
def test_a_step_is_not_inserted_between_a_fork_and_its_join_or_at_an_unknown_place(place):
    with pytest.raises((Invalid, NotFound)):
        insert_steps(BRANCHES, place, [noop("new")])


def test_a_join_waits_for_the_new_last_step_of_a_branch():
    assert joined(insert_steps(BRANCHES, "tasks[0].forkTasks[0][1]", [noop("new")]).document) == ["new", "b"]
    assert joined(delete_step(BRANCHES, "tasks[0].forkTasks[0][0]").document) == ["b"]
    assert joined(wrap_step(BRANCHES, "tasks[0].forkTasks[1][0]", "loop").document) == ["a", "loop"]


def test_a_join_that_waits_for_chosen_steps_keeps_them():
    document = definition(fork([step("a"), step("b")], [step("c")], [step("d")], on=["a", "d"], ref="fork"))

    edit = insert_steps(document, "tasks[0].forkTasks[2][1]", [noop("new")])

    assert joined(edit.document) == ["a", "new"]


@pytest.mark.parametrize(
    ("path", "place", "expected"),
    [
        ("tasks[2]", "tasks[0]", ["c", ["fork", ["a"], ["b"]], "join"]),
        ("tasks[0]", "tasks[3]", ["c", ["fork", ["a"], ["b"]], "join"]),
        ("tasks[1]", "tasks[3]", ["c", ["fork", ["a"], ["b"]], "join"]),
        ("tasks[2]", "tasks[0].forkTasks[0][0]", [["fork", ["c", "a"], ["b"]], "join"]),
        ("tasks[0].forkTasks[0][0]", "tasks[0].forkTasks[1][1]", [["fork", [], ["b", "a"]], "join", "c"]),
        ("tasks[2]", "tasks[2]", [["fork", ["a"], ["b"]], "join", "c"]),
        ("tasks[2]", "tasks[3]", [["fork", ["a"], ["b"]], "join", "c"]),
    ],
)
def test_a_step_is_moved_and_a_fork_takes_its_join_along(path, place, expected):
    edit = move_step(BRANCHES, path, place)

    assert outline_of(edit) == expected


def test_a_step_is_moved_into_a_step_behind_it():
    edit = move_step(definition(step("a"), loop("again", step("b"))), "tasks[0]", "tasks[1].loopOver[1]")

    assert outline_of(edit) == [["again", ["b", "a"]]] and edit.path == "tasks[0].loopOver[1]"


def test_a_step_is_not_moved_into_itself():
    with pytest.raises(Invalid, match="into itself"):
        move_step(BRANCHES, "tasks[1]", "tasks[0].forkTasks[0][0]")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("fork", [["fork", ["a"], []], "join"]), ("loop", [["loop", ["a"]]]), ("try", [["try", ["a"]]])],
)
def test_a_step_is_wrapped(kind, expected):
    edit = wrap_step(definition(step("a")), "tasks[0]", kind)

    assert outline_of(edit) == expected and edit.path == "tasks[0]"
    assert workflow_errors(edit.document) == []


def test_a_wrapped_loop_has_a_condition_with_its_own_reference():
    edit = wrap_step(definition(loop("loop", step("a"), times=2)), "tasks[0]", "loop")

    assert edit.document["tasks"][0]["taskReferenceName"] == "loop_2"
    assert edit.document["tasks"][0]["loopCondition"].startswith("if ($.loop_2['iteration'] < 3)")
    assert "$.loop." in edit.document["tasks"][0]["loopOver"][0]["loopCondition"]


def test_an_unknown_wrapper_is_refused():
    with pytest.raises(Invalid, match="fork, loop, try"):
        wrap_step(BRANCHES, "tasks[2]", "bag")


TEXTS = {
    "${a.output.x}": "${z.output.x}",
    "to ${a.output.x} and ${ab.output.a}": "to ${z.output.x} and ${ab.output.a}",
    "${b.output.${a.output.x}}": "${b.output.${z.output.x}}",
    "$${a.output.x}": "$${a.output.x}",
    "${$.a.output.x}": "${$.z.output.x}",
    "${['a'].output.x}": "${['z'].output.x}",
    "${b.output.list[?(@.id == $.a.output.x)]}": "${b.output.list[?(@.id == $.z.output.x)]}",
    "${workflow.input.a}": "${workflow.input.a}",
    "${a}": "${z}",
    "a.output": "a.output",
}


@pytest.mark.parametrize(("text", "renamed"), TEXTS.items())
def test_an_expression_reads_the_renamed_step(text, renamed):
    document = definition(step("a"), step("b", inputs={"in": text}), outputParameters={"out": [text]})

    edit = rename_step(document, "tasks[0]", "z")

    assert edit.document["tasks"][1]["inputParameters"] == {"in": renamed}
    assert edit.document["outputParameters"] == {"out": [renamed]}


def test_joins_handlers_and_loop_conditions_name_the_renamed_step():
    body = try_("t", step("a"), on=[{"match": {"taskRef": ["a", "x"]}, "tasks": []}, {"match": {"taskRef": "a"}}])
    again = loop("again", *fork([body], [step("b")]))
    again["loopCondition"] = "$.a['n'] < $.again['iteration'] && $['a'] && $.ab && x.a"

    edit = rename_step(definition(again), "tasks[0].loopOver[0].forkTasks[0][0].tryTasks[0]", "z")
    edit = rename_step(edit.document, "tasks[0].loopOver[0].forkTasks[1][0]", "y")

    loop_step = edit.document["tasks"][0]
    assert loop_step["loopCondition"] == "$.z['n'] < $.again['iteration'] && $['z'] && $.ab && x.a"
    cases = loop_step["loopOver"][0]["forkTasks"][0][0]["catchCases"]
    assert [case["match"]["taskRef"] for case in cases] == [["z", "x"], "z"]
    assert joined(edit.document) == ["t", "y"]


def test_a_python_condition_reads_the_renamed_step():
    again = loop("again", step("a")) | {"evaluatorType": "python", "loopCondition": "a['n'] < again['iteration'] # 'a'"}

    edit = rename_step(definition(again), "tasks[0].loopOver[0]", "z")

    assert edit.document["tasks"][0]["loopCondition"] == "z['n'] < again['iteration'] # 'a'"


def test_an_inline_definition_keeps_the_references_of_its_own_steps():
    child = definition(step("a"), step("x", inputs={"in": "${a.output.n}"}))
    document = definition(step("a"), sub_workflow("s", child))

    edit = rename_step(document, "tasks[0]", "z")

    assert edit.document["tasks"][1]["subWorkflowParam"]["workflowDefinition"] == child


@pytest.mark.parametrize("ref", ["", " ", "workflow", "b", "a.b", "a b", "${a}"])
def test_an_invalid_reference_is_refused(ref):
    with pytest.raises(Invalid):
        rename_step(definition(step("a"), step("b")), "tasks[0]", ref)


def test_expressions_are_kept_while_two_steps_have_the_renamed_reference():
    document = definition(step("a"), step("a"), outputParameters={"out": "${a.output.x}"})

    edit = rename_step(document, "tasks[1]", "b")

    assert (references_of(edit.document), edit.document["outputParameters"]["out"]) == (["a", "b"], "${a.output.x}")


def test_a_deleted_step_is_read_by_nothing():
    inputs = {"gone": "${a.output.x}", "list": ["${a.output.y}", 1], "text": "for ${a.output.n} of ${b.output.n}"}
    document = definition(step("a"), step("b"), step("c", inputs=inputs), join("j", ["a", "b"]))

    edit = delete_step(document, "tasks[0]")

    assert edit.document["tasks"][1]["inputParameters"] == {"list": [None, 1], "text": "for  of ${b.output.n}"}
    assert joined(edit.document, "j") == ["b"]
    assert edit.removed == tuple(f"tasks[1].inputParameters.{name}" for name in ("gone", "list[0]", "text"))


def test_a_fork_is_deleted_with_its_branches_and_its_join():
    for path in ("tasks[0]", "tasks[1]"):
        assert outline_of(delete_step(BRANCHES, path)) == ["c"]


def test_the_document_of_a_step_is_replaced():
    edit = replace_step(BRANCHES, "tasks[2]", step("c", optional=True))

    assert edit.document["tasks"][2]["optional"] is True and BRANCHES["tasks"][2].get("optional") is None


def test_every_place_has_the_step_before_it_and_the_step_around_it():
    places = [(place.path, place.after, place.owner, place.branch) for place in places_of(BRANCHES)]

    assert places == [
        ("tasks[0]", "", "", 0),
        ("tasks[2]", "join", "", 0),
        ("tasks[3]", "c", "", 0),
        ("tasks[0].forkTasks[0][0]", "", "fork", 1),
        ("tasks[0].forkTasks[0][1]", "a", "fork", 1),
        ("tasks[0].forkTasks[1][0]", "", "fork", 2),
        ("tasks[0].forkTasks[1][1]", "b", "fork", 2),
    ]


# Properties ---------------------------------------------------------------------------------------------------------

DOCUMENTS = st.integers(0, 10_000).map(lambda seed: random_definition(Random(seed)))


def roots(document) -> set[str]:
    return {root for root, _key in needed_references(document)}


def joins(document) -> set[str]:
    return {ref for spot in walk(document["tasks"]) for ref in spot.step.get("joinOn") or ()}


def assert_consistent(before, after) -> None:
    """Assert that the edited document is valid, and that nothing in it names a step that it lacks."""
    refs = references_of(after)
    assert len(refs) == len(set(refs))
    assert roots(after) - set(refs) <= roots(before) - set(references_of(before))
    assert joins(after) <= set(refs)


@given(DOCUMENTS, st.data())
@property_settings(40)
def test_any_rename_changes_the_name_and_nothing_else(document, data):
    spot = data.draw(st.sampled_from(list(walk(document["tasks"]))))

    edit = rename_step(document, spot.path, "renamed")

    names = {spot.ref: "renamed"}
    assert references_of(edit.document) == [names.get(ref, ref) for ref in references_of(document)]
    assert roots(edit.document) == {names.get(root, root) for root in roots(document)}
    assert rename_step(edit.document, spot.path, spot.ref).document == document


@given(DOCUMENTS, st.data())
@property_settings(40)
def test_any_inserted_step_leaves_all_others_as_they_were(document, data):
    place = data.draw(st.sampled_from(list(places_of(document))))

    edit = insert_steps(document, place.path, [noop(references_of(document)[0])])

    assert set(references_of(document)) < set(references_of(edit.document))
    assert roots(edit.document) == roots(document) and workflow_errors(edit.document) == []
    assert_consistent(document, edit.document)


@given(DOCUMENTS, st.data())
@property_settings(40)
def test_any_move_keeps_every_step_and_every_reference(document, data):
    spot = data.draw(st.sampled_from(list(walk(document["tasks"]))))
    place = data.draw(st.sampled_from(list(places_of(document))))

    try:
        edit = move_step(document, spot.path, place.path)
    except Invalid:
        return

    assert sorted(references_of(edit.document)) == sorted(references_of(document))
    assert roots(edit.document) == roots(document)
    assert next(each.ref for each in walk(edit.document["tasks"]) if each.path == edit.path) == spot.ref
    assert_consistent(document, edit.document)


@given(DOCUMENTS, st.data())
@property_settings(40)
def test_any_wrapped_step_is_inside_a_new_step(document, data):
    spot = data.draw(st.sampled_from(list(walk(document["tasks"]))))

    edit = wrap_step(document, spot.path, data.draw(st.sampled_from(list(WRAPPERS))))

    wrapper = next(each for each in walk(edit.document["tasks"]) if each.path == edit.path)
    inside = [each.ref for each in walk(edit.document["tasks"]) if each.path.startswith(f"{edit.path}.")]
    assert wrapper.ref not in references_of(document) and spot.ref in inside
    assert set(references_of(document)) < set(references_of(edit.document)) and roots(edit.document) == roots(document)
    assert_consistent(document, edit.document)


@given(DOCUMENTS, st.data())
@property_settings(40)
def test_nothing_reads_a_step_after_any_deletion(document, data):
    spot = data.draw(st.sampled_from(list(walk(document["tasks"]))))

    edit = delete_step(document, spot.path)

    gone = set(references_of(document)) - set(references_of(edit.document))
    assert spot.ref in gone and not gone & (roots(edit.document) | joins(edit.document))
    assert_consistent(document, edit.document)


JUNK = st.sampled_from([None, 7, "", "${a.output.x}", [], {}, [[]], [{}], ["a", 1, None], {"": {"": []}}])


def spoil(value, data):
    """Return the value with one of its parts replaced by another value."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 5)) == 0:
        return data.draw(JUNK)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, copied = data.draw(st.sampled_from(keys)), value.copy()
    copied[key] = spoil(value[key], data)
    return copied


@given(DOCUMENTS, st.data())
@property_settings(80)
def test_any_malformed_document_is_edited_or_refused(document, data):
    tasks = document["tasks"]
    for _ in range(data.draw(st.integers(1, 3))):
        tasks = spoil(tasks, data)
    document = {**document, "tasks": tasks}
    paths = [spot.path for spot in walk(tasks)] + [place.path for place in places_of(document)]
    path, other = (data.draw(st.sampled_from(paths)) for _ in range(2))

    for edit in (
        lambda: insert_steps(document, path, [noop("a")]),
        lambda: move_step(document, path, other),
        lambda: wrap_step(document, path, "fork"),
        lambda: rename_step(document, path, "renamed"),
        lambda: replace_step(document, path, {}),
        lambda: delete_step(document, path),
    ):
        try:
            assert isinstance(edit().document, dict)
        except RequestRefused:
            continue
