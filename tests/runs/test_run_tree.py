"""Tree of a run: loops, iterations, branches and phases, and the rows that are visible."""

from dataclasses import replace

from conductor_app.runs.timeline.tree import Folding, TaskSpan, build_tree, visible_rows
from tests.builders import catch, dynamic_fork, each, fork, loop, step, switch, try_

PAGES = loop("pages", step("scan"), *fork([step("ocr"), step("check")], [step("pack")], join="joined"), times=3)


def span(key, status="COMPLETED", begin=0, end=10, **facts):
    ref, *iteration_path = key.split("__")
    return TaskSpan(
        key, ref, begin, end, 0, iteration_path=tuple(iteration_path), status=status, name=ref, task_id=key, **facts
    )


def tree(*spans, steps=()):
    return build_tree([replace(each, seq=number) for number, each in enumerate(spans, 1)], steps)


def outline(node):
    """Return the ids of a tree as nested dictionaries."""
    return {child.id: outline(child) for child in node.children}


def lines_of(root, **folding):
    return [f"{'  ' * row.depth}{row.id}" for row in visible_rows(root, Folding(**folding))]


def iteration(number, status="COMPLETED"):
    spans = [span(f"{ref}__{number}") for ref in ("scan", "fork_joined", "ocr", "check", "pack", "joined")]
    return [replace(each, status=status) if each.ref == "check" else each for each in spans]


def test_a_loop_has_iterations_and_a_fork_in_it_has_branches():
    assert outline(tree(span("pages"), *iteration(1), steps=[PAGES])) == {
        "pages": {
            "pages/1": {
                "scan__1": {},
                "fork_joined__1": {"fork_joined__1/1": {"ocr__1": {}, "check__1": {}}, "pack__1": {}},
                "joined__1": {},
            }
        }
    }


def test_a_loop_whose_task_is_not_stored_has_its_iterations_too():
    assert outline(tree(span("scan__7"), steps=[PAGES])) == {"pages": {"pages/7": {"scan__7": {}}}}


def test_the_tasks_of_a_dynamic_fork_are_below_it():
    spans = [span("fan"), *(span(ref, branch_head=ref, joined_by="join") for ref in ("x", "y")), span("join")]

    assert outline(tree(*spans, steps=dynamic_fork())) == {"fan": {"x": {}, "y": {}}, "join": {}}


def test_a_dynamic_branch_of_several_tasks_is_a_node():
    spans = [span("fan"), span("x", branch_head="x"), span("x2", branch_head="x", joined_by="join")]

    assert outline(tree(*spans, steps=dynamic_fork())) == {"fan": {"fan/x": {"x": {}, "x2": {}}}}


def test_the_phases_of_a_try_are_nodes():
    guard = try_("guard", step("pay"), on=[catch(step("refund"), statuses=["FAILED"])], last=[step("notify")])
    spans = [span("guard"), span("pay__1", "FAILED"), span("refund__2"), span("notify__3")]
    root = tree(*spans, steps=[guard])

    assert [child.children[0].id for child in root.children[0].children] == ["pay__1", "refund__2", "notify__3"]
    assert root.children[0].children[0].label == "try" and root.children[0].children[2].label == "finally"


def test_an_item_is_the_node_of_its_iteration():
    root = tree(span("all"), span("all_item__1"), span("pay__1__1"), steps=[each("all", step("pay"), items=[1])])

    assert outline(root) == {"all": {"all/1": {"pay__1__1": {}}}}
    assert root.children[0].children[0].span.key == "all_item__1"


def test_a_choice_adds_no_level():
    assert outline(tree(span("way"), span("a"), steps=[switch("way", {"x": [step("a")]})])) == {"way": {}, "a": {}}


def test_a_task_without_a_place_in_the_definition_is_at_the_top():
    assert outline(tree(span("gone__3"))) == {"gone__3": {}}


def test_iterations_have_the_state_and_the_span_of_their_tasks():
    inside = span("scan__1", "FAILED", 5, 8), span("ocr__1", begin=7, end=20)
    root = tree(span("pages", "ACTIVE"), *inside, steps=[PAGES])
    [first] = root.children[0].children

    assert (first.state, first.begin, first.end, first.task_count) == ("FAILED", 5, 20, 2)


def test_a_fork_fails_with_a_branch():
    assert tree(span("fork_joined__1"), span("ocr__1", "FAILED"), steps=[PAGES]).children[0].state == "FAILED"


def test_everything_is_open_in_a_small_run():
    assert lines_of(tree(span("pages"), span("scan__1"), span("scan__2"), steps=[PAGES])) == [
        "pages", "  pages/1", "    scan__1", "  pages/2", "    scan__2",
    ]  # fmt: skip


def test_a_node_is_closed_by_the_address():
    assert lines_of(tree(span("pages"), span("scan__1"), steps=[PAGES]), closed=frozenset({"pages"})) == ["pages"]


def test_many_siblings_become_a_summary_that_counts_them_and_failed_ones_stay_visible():
    loops = [task for number in range(1, 41) for task in iteration(number, "FAILED" if number == 17 else "COMPLETED")]
    root = tree(span("pages"), *loops, span("scan__41", "ACTIVE"), steps=[PAGES])

    rows = visible_rows(root, Folding())
    summary = next(row for row in rows if row.is_summary)
    assert summary.counts == {"COMPLETED": 39, "FAILED": 1, "ACTIVE": 1}
    assert [row.id for row in rows if row.id.startswith("pages/") and not row.is_summary] == ["pages/17", "pages/41"]
    assert "      fork_joined__17/1" not in lines_of(root) and "        fork_joined__17/1" in lines_of(root)


def test_an_open_summary_shows_all_siblings():
    root = tree(span("pages"), *(span(f"scan__{number}") for number in range(1, 101)), steps=[PAGES])

    assert len(lines_of(root)) == 1
    assert len(lines_of(root, opened=frozenset({"pages", "pages/*"}))) == 102


def test_the_selected_task_is_visible_in_a_large_run():
    loops = [task for number in range(1, 41) for task in iteration(number)]
    root = tree(span("pages"), *loops, steps=[PAGES])

    assert lines_of(root) == ["pages"]
    assert "            ".join(["", "check__23"]) not in lines_of(root)
    assert [each.strip() for each in lines_of(root, chosen="check__23")] == [
        "pages", "pages/*", "pages/23", "scan__23", "fork_joined__23", "fork_joined__23/1", "ocr__23", "check__23",
        "pack__23", "joined__23",
    ]  # fmt: skip


def test_steps_of_a_sequence_are_not_folded():
    assert len(lines_of(tree(*(span(f"step{number}") for number in range(30))))) == 30


def test_a_status_shows_its_tasks_and_what_is_around_them():
    root = tree(span("pages"), *iteration(1), *iteration(2, "FAILED"), steps=[PAGES])

    assert [each.strip() for each in lines_of(root, status="FAILED")] == [
        "pages", "pages/2", "fork_joined__2", "fork_joined__2/1", "check__2",
    ]  # fmt: skip
