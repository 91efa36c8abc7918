"""Errors in the expressions of a template when its definition is registered."""

from conductor_app.core.expressions import check_template, expression_roots


def test_an_invalid_path_is_reported_with_its_position():
    (validation_error,) = check_template({"good": "${pay.output.x}", "lines": ["a ${pay.output.list[} b"]})

    assert validation_error.parameter == "lines[0]"
    assert validation_error.expression == "${pay.output.list[}"
    assert "expected ['name']" in validation_error.problem


def test_a_composed_path_is_not_checked_but_its_parts_are():
    validation_errors = check_template("${pay.output[${workflow.input.n}]} ${pay.output.${a b}}")

    assert [each.expression for each in validation_errors] == ["${a b}"]


def test_an_expression_must_start_with_a_name():
    (validation_error,) = check_template("${$..n}")

    assert "begins with a name" in validation_error.problem


def test_blank_escaped_and_unbalanced_expressions_are_valid():
    assert check_template("${} $${a b} ${a b") == []


def test_the_roots_of_a_template_are_the_first_names_of_its_expressions():
    template = ["${pay.output.x} ${['my task'].output}", {"a": "${workflow.input.${ship.output.k}} ${CPEWF_TASK_ID}"}]

    assert expression_roots(template) == {"pay", "my task", "ship", "CPEWF_TASK_ID"}
