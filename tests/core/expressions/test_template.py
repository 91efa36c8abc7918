"""Resolution of `${…}` expressions in templates."""

import pytest

from conductor_app.core.expressions import MISSING, needed_references, resolve_template

from .scopes import ORDER


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${workflow.input.a}", {"b": 1}),
        ("${workflow.input.a.b}", 1),
        ("${workflow.input['a']['b']}", 1),
        ("${workflow.status}", "RUNNING"),
        ("${workflow.env.REGION}", "eu"),
        ("${pay.output.t}", True),
        ("${pay.output.f}", 1.0),
        ("${pay.output.list[*].n}", [1, 2]),
        ("${pay.output.list[-1].n}", 2),
        ("${pay..n}", [1, 2]),
        ("${$.pay.output.x}", 5),
        ("${pay.length()}", 1),
        ("${['my task'].output.x}", "mine"),
        ("${CPEWF_TASK_ID}", "t-1"),
        ("${pay.output.list[?(@.n == $.workflow.input.a.b)].n}", [1]),
    ],
)
def test_a_text_of_one_expression_has_the_type_of_its_value(template, expected):
    resolved = resolve_template(template, ORDER)

    assert resolved == expected
    assert type(resolved) is type(expected)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${workflow.input.missing}", None),
        ("${workflow.input.none}", None),
        ("${workflow.input.name.x}", None),
        ("${nobody.output.x}", None),
        ("${nobody.output.list[*].x}", []),
        ("${workflow.createdBy}", None),
        ("${pay.output.list[}", None),
        ("${pay.output.my name}", None),
        ("${*.output}", None),
    ],
)
def test_a_missing_or_unreadable_value_is_null(template, expected):
    assert resolve_template(template, ORDER) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Hi ${workflow.input.name}!", "Hi Bo!"),
        ("${workflow.input.name}${workflow.input.name}", "BoBo"),
        ("n=${workflow.input.missing}", "n=null"),
        ("m=${pay.output.m}", "m={a=1, b=x}"),
        ("l=${pay.output.l}", "l=[1, 2]"),
        ("t=${pay.output.t} f=${pay.output.f}", "t=true f=1.0"),
        ("all=${pay.output.list}", "all=[{n=1}, {n=2}]"),
        ("each=${pay.output.list[*]}", 'each=[{"n":1},{"n":2}]'),
        ("each=${pay.output.l[*]}", 'each=[1,"2"]'),
        ("none=${pay.output.list[*].z}", "none=[]"),
        ("id ${CPEWF_TASK_ID}", "id t-1"),
        ("bad ${pay.output.list[}", "bad null"),
    ],
)
def test_values_are_spliced_into_a_text_as_java_prints_them(template, expected):
    assert resolve_template(template, ORDER) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("$${workflow.input.k}", "${workflow.input.k}"),
        ("$${a ${workflow.input.k}}", "${a x}"),
        ("$$${workflow.input.k}", "$${workflow.input.k}"),
        ("${}", ""),
        ("a${  }b", "ab"),
        ("${abc", "${abc"),
        ("${abc ${workflow.input.k}", "${abc x"),
        ("}${workflow.input.k}{", "}x{"),
        ("$workflow {a}", "$workflow {a}"),
    ],
)
def test_dollars_and_braces_outside_expressions_are_text(template, expected):
    assert resolve_template(template, ORDER) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${pay.output.${workflow.input.k}}", 5),
        ("${${workflow.input.missing}}", "${${workflow.input.missing}}"),
        ("${pay.output.list[${workflow.input.a.b}].n}", 2),
        ("v=${pay.output.${workflow.input.k}}", "v=5"),
        ("${pay.output['$${x}']}", None),
    ],
)
def test_inner_expressions_are_spliced_into_the_outer_path(template, expected):
    assert resolve_template(template, ORDER) == expected


