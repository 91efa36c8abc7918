"""A text is split into chunks that overlap, at paragraphs, lines or words where possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.primitives import split_text


@pytest.mark.parametrize(
    ("text", "size", "overlap", "chunks"),
    [
        ("", 5, 0, [""]),
        ("short", 5, 2, ["short"]),
        ("abcdefgh", 4, 0, ["abcd", "efgh"]),
        ("abcdefgh", 4, 2, ["abcd", "cdef", "efgh"]),
        ("one two three", 9, 0, ["one two ", "three"]),
        ("one\ntwo three", 9, 0, ["one\ntwo ", "three"]),
        ("first\n\nsecond line", 12, 0, ["first\n\n", "second line"]),
    ],
)
def test_a_chunk_ends_at_the_best_place_in_its_second_half(text, size, overlap, chunks):
    assert list(split_text(text, size, overlap)) == chunks


@given(st.text("ab \n", max_size=300), st.integers(1, 40), st.integers(0, 39))
def test_no_character_is_lost_and_no_chunk_is_too_long(text, size, overlap):
    overlap = min(overlap, size - 1)
    chunks = list(split_text(text, size, overlap))
    rebuilt, place = "", 0
    for chunk in chunks:
        assert len(chunk) <= size
        place = text.index(chunk, max(len(rebuilt) - overlap, 0))
        assert place <= len(rebuilt)
        rebuilt = text[: max(len(rebuilt), place + len(chunk))]

    assert rebuilt == text
