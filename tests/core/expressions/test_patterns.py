"""Regular expressions from users."""

import pytest

from conductor_app.core.expressions.patterns import (
    BadPattern,
    LinearPattern,
    PatternTooSlow,
    compile_pattern,
    full_match,
)


@pytest.mark.parametrize(
    ("source", "text", "flags", "expected"),
    [
        ("a.c", "abc", "", True),
        ("b", "abc", "", False),
        ("ABC", "abc", "i", True),
        ("a.c", "a\nc", "", False),
        ("a.c", "a\nc", "s", True),
        ("a b", "ab", "x", True),
        (r"(?=a)abc", "abc", "", True),
        (r"(a)\1", "aa", "", True),
        ("ä.", "ä\ud800", "", True),
        (r"\d", "٣", "", False),
        (r"(?=\d)\d", "٣", "", False),
    ],
)
def test_the_complete_text_must_match(source, text, flags, expected):
    assert full_match(source, text, flags) is expected


def test_an_ordinary_expression_runs_in_linear_time():
    assert isinstance(compile_pattern("(a+)+b"), LinearPattern)


def test_an_expression_with_endless_backtracking_is_stopped():
    with pytest.raises(PatternTooSlow):
        full_match(r"(?=a)(a|aa)+(b|c)\1", "a" * 60)


@pytest.mark.parametrize("source", ["(", "[z-a]", "a" * 2_000, "(?=b)(((a{100}){100}){100}){100}"])
def test_an_invalid_pattern_is_refused(source):
    with pytest.raises(BadPattern):
        compile_pattern(source)
