"""Hostile paths and documents: they are rejected or answered quickly and never overflow the stack."""

import pytest

from conductor_app.core.expressions import MISSING, BadPath, compile_path, resolve_template


def nest(depth, wrap, value=1):
    """Return a value that is nested in `depth` containers."""
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "path",
    [
        "a" * 20_000,
        "a[?(" + "(" * 500 + "@.b" + ")" * 500 + ")]",
        "a[?(" + "!" * 500 + "(@.b))]",
        "a" + "[?(@" * 400 + ".x" + ")]" * 400,
        "a[?(@ == " + "[" * 500 + "]" * 500 + ")]",
        "concat(" * 500 + ")" * 500,
        "a[99999999999]",
    ],
    ids=["long", "parentheses", "negations", "filters", "literals", "calls", "index"],
)
def test_a_path_that_is_too_long_or_too_deep_is_refused(path):
    with pytest.raises(BadPath):
        compile_path(path)


def test_a_long_plain_path_is_read_without_recursion():
    document = nest(2_000, lambda value: {"a": value})

    assert compile_path(".".join(["a"] * 2_000)).read(document) == 1


def test_a_descent_into_a_very_deep_document_finds_the_bottom():
    document = nest(50_000, lambda value: {"a": [value]}, value={"x": 7})

    assert compile_path("$..x").read(document) == [7]


def test_deep_values_can_be_compared():
    document = {"one": nest(50_000, lambda value: [value]), "other": nest(50_000, lambda value: [value])}

    assert len(compile_path("$[?(@.one == $.other)]").read(document)) == 1


@pytest.mark.parametrize(
    "path",
    [
        "$..*..*..*..*",
        "$" + "[0,0,0,0,0,0,0,0,0,0]" * 12,
        "$.wide[?($.wide subsetof $.wide)]",
    ],
)
def test_a_path_that_visits_too_much_is_stopped(path):
    document = nest(300, lambda value: [value])
    with pytest.raises(BadPath, match="visits more than"):
        compile_path(path).read(
            {"wide": list(range(5_000)), "0": document} if "wide" in path or "*" in path else document
        )


def test_a_slice_ends_with_the_list():
    assert compile_path("a[-999999999:999999999]").read({"a": [1, 2]}) == [1, 2, 1, 2]


def test_a_slow_regular_expression_resolves_to_null():
    path = "list[?(@ =~ /(?=a)(a|aa)+(b|c)\\1/)]"
    texts = ["a" * 40] * 100

    with pytest.raises(BadPath, match="too slow"):
        compile_path(path).read({"list": texts})
    assert resolve_template("${workflow.input." + path + "}", lambda root, key: {"list": texts}) == []


def test_a_catastrophic_expression_runs_in_linear_time():
    assert compile_path("list[?(@ =~ /(a+)+b/)]").read({"list": ["a" * 50_000]}) == []


@pytest.mark.parametrize(
    "text",
    ["${" * 5_000, "${" * 5_000 + "}" * 5_000, "{" * 100_000, "${a}" * 2_000, "$" * 100_000 + "{a}"],
    ids=["open", "nested", "braces", "many", "dollars"],
)
def test_a_hostile_text_is_resolved(text):
    resolve_template(text, lambda root, key: MISSING)
