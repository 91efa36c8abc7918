"""Diffs of texts: complete, and in a time that grows with the lengths of the texts."""

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.utils import differences as text_diff
from conductor_app.utils.differences import GONE, NEW, SAME, diff_hunks

LINES = st.lists(st.sampled_from(["{", "}", "a", "b", "c", "d", "only here", "only there"]), max_size=60)


def texts_of(hunks: list, other: str) -> list[str]:
    return [line.text for hunk in hunks for line in hunk if line.kind != other]


@given(LINES, LINES, st.sampled_from([0, 10, 10_000]))
def test_a_diff_with_all_its_context_has_every_line_of_both_texts_in_order(old, new, most_compared):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_diff, "AROUND", 1_000)
        patch.setattr(text_diff, "MAX_COMPARED", most_compared)
        hunks = diff_hunks("\n".join(old), "\n".join(new))

    if old != new:
        assert texts_of(hunks, NEW) == old
        assert texts_of(hunks, GONE) == new


def test_a_changed_line_is_shown_with_its_neighbors():
    [hunk] = diff_hunks("a\nb\nc\nd\ne\nf", "a\nb\nc\nx\ne\nf")

    kinds = [(line.kind, line.text) for line in hunk]
    assert kinds == [*((SAME, each) for each in "abc"), (GONE, "d"), (NEW, "x"), (SAME, "e"), (SAME, "f")]


def steps(count: int, value: int) -> str:
    found = [{"name": f"s{n}", "type": "SIMPLE", "inputParameters": {"a": value, "b": [1, 2]}} for n in range(count)]
    return json.dumps(found, indent=2)


def test_two_versions_of_a_thousand_steps_are_compared_step_by_step_within_a_second():
    begun = process_time()

    hunks = diff_hunks(steps(1_000, 1), steps(1_000, 2))

    assert process_time() - begun < 1
    assert [line.text.strip() for line in hunks[0] if line.kind != SAME] == ['"a": 1,', '"a": 2,']


def test_texts_of_equal_lines_are_compared_within_a_second_and_a_long_diff_is_cut():
    begun = process_time()

    hunks = diff_hunks("\n".join("a" * (n % 3) for n in range(30_000)), "\n".join("a" * (n % 5) for n in range(30_000)))

    assert process_time() - begun < 1
    assert hunks[-1][-1].text == "…"
    assert sum(map(len, hunks)) <= text_diff.MAX_LINES + 1
