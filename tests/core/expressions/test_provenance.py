"""Provenance of the values of a template."""

from conductor_app.core.expressions import Provenance, trace_expressions

from .scopes import ORDER


def test_each_expression_is_traced_to_its_place_and_its_source():
    template = {"order": {"lines": [{"sku": "${pay.output.x}"}]}, "my key": "constant"}

    assert trace_expressions(template, ORDER) == [
        Provenance("order.lines[0].sku", "${pay.output.x}", "pay", "output", "x", found=True, value=5)
    ]


def test_an_existing_null_differs_from_a_missing_value():
    traced = trace_expressions(["${workflow.input.none}", "${workflow.input.gone}", "${nobody.output.x}"], ORDER)

    assert [(line.parameter, line.found, line.value) for line in traced] == [
        ("[0]", True, None),
        ("[1]", False, None),
        ("[2]", False, None),
    ]


def test_an_indefinite_path_without_results_is_missing():
    (line,) = trace_expressions("${pay.output.list[?(@.n > 9)].n}", ORDER)

    assert (line.parameter, line.path, line.found, line.value) == ("", "list[?(@.n > 9)].n", False, [])


def test_inner_expressions_are_listed_before_outer_ones():
    traced = trace_expressions({"a b": "v ${pay.output.${workflow.input.k}}"}, ORDER)

    assert [(line.parameter, line.expression, line.root, line.path, line.value) for line in traced] == [
        ("['a b']", "${workflow.input.k}", "workflow", "k", "x"),
        ("['a b']", "${pay.output.${workflow.input.k}}", "pay", "x", 5),
    ]


def test_a_broken_expression_has_no_source():
    (line,) = trace_expressions("${pay.output[}", ORDER)

    assert (line.root, line.key, line.found, line.value) == ("", "", False, None)


def test_a_secret_is_traced_without_its_value():
    (line,) = trace_expressions("${workflow.secrets.TOKEN}", ORDER)

    assert (line.root, line.key, line.path, line.value) == (
        "workflow",
        "secrets",
        "TOKEN",
        "${workflow.secrets.TOKEN}",
    )


def test_expressions_are_listed_in_document_order():
    template = {"b": ["${pay.output.x}", {"c": "${pay.output.x}"}], "a": "${pay.output.x}"}

    assert [line.parameter for line in trace_expressions(template, ORDER)] == ["b[0]", "b[1].c", "a"]
