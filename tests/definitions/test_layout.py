"""Positions of boxes and lines in the diagram of a definition."""

import re
from itertools import combinations

import pytest

from conductor_app.definitions.diagram.canvas import Diagram, text_width
from conductor_app.definitions.diagram.layout import diagram
from conductor_app.definitions.diagram.marks import StepMark, StepMarks
from tests.builders import simple, step_of

LOOP = step_of("DO_WHILE", "poll", loopCondition="$.poll['iteration'] < 12", loopOver=[simple("ask"), simple("answer")])
SWITCH = step_of("SWITCH", "route", decisionCases={"fast": [simple("fly")], "slow": [simple("walk")], "no": []})
FORK = step_of("FORK_JOIN", "parts", forkTasks=[[simple("one")], [simple("two"), simple("three")], [LOOP]])
DYNAMIC = step_of("FORK_JOIN_DYNAMIC", "each")
GUARDED = step_of(
    "TRY_CATCH",
    "safe",
    tryTasks=[simple("charge")],
    catchCases=[{"match": {"status": "TIMED_OUT"}, "tasks": [simple("refund")]}],
    catchDefault=[simple("alarm")],
    finallyTasks=[simple("tidy")],
)
ALL_STEPS = [
    simple("first"),
    SWITCH,
    FORK,
    step_of("JOIN", "together"),
    DYNAMIC,
    step_of("JOIN", "all"),
    GUARDED,
    simple("end"),
]


def draw(*steps, **more) -> Diagram:
    return diagram({"tasks": list(steps)}, **more)


def test_the_drawing_is_wide_enough_for_the_label_of_the_case_that_a_run_took():
    route = step_of("SWITCH", "route", decisionCases={"fast": [simple("fly")]}, defaultCase=[])
    layout = draw(route, step_marks=StepMarks({"route": StepMark("COMPLETED", value="not fast")}))

    [label] = [each for each in layout.labels if each.is_decided]
    assert label.text == "otherwise: not fast"
    assert label.x + text_width(label.text, is_bold=True) <= layout.width


def find_box(layout: Diagram, ref: str):
    return next(node for node in layout.nodes if node.ref == ref)


def center_of(node) -> int:
    return node.x + node.width // 2


def points_of(edge) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", edge.d)]


def test_consecutive_steps_are_aligned_vertically():
    layout = draw(simple("a"), simple("b"), simple("c"))

    assert [node.ref for node in layout.nodes] == ["a", "b", "c"]
    assert len({center_of(node) for node in layout.nodes}) == 1
    assert [node.y for node in layout.nodes] == sorted(node.y for node in layout.nodes)


def test_branches_are_laid_out_side_by_side_below_their_fork():
    layout = draw(FORK, step_of("JOIN", "together"))

    one, two, fork, join = (find_box(layout, ref) for ref in ("one", "two", "parts", "together"))
    assert one.y == two.y > fork.y + fork.height
    assert one.x + one.width < two.x
    assert join.y > find_box(layout, "three").y


def test_no_box_covers_another_and_all_of_them_are_inside():
    layout = draw(*ALL_STEPS)

    for one, two in combinations(layout.nodes, 2):
        beside = one.x + one.width <= two.x or two.x + two.width <= one.x
        assert beside or one.y + one.height <= two.y or two.y + two.height <= one.y, (one.ref, two.ref)
    for node in layout.nodes:
        assert node.x >= 0 and node.x + node.width <= layout.width and node.y + node.height <= layout.height
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for e in layout.edges for x, y in points_of(e))


def test_every_step_has_a_box_with_its_place_in_the_document():
    paths = {node.ref: node.path for node in draw(*ALL_STEPS).nodes}

    assert paths["fly"] == "tasks[1].decisionCases[fast][0]"
    assert paths["three"] == "tasks[2].forkTasks[1][1]"
    assert paths["ask"] == "tasks[2].forkTasks[2][0].loopOver[0]"
    assert paths["refund"] == "tasks[6].catchCases[0].tasks[0]" and paths["tidy"] == "tasks[6].finallyTasks[0]"


def test_bodies_that_a_try_step_leaves_out_are_drawn_where_a_step_can_be_inserted_into_them():
    safe = step_of("TRY_CATCH", "safe", tryTasks=[simple("charge")], catchCases=[{"match": {}, "tasks": []}])
    added = {"tasks[0].catchDefault[0]", "tasks[0].finallyTasks[0]"}

    usual, editable = draw(safe), draw(safe, shows_absent_bodies=True)

    places, editable_places = ({e.insertion.path for e in each.edges if e.insertion} for each in (usual, editable))
    assert editable_places - places == added
    labels = [label.text for label in editable.labels if label.is_faint]
    assert labels == ["catch all others", "finally"] and not any(label.is_faint for label in usual.labels)
    assert all(0 <= x <= editable.width and 0 <= y <= editable.height for e in editable.edges for x, y in points_of(e))


def test_a_line_leads_into_every_box():
    layout = draw(*ALL_STEPS)

    ends = {points_of(edge)[-1] for edge in layout.edges}
    assert [node.ref for node in layout.nodes if (center_of(node), node.y) not in ends] == []


def test_cases_are_labeled_at_their_lines():
    assert [label.text for label in draw(SWITCH).labels] == ["fast", "slow", "no", "otherwise"]


