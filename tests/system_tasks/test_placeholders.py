"""Positions of a statement's parameters, and question marks that are not parameters."""

import pytest

from conductor_app.system_tasks.sql import InvalidStatement, replace_placeholders

STATEMENTS = {
    "two parameters": ("a = ? AND b=?", "a = $1 AND b=$2"),
    "in a text": ("a = '?' AND b = ? AND c = 'it''s ?' AND d = ?", "a = '?' AND b = $1 AND c = 'it''s ?' AND d = $2"),
    "in a text with escapes": (r"a = E'\'?' AND b = ? OR ?", r"a = E'\'?' AND b = $1 OR $2"),
    "in a text after a word": (r"a LIKE'\' AND b = ? OR ?", r"a LIKE'\' AND b = $1 OR $2"),
    "in a name": ('"wh?t" = ? OR ?', '"wh?t" = $1 OR $2'),
    "in a line's comment": ("a = ? -- why?\n OR ?", "a = $1 -- why?\n OR $2"),
    "in a comment": ("a = ? /* why?\n? */ OR ?", "a = $1 /* why?\n? */ OR $2"),
    "in dollar quotes": ("a = ? OR $q$ ? $q$ OR $$?$$ OR ?", "a = $1 OR $q$ ? $q$ OR $$?$$ OR $2"),
    "as an operator": ("data ?? ? OR ?", "data ? $1 OR $2"),
}


@pytest.mark.parametrize(("given", "written"), STATEMENTS.values(), ids=STATEMENTS)
def test_each_parameter_is_spelled_by_its_number(given, written):
    assert replace_placeholders(given, 2, lambda number: f"${number}") == written


@pytest.mark.parametrize("count", [0, 2])
def test_as_many_values_as_parameters_are_needed(count):
    with pytest.raises(InvalidStatement, match=rf"has 1 parameters \(\?\), but {count} values are given"):
        replace_placeholders("a = ?", count, lambda number: "?")


@pytest.mark.parametrize("opening", ["'", '"', "/*", "$a$", "E'\\'", "--"])
def test_unterminated_literals_are_scanned_in_linear_time(opening):
    assert replace_placeholders(opening + "?/*$b$" * 50_000, 0, lambda number: "!")
