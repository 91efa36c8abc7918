"""Expressions over arbitrary JSON: resolving never raises and always ends."""

import json

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.expressions import (
    BadPath,
    check_template,
    compile_path,
    expression_roots,
    java_text,
    needed_references,
    resolve_template,
    trace_expressions,
)
from conductor_app.core.expressions.json_text import json_text
from conductor_app.core.secret_places import resolve_places, restore_places
from tests.hypothesis_profile import property_settings

FRAGMENTS = [
    *["${", "}", "$", "{", "$${", ".", "..", "[", "]", "*", "['", "']", "[0]", "[?(", ")]", "@", "==", "=~ /a/", "&&"],
    *["workflow", "input", "output", "pay", "secrets", "a", "x y", "length()", "concat(", ")", "1:", ",", "!", " in "],
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
documents = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4))
)


@given(template=documents, document=documents)
@property_settings(200)
def test_resolve_never_raises(template, document):
    def scope(root, key):
        return document

    resolve_template(template, scope)
    trace_expressions(template, scope)
    check_template(template)
    assert expression_roots(template) == {root for root, _ in needed_references(template)}
    resolve_places(document, restore_places(template, document, document), lambda name: java_text(document))


@given(path=texts, document=documents)
@property_settings(200)
def test_a_path_is_refused_or_read(path, document):
    try:
        value = compile_path(path).read(document)
    except BadPath:
        return
    assert compile_path(path).is_definite or isinstance(value, list)


@given(template=documents)
def test_a_value_without_expressions_resolves_to_itself(template):
    if "${" not in json.dumps(template):
        assert json.dumps(resolve_template(template, None)) == json.dumps(template)


@given(document=documents)
def test_json_text_can_be_read_back(document):
    assert json.dumps(json.loads(json_text(document))) == json.dumps(document)
