"""Where the boxes and lines of a definition's picture stand."""

import re
from itertools import combinations

import pytest

from conductor_app.insight.definitions.diagram import Diagram, diagram
from tests.insight.scenarios import step

LOOP = step("poll", "DO_WHILE", loopCondition="$.poll['iteration'] < 12", loopOver=[step("ask"), step("answer")])
SWITCH = step("route", "SWITCH", decisionCases={"fast": [step("fly")], "slow": [step("walk")], "no": []})
FORK = step("parts", "FORK_JOIN", forkTasks=[[step("one")], [step("two"), step("three")], [LOOP]])
DYNAMIC = step("each", "FORK_JOIN_DYNAMIC")
GUARDED = step(
    "safe",
    "TRY_CATCH",
    tryTasks=[step("charge")],
    catchCases=[{"match": {"status": "TIMED_OUT"}, "tasks": [step("refund")]}],
    catchDefault=[step("alarm")],
    finallyTasks=[step("tidy")],
)
EVERYTHING = [step("first"), SWITCH, FORK, step("together", "JOIN"), DYNAMIC, step("all", "JOIN"), GUARDED, step("end")]


def drawn(*steps, **more) -> Diagram:
    return diagram({"tasks": list(steps)}, **more)


def box(picture: Diagram, ref: str):
    return next(node for node in picture.nodes if node.ref == ref)


def middle(node) -> int:
    return node.x + node.width // 2


def points(edge) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", edge.d)]


def test_consecutive_steps_are_aligned_vertically():
    picture = drawn(step("a"), step("b"), step("c"))

    assert [node.ref for node in picture.nodes] == ["a", "b", "c"]
    assert len({middle(node) for node in picture.nodes}) == 1
    assert [node.y for node in picture.nodes] == sorted(node.y for node in picture.nodes)


def test_branches_are_laid_out_side_by_side_below_their_fork():
    picture = drawn(FORK, step("together", "JOIN"))

    one, two, fork, join = (box(picture, ref) for ref in ("one", "two", "parts", "together"))
    assert one.y == two.y > fork.y + fork.height
    assert one.x + one.width < two.x
    assert join.y > box(picture, "three").y


def test_no_box_covers_another_and_all_of_them_are_inside():
    picture = drawn(*EVERYTHING)

    for one, two in combinations(picture.nodes, 2):
        beside = one.x + one.width <= two.x or two.x + two.width <= one.x
        assert beside or one.y + one.height <= two.y or two.y + two.height <= one.y, (one.ref, two.ref)
    for node in picture.nodes:
        assert node.x >= 0 and node.x + node.width <= picture.width and node.y + node.height <= picture.height
    assert all(0 <= x <= picture.width and 0 <= y <= picture.height for e in picture.edges for x, y in points(e))


def test_every_step_has_a_box_with_its_place_in_the_document():
    paths = {node.ref: node.path for node in drawn(*EVERYTHING).nodes}

    assert paths["fly"] == "tasks[1].decisionCases[fast][0]"
    assert paths["three"] == "tasks[2].forkTasks[1][1]"
    assert paths["ask"] == "tasks[2].forkTasks[2][0].loopOver[0]"
    assert paths["refund"] == "tasks[6].catchCases[0].tasks[0]" and paths["tidy"] == "tasks[6].finallyTasks[0]"


def test_a_line_leads_into_every_box():
    picture = drawn(*EVERYTHING)

    ends = {points(edge)[-1] for edge in picture.edges}
    assert [node.ref for node in picture.nodes if (middle(node), node.y) not in ends] == []


def test_cases_are_labeled_at_their_lines():
    assert [label.text for label in drawn(SWITCH).labels] == ["fast", "slow", "no", "otherwise"]


def test_the_body_of_a_loop_has_a_frame_and_a_back_edge():
    picture = drawn(LOOP)
    loop, ask, [frame] = box(picture, "poll"), box(picture, "ask"), picture.frames

    assert frame.y < loop.y and ask.y + ask.height < frame.y + frame.height
    back = next(edge for edge in picture.edges if points(edge)[-1][0] == loop.x + loop.width)
    assert points(back)[0][1] > box(picture, "answer").y
    assert loop.note == "max 12 iterations"


def test_a_step_that_ends_the_run_has_no_outgoing_line():
    picture = drawn(step("stop", "TERMINATE"), step("never"))

    assert not any(
        points(edge)[0] == (middle(box(picture, "stop")), box(picture, "stop").y + 46) for edge in picture.edges
    )


def test_a_sub_workflow_is_labeled_with_its_name():
    param = {"name": "payment", "version": 3}

    assert (
        box(drawn(step("pay", "SUB_WORKFLOW", subWorkflowParam=param)), "pay").subtitle == "SUB_WORKFLOW · payment v3"
    )


def test_a_selected_step_is_marked_and_its_box_has_the_given_link():
    picture = drawn(step("a"), step("b&c"), chosen="a", link=lambda ref, path: f"#{path}")

    assert [(node.is_chosen, node.href) for node in picture.nodes] == [(True, "#tasks[0]"), (False, "#tasks[1]")]
    assert drawn(step("b&c")).nodes[0].href == "?task=b%26c"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"tasks": None},
        {"tasks": "text"},
        {"tasks": [None, 3, [], {}, {"type": 7, "taskReferenceName": {"a": 1}, "name": None}]},
        {"tasks": [step("a", "SWITCH", decisionCases=[1], defaultCase={})]},
        {"tasks": [step("a", "SWITCH", decisionCases={"x": None, "y": {"z": 1}})]},
        {"tasks": [step("a", "FORK_JOIN", forkTasks={"a": 1}), step("b", "FORK_JOIN", forkTasks=[None, 4])]},
        {"tasks": [step("a", "DO_WHILE", loopOver="b", loopCondition=4), step("b", "DO_WHILE")]},
        {"tasks": [step("a", "TRY_CATCH", catchCases=[1, {"match": 4}, {"tasks": 3}], finallyTasks=4)]},
        {"tasks": [step("a", "SUB_WORKFLOW", subWorkflowParam=[1])]},
    ],
    ids=str,
)
def test_an_invalid_document_is_drawn_as_far_as_possible(document):
    picture = diagram(document)

    assert picture.width > 0 and picture.height > 0


def test_steps_nested_too_deeply_are_drawn_without_their_contents():
    nested = step("inmost")
    for level in range(200):
        nested = step(f"level {level}", "DO_WHILE", loopOver=[nested])

    assert 50 < len(drawn(nested).nodes) < 70


def test_of_too_many_branches_some_are_drawn_and_the_rest_counted():
    branches = [[step(f"b{number}")] for number in range(1000)]

    picture = drawn(step("fork", "FORK_JOIN", forkTasks=branches), step("join", "JOIN"))

    assert picture.nodes[0].note == "1000 branches"
    assert "984 more branches" in [node.ref for node in picture.nodes]
    assert len(picture.nodes) < 25


def test_a_very_long_definition_is_truncated_with_a_note():
    assert not drawn(*(step(f"s{number}") for number in range(1000))).is_cut

    cut = drawn(*(step(f"s{number}") for number in range(2500)))
    assert cut.is_cut and len(cut.nodes) == 2000