def test_the_body_of_a_loop_has_a_frame_and_a_back_edge():
    layout = draw(LOOP)
    loop, ask, [frame] = find_box(layout, "poll"), find_box(layout, "ask"), layout.frames

    assert frame.y < loop.y and ask.y + ask.height < frame.y + frame.height
    back = next(edge for edge in layout.edges if points_of(edge)[-1][0] == loop.x + loop.width)
    assert points_of(back)[0][1] > find_box(layout, "answer").y
    assert loop.note == "max 12 iterations"


def test_lines_name_the_paths_at_which_a_step_can_be_inserted():
    drawn = draw(simple("first"), SWITCH, LOOP, simple("end"))

    found = {edge.insertion.path: edge.insertion.after for edge in drawn.edges if edge.insertion}
    assert found == {
        "tasks[0]": "",
        "tasks[1]": "first",
        "tasks[1].decisionCases[fast][0]": "",
        "tasks[1].decisionCases[fast][1]": "fly",
        "tasks[1].decisionCases[slow][0]": "",
        "tasks[1].decisionCases[slow][1]": "walk",
        "tasks[1].decisionCases[no][0]": "",
        "tasks[1].defaultCase[0]": "",
        "tasks[2]": "route",
        "tasks[2].loopOver[0]": "",
        "tasks[2].loopOver[1]": "ask",
        "tasks[2].loopOver[2]": "answer",
        "tasks[3]": "poll",
        "tasks[4]": "end",
    }


def test_buttons_that_insert_steps_cover_neither_boxes_nor_each_other():
    drawn = draw(*ALL_STEPS)

    spots = [(edge.x, edge.y) for edge in drawn.edges if edge.insertion]
    assert len(spots) > 20
    for x, y in spots:
        assert not any(
            node.x < x < node.x + node.width and node.y - 5 < y < node.y + node.height + 5 for node in drawn.nodes
        ), (x, y)
    for (x, y), (other_x, other_y) in combinations(spots, 2):
        assert abs(x - other_x) > 16 or abs(y - other_y) > 16


def test_no_step_can_be_inserted_between_a_fork_and_its_join():
    paths = [edge.insertion.path for edge in draw(FORK, step_of("JOIN", "together")).edges if edge.insertion]

    assert "tasks[0].forkTasks[0][0]" in paths and "tasks[2]" in paths and "tasks[1]" not in paths


def test_a_step_that_ends_the_run_has_no_outgoing_line():
    layout = draw(step_of("TERMINATE", "stop"), simple("never"))

    assert not any(
        points_of(edge)[0] == (center_of(find_box(layout, "stop")), find_box(layout, "stop").y + 46)
        for edge in layout.edges
    )


def test_a_sub_workflow_is_labeled_with_its_name():
    param = {"name": "payment", "version": 3}

    assert (
        find_box(draw(step_of("SUB_WORKFLOW", "pay", subWorkflowParam=param)), "pay").subtitle
        == "Sub-workflow · payment v3"
    )


def test_a_selected_step_is_marked_and_its_box_has_the_given_link():
    layout = draw(simple("a"), simple("b&c"), chosen="a", link=lambda ref, path: f"#{path}")

    assert [(node.is_chosen, node.href) for node in layout.nodes] == [(True, "#tasks[0]"), (False, "#tasks[1]")]
    assert draw(simple("b&c")).nodes[0].href == "?task=b%26c"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"tasks": None},
        {"tasks": "text"},
        {"tasks": [None, 3, [], {}, {"type": 7, "taskReferenceName": {"a": 1}, "name": None}]},
        {"tasks": [step_of("SWITCH", "a", decisionCases=[1], defaultCase={})]},
        {"tasks": [step_of("SWITCH", "a", decisionCases={"x": None, "y": {"z": 1}})]},
        {"tasks": [step_of("FORK_JOIN", "a", forkTasks={"a": 1}), step_of("FORK_JOIN", "b", forkTasks=[None, 4])]},
        {"tasks": [step_of("DO_WHILE", "a", loopOver="b", loopCondition=4), step_of("DO_WHILE", "b")]},
        {"tasks": [step_of("TRY_CATCH", "a", catchCases=[1, {"match": 4}, {"tasks": 3}], finallyTasks=4)]},
        {"tasks": [step_of("SUB_WORKFLOW", "a", subWorkflowParam=[1])]},
    ],
    ids=str,
)
def test_an_invalid_document_is_drawn_as_far_as_possible(document):
    layout = diagram(document)

    assert layout.width > 0 and layout.height > 0


def test_steps_nested_too_deeply_are_drawn_without_their_contents():
    nested = simple("inmost")
    for level in range(200):
        nested = step_of("DO_WHILE", f"level {level}", loopOver=[nested])

    assert 50 < len(draw(nested).nodes) < 70


def test_of_too_many_branches_some_are_drawn_and_the_rest_counted():
    branches = [[simple(f"b{number}")] for number in range(1000)]

    layout = draw(step_of("FORK_JOIN", "fork", forkTasks=branches), step_of("JOIN", "join"))

    assert layout.nodes[0].note == "1000 branches"
    assert "984 more branches" in [node.caption for node in layout.nodes]
    assert len(layout.nodes) < 25


def test_a_very_long_definition_is_truncated_with_a_note():
    assert not draw(*(simple(f"s{number}") for number in range(1000))).is_cut

    cut = draw(*(simple(f"s{number}") for number in range(2500)))
    assert cut.is_cut and len(cut.nodes) == 2000
