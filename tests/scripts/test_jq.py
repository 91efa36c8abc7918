"""Results of jq programs, and their isolation from each other and from the server."""

import pytest

LIMIT = 0.3


@pytest.fixture
def run(pool):
    return lambda source, inputs=None: pool.evaluate("jq", source, {} if inputs is None else inputs, LIMIT)


VALUES = {
    "a member": (".a", [{"b": 1}]),
    "several values": (".list[]", [1, 2.5]),
    "no value": ("empty", []),
    "an object": ("{n: .list | length}", [{"n": 2}]),
    "NaN": ("nan", [None]),
    "a number beyond 64 bits": ("1e30", [1e30]),
    "a halt": ("1, halt, 2", [1]),
    "the environment, which is empty": ("$ENV, env", [{}, {}]),
}


@pytest.mark.parametrize(("source", "values"), VALUES.values(), ids=VALUES)
def test_a_program_returns_all_its_values(run, source, values):
    result = run(source, {"a": {"b": 1}, "list": [1, 2.5]})

    assert (result.error, result.value) == (None, values)


ID = 822106502566256641
EXACT = {
    "an integer beyond 2⁵³": (".x", ID),
    "one beyond 64 bits": (".big", 2**70),
    "one in a list that is filtered": ("[.l[] | select(.ok) | .id]", [ID]),
    "a number with a point": (".part", 1.0),
    "the sum of numbers with a point, which is whole": (".part + .part", 2),
    "an integer in a text": ('"id \\(.x)"', f"id {ID}"),
    "a number beyond all": ("1e1000", 1.7976931348623157e308),
}


@pytest.mark.parametrize(("source", "value"), EXACT.values(), ids=EXACT)
def test_a_number_that_is_only_passed_on_keeps_its_digits_and_its_type(run, source, value):
    result = run(source, {"x": ID, "big": 2**70, "l": [{"id": ID, "ok": True}, {"id": 1, "ok": False}], "part": 1.0})

    assert (result.error, result.value) == (None, [value])
    assert type(result.value[0]) is type(value)


ERRORS = {
    "bad syntax": ("foo(", "syntax error, unexpected end of file"),
    "an unknown function": ("nothere", "nothere/0 is not defined"),
    "an error of the script": ('error("no funds")', "no funds"),
    "a wrong type": (".a.b", "Cannot index number"),
    "a file": ('import "passwd" as $d {search: "/etc"}; $d', "module not found"),
    "a lone surrogate": ('"\ud800"', "surrogates not allowed"),
    "300 levels": ("reduce range(300) as $i (1; [.])", "nested deeper than 200 levels"),
    "parentheses that are closed twice": (".a) | (.a", "syntax error"),
    "no program": ("", "Top-level program not given"),
    "values of more than 10 MB": ('range(1e9) | "x" * 1000', "The script's result is larger than 10 MB."),
}


@pytest.mark.parametrize(("source", "sentence"), ERRORS.values(), ids=ERRORS)
def test_a_program_that_fails_is_explained_in_a_sentence(run, source, sentence):
    result = run(source, {"a": 1})

    assert sentence in result.error
    assert "\n" not in result.error
    assert run(".a", {"a": 1}).value == [1]


@pytest.mark.parametrize("source", ["def f: f; f", "[range(1e12)]"])
def test_an_endless_program_is_stopped_at_its_limit(pool, source):
    result = pool.evaluate("jq", source, {}, 0.1)

    assert (result.error, result.timed_out) == ("The script ran longer than 0.1 s and was stopped.", True)


def test_a_value_deeper_than_jq_itself_writes_is_refused(pool):
    result = pool.evaluate("jq", "reduce range(1e5) as $i (1.0; [.])", {}, 30)

    assert result.error == "The result is nested deeper than 200 levels."


def test_a_program_that_crashes_its_process_fails_alone(pool, run):
    result = pool.evaluate("jq", "reduce range(1e6) as $i (1; [.])", {}, 30)

    assert result.error == "The script crashed its helper process (SIGSEGV) and was stopped."
    assert run("1").value == [1]
