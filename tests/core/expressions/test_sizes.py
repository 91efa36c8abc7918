"""The sizes of values are counted while expressions are resolved."""

import pytest

from conductor_app.core.errors import PayloadOverLimit
from conductor_app.core.expressions import resolve_template

LARGE = "x" * 1_000
DOCUMENTS = {"workflow.input": {"s": LARGE, "list": [LARGE], "n": 1}}


def scope(root: str, key: str):
    return DOCUMENTS[f"{root}.{key}"]


MULTIPLIED = {
    "a text, many times": ["${workflow.input.s}"] * 100_000,
    "texts in one text": "${workflow.input.s}" * 100_000,
    "a list, many times": {f"k{number}": "${workflow.input.list}" for number in range(100_000)},
    "objects in a text": "${workflow.input}" * 100_000,
    "texts in nested lists": [[["${workflow.input.s}"] * 20]] * 1_000,
}


@pytest.mark.parametrize("template", MULTIPLIED.values(), ids=MULTIPLIED)
def test_a_value_that_multiplies_a_payload_is_refused_at_the_limit(template):
    read = []

    def counted(root, key):
        read.append(key)
        return scope(root, key)

    with pytest.raises(PayloadOverLimit, match=r"^The input of task a would take more than 10000 bytes; 10000 are"):
        resolve_template(template, counted, 10_000, "The input of task a")

    assert len(read) <= 12


def test_values_up_to_the_limit_are_inserted():
    template = {"a": ["${workflow.input.s}"] * 9, "b": "${workflow.input.n}", "c": "${workflow.input.list}"}

    assert resolve_template(template, scope, 10_000) == {"a": [LARGE] * 9, "b": 1, "c": [LARGE]}


def test_a_path_that_expressions_make_too_long_has_no_value():
    assert resolve_template("${workflow.input." + "${workflow.input.s}" * 100 + "}", scope, 10_000) is None
