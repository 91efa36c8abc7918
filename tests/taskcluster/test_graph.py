"""Dependency graph of a task group: longest chain, redundant dependencies and layout."""

import itertools

import pytest

from conductor_app.taskcluster.queries.groups import (
    OTHERS,
    GroupMember,
    MemberAttempt,
    build_graph,
    draw_group,
    drop_implied_edges,
    graph_levels,
    group_by_pattern,
    longest_chain,
    most_urgent_first,
)

NOW = 1_000


def member(
    id: str, begin: int | None = None, end: int | None = None, state: str = "COMPLETED", name: str = ""
) -> GroupMember:
    attempts = () if begin is None else (MemberAttempt(0, state, begin, begin + 1, end, "w", ""),)
    return GroupMember(id, name or id, state, "q", 1, 0, 9_999, False, attempts)


def names_of(members) -> list[str]:
    return [each.name for each in members]


def test_tasks_follow_their_dependencies_and_cycles_come_last():
    graph = build_graph(
        "abcxy", [("a", "b"), ("b", "c"), ("a", "c"), ("x", "y"), ("y", "x"), ("c", "c"), ("gone", "a")]
    )

    assert list(graph.order) == ["a", "b", "c", "x", "y"]
    assert {id: level for id, level in graph_levels(graph).items() if id in "abc"} == {"a": 0, "b": 1, "c": 2}


def test_the_longest_chain_is_the_one_that_took_most_time_not_the_one_with_most_tasks():
    members = [
        member("a", 0, 10),
        member("b", 10, 12),
        member("c", 12, 14),
        member("slow", 10, 90),
        member("d", 90, 95),
    ]
    graph = build_graph(
        (each.id for each in members), [("a", "b"), ("b", "c"), ("a", "slow"), ("c", "d"), ("slow", "d")]
    )

    chain = longest_chain(members, graph, NOW)

    assert chain.ids == ("a", "slow", "d")
    assert (chain.total_ms, chain.waited) == (95, 3)
    assert chain.edges == {("a", "slow"), ("slow", "d")}


def test_open_tasks_count_until_now_and_unstarted_tasks_count_zero():
    members = [member("a", 0, 10), member("b", 10, None, "LEASED"), member("c", None, None, "BLOCKED")]
    graph = build_graph("abc", [("a", "b"), ("b", "c")])

    assert longest_chain(members, graph, NOW).total_ms == NOW
    assert longest_chain([member("c", state="BLOCKED")], build_graph("c", []), NOW).ids == ()


def test_a_cycle_of_dependencies_ends_the_chain():
    members = [member("a", 0, 10), member("b", 0, 10)]

    assert longest_chain(members, build_graph("ab", [("a", "b"), ("b", "a")]), NOW).ids


def test_a_transitive_edge_is_omitted():
    graph = build_graph("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("c", "d")])

    assert drop_implied_edges(graph) == [("a", "b"), ("b", "c"), ("c", "d")]


def test_failed_tasks_come_first_and_names_sort_naturally():
    members = [
        member("1", state="COMPLETED", name="test 10"),
        member("2", state="COMPLETED", name="Test 2"),
        member("3", state="FAILED", name="z"),
        member("4", state="PENDING", name="a"),
    ]

    assert names_of(most_urgent_first(members)) == ["z", "a", "Test 2", "test 10"]
    assert names_of(most_urgent_first(members, after="4")) == ["Test 2", "test 10"]
    assert names_of(most_urgent_first(members, after="2", count=1)) == ["test 10"]


@pytest.mark.parametrize(
    ("task_names", "max_groups", "patterns"),
    [
        (["test 1", "test 22", "build"], 3, {"test #", "build"}),
        (["a-x", "a-y", "b-x"], 2, {"a", "b"}),
        (["a", "b", "c", "d"], 2, {"a", OTHERS}),
    ],
    ids=["names without numbers", "first words", "all others together"],
)
def test_tasks_with_similar_names_are_grouped(task_names, max_groups, patterns):
    members = [member(str(place), name=name) for place, name in enumerate(task_names)]

    groups = group_by_pattern(members, max_groups)

    assert set(groups) == patterns
    assert sorted(names_of(each for group in groups.values() for each in group)) == sorted(task_names)


def test_boxes_follow_their_dependencies_without_overlapping():
    members = [member(id, 0, 10) for id in "abcdefg"]
    edges = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("c", "e"), ("d", "f"), ("a", "g"), ("f", "g")]
    graph = build_graph("abcdefg", edges)

    drawn = draw_group(members, graph, longest_chain(members, graph, NOW), NOW)

    places = {box.ref: (box.x, box.y) for box in drawn.nodes}
    assert all(places[needed][0] < places[id][0] for needed, id in edges)
    assert_no_overlap(drawn)
    assert [edge.is_critical for edge in drawn.edges] == [False, True]
    assert [box.ref for box in drawn.nodes if box.is_critical] == ["a", "d", "f", "g"]


def test_too_many_tasks_are_drawn_as_one_box_per_kind():
    members = [member(str(n), 0, n, "FAILED" if n == 7 else "COMPLETED", f"{'ab'[n % 2]} {n}") for n in range(1_000)]
    graph = build_graph((each.id for each in members), [(str(n), str(n + 1)) for n in range(999)])

    drawn = draw_group(members, graph, longest_chain(members, graph, NOW), NOW)

    assert drawn.is_grouped
    assert {(box.caption, box.total, box.status) for box in drawn.nodes} == {
        ("a #", 500, "COMPLETED"),
        ("b #", 500, "FAILED"),
    }
    assert_no_overlap(drawn)


def test_a_complete_dependency_graph_stays_small():
    members = [member(str(n), n, n + 1) for n in range(200)]
    graph = build_graph((each.id for each in members), [(str(a), str(b)) for b in range(200) for a in range(b)])

    drawn = draw_group(members, graph, longest_chain(members, graph, NOW), NOW)

    assert sum(len(edge.d) for edge in drawn.edges) < 20_000


def test_of_long_names_the_part_that_differs_is_displayed():
    names = [
        f"test linux64 mochitest-{kind}-{number}" for kind in ("browser-chrome", "devtools-chrome") for number in (1, 2)
    ]
    members = [member(name, 0, 10) for name in (*names, "build")]

    drawn = draw_group(
        members, build_graph([*names, "build"], []), longest_chain(members, build_graph(names, []), NOW), NOW
    )

    assert {box.title for box in drawn.nodes} == {
        "…browser-chrome-1",
        "…browser-chrome-2",
        "…devtools-chrome-1",
        "…devtools-chrome-2",
        "build",
    }


def test_states_are_counted_with_failures_first():
    states = ["COMPLETED"] * 400 + ["CANCELED"] * 22 + ["FAILED"]
    members = [member(str(place), 0, 1, state, f"part {place}") for place, state in enumerate(states)]

    [box] = draw_group(
        members, build_graph((each.id for each in members), []), longest_chain([], build_graph([], []), NOW), NOW
    ).nodes

    assert list(box.counts.items()) == [("FAILED", 1), ("CANCELED", 22), ("COMPLETED", 400)]


def assert_no_overlap(drawn) -> None:
    """Assert that no box covers another and that all of them are inside the drawing."""
    boxes = sorted((box.x, box.y, box.width, box.height) for box in drawn.nodes)
    for (x, y, _width, height), (other_x, other_y, *_size) in itertools.pairwise(boxes):
        assert x != other_x or other_y >= y + height
    for x, y, width, height in boxes:
        assert 0 <= x <= drawn.width - width and 0 <= y <= drawn.height - height