def test_a_resolved_value_is_not_expanded_a_second_time():
    assert resolve_template("${workflow.input.braces}", ORDER) == "$${a} ${workflow.input.k}"


def test_inserted_text_is_unescaped_too():
    assert resolve_template("> ${workflow.input.braces}", ORDER) == "> ${a} ${workflow.input.k}"


def test_maps_and_lists_are_walked_and_map_keys_are_not_evaluated():
    template = {"${workflow.input.k}": ["${workflow.input.k}", {"deep": "${pay.output.x}"}, 1, None, True]}

    assert resolve_template(template, ORDER) == {"${workflow.input.k}": ["x", {"deep": 5}, 1, None, True]}


def test_resolving_does_not_change_the_template():
    template = {"a": ["${workflow.input.k}"]}

    resolve_template(template, ORDER)

    assert template == {"a": ["${workflow.input.k}"]}


@pytest.mark.parametrize("template", ["${NETFLIX_ENV}", "at ${NETFLIX_ENV}!"])
def test_an_unknown_bare_name_is_not_resolved(template):
    assert resolve_template(template, ORDER) == template


@pytest.mark.parametrize(
    "template",
    ["${workflow.secrets.TOKEN}", "Bearer ${workflow.secrets.TOKEN}", "${workflow.secrets['A-B'].user}"],
)
def test_a_secret_is_not_resolved(template):
    assert resolve_template(template, ORDER) == template


def test_a_filter_cannot_read_secrets():
    references = []

    resolve_template(
        "${pay.output.list[?(@.n == $.workflow.secrets.X)]}", lambda root, key: references.append((root, key)) or {}
    )

    assert references == [("pay", "output")]


def test_a_secret_may_be_chosen_by_an_expression():
    assert resolve_template("${workflow.secrets.${workflow.input.name}}", ORDER) == "${workflow.secrets.Bo}"


def test_exceptions_of_the_scope_propagate():
    class ScopeError(Exception):
        pass

    def scope(root, key):
        raise ScopeError(root, key)

    with pytest.raises(ScopeError) as raised:
        resolve_template({"a": ["x ${pay.output.y}"]}, scope)
    assert raised.value.args == ("pay", "output")


def test_a_very_deep_document_is_resolved():
    template = "${workflow.input.k}"
    for _ in range(1_000):
        template = {"a": [template]}

    resolved = resolve_template(template, ORDER)

    for _ in range(1_000):
        resolved = resolved["a"][0]
    assert resolved == "x"


def test_a_very_deep_value_is_spliced_as_text():
    deep = 1
    for _ in range(5_000):
        deep = [{"a": deep}]

    assert resolve_template("> ${workflow.input.x}", lambda root, key: {"x": deep}).startswith("> [{a=[{a=")
    assert resolve_template("> ${workflow.input.x[*]}", lambda root, key: {"x": deep}).startswith('> [{"a":[{"a":')


def test_a_template_lists_its_references():
    template = {
        "a": "${workflow.input.a} and ${pay.output.x}",
        "b": ["${ship.output.${workflow.variables.k}}", "${${workflow.status}.output}"],
        "c": "${pay.output.list[?(@.n == $.stock.output.n)]}",
        "d": "${CPEWF_TASK_ID} ${workflow.secrets.X} ${broken[} $${not.this} ${}",
    }

    assert needed_references(template) == {
        ("workflow", "input"),
        ("pay", "output"),
        ("workflow", "variables"),
        ("workflow", "status"),
        ("stock", "output"),
        ("CPEWF_TASK_ID", ""),
    }


def test_a_template_without_expressions_has_no_references():
    assert needed_references({"a": [1, "x", None]}) == frozenset()


def test_a_reference_to_a_task_requests_all_its_parts():
    assert needed_references("${pay} ${ship[0]} ${stock..n}") == {("pay", ""), ("ship", ""), ("stock", "")}
    assert resolve_template("${unknown..n}", lambda root, key: MISSING) == []
