"""Free text that names fields, as users of Elasticsearch write it (api §6.3)."""

import pytest

from conductor_app.core.errors import Invalid
from conductor_app.runs.search import RUNS, TASKS
from conductor_app.runs.search.free_text import parse_free_text
from conductor_app.runs.search.parser import And, Clause, Not, Or, parse_query

TRANSLATED = {
    "a quoted value": ('correlationId:"order 7"', 'correlationId = "order 7"', []),
    "a value in any case of the field": ("workflowtype:order", "workflowtype = order", []),
    "two fields": ('correlationId:"x" AND status:"RUNNING"', 'correlationId = "x" AND status = "RUNNING"', []),
    "a blank for AND": ("workflowType:a status:FAILED", "workflowType = a AND status = FAILED", []),
    "signs": ("+workflowType:a -status:FAILED", "workflowType = a AND NOT status = FAILED", []),
    "symbols": (
        "workflowType:a && !status:FAILED || version:2",
        "workflowType=a AND NOT status=FAILED OR version=2",
        [],
    ),
    "brackets": (
        "workflowType:a AND (status:FAILED OR NOT version:2)",
        "workflowType = a AND (status = FAILED OR NOT version = 2)",
        [],
    ),
    "alternatives": ('status:(FAILED OR "TIMED_OUT")', 'status = FAILED OR status = "TIMED_OUT"', []),
    "a range": ("startTime:[5 TO *]", "startTime >= 5", []),
    "a closed range": ("startTime:[5 TO 9]", "startTime >= 5 AND startTime <= 9", []),
    "a comparison": ("version:>=2", "version >= 2", []),
    "any value": ("event:*", "NOT event IS NULL", []),
    "a wildcard": ("workflowType:ord*", "workflowType = ord*", []),
    "escaped characters": (r"correlationId:a\:b\ c", 'correlationId = "a:b c"', []),
    "a value with colons": ("correlationId:urn:x:y", 'correlationId = "urn:x:y"', []),
    "a quote that is not closed": ('correlationId:"order 7', 'correlationId = "order 7"', []),
    "a quote in the value": (r'correlationId:"a\"b"', r'correlationId = "a\"b"', []),
    "a part of a document": ('input:"order 7"', 'input = "*order 7*"', []),
    "a member of a document": ("input.order.id:7", "input.order.id = 7", []),
    "a part of a reason": ("reasonForIncompletion:timeout", "reasonForIncompletion = *timeout*", []),
    "words beside a field": ('paid AND status:FAILED "two words"', "status = FAILED", ["paid", "two words"]),
}


@pytest.mark.parametrize(("text", "query", "words"), TRANSLATED.values(), ids=TRANSLATED)
def test_fields_in_free_text_are_read_as_a_query(text, query, words):
    found, rest = parse_free_text(text, RUNS)

    assert (shape(found), rest) == (shape(parse_query(query)), words)


def shape(condition):
    """Return a condition without positions, and without brackets that change nothing."""
    match condition:
        case Clause():
            return (condition.field, condition.operator, *(value.text for value in condition.values))
        case Not():
            return ("NOT", shape(condition.part))
        case And() | Or():
            return (type(condition).__name__, *map(shape, condition.parts))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("order 7", ["order", "7"]),
        ('"order 7" paid', ["order 7", "paid"]),
        ("*", []),
        ("http://host:8080/x", ["http://host:8080/x"]),
        ("urn:order:7 at 12:30", ["urn:order:7", "at", "12:30"]),
        ("NOT FOUND", ["NOT", "FOUND"]),
        ("a AND b", ["a", "b"]),
        ('a "OR" b', ["OR", "a", "b"]),
        ("* OR *", []),
    ],
)
def test_text_without_a_known_field_consists_of_words(text, words):
    assert parse_free_text(text, RUNS) == (None, words)


REFUSED = {
    "an unknown field": ('correlatonId:"x"', "unknown field 'correlatonId' of workflows. Did you mean correlationId?"),
    "an unknown field beside a known one": ('status:FAILED AND owner:"x"', "unknown field 'owner'"),
    "only an operator": ("OR", "freeText has no words, only OR. Write the words to search for"),
    "only AND": ("AND", "freeText has no words, only AND."),
    "only operators": ("AND OR", "freeText has no words, only AND and OR."),
    "a repeated operator": ("OR OR", "freeText has no words, only OR."),
    "an operator between empty quotes": ('"" OR ""', "freeText has no words, only OR."),
    "words with OR": ("paid OR status:FAILED", "such as 'paid', with AND only"),
    "words with OR, without a field": ("paid OR failed", "with AND only"),
    "a word in brackets": ("(paid status:FAILED)", "with AND only"),
    "an operator without a term": ("status:FAILED AND", "expected a field name"),
    "many words": ("status:FAILED " + "w " * 11, "at most 10 words"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_free_text_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(Invalid, match=message.replace("(", r"\(")):
        parse_free_text(text, RUNS)


def test_tasks_have_their_own_fields():
    found, _ = parse_free_text("taskDefName:pay AND referenceTaskName:p", TASKS)

    assert shape(found) == ("And", ("taskDefName", "=", "pay"), ("referenceTaskName", "=", "p"))
