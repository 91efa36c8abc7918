"""Built-in workers' results are stored without the values of the secrets that they received."""

import json

import pytest
import requests

from conductor_app.access.secrets import redact

NAMED = ("KEY",)


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", 'to p"s3cret')
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", '{"hosts": ["db.inside"], "pin": 98765, "n": 7}')
    monkeypatch.setenv("CONDUCTOR_SECRET_OTHER", "somebody else's")


SPELLINGS = {
    "as it is": ('it is to p"s3cret!', "it is ***!"),
    "twice": ('to p"s3cret to p"s3cret', "*** ***"),
    "in an address": ("GET /to%20p%22s3cret/x", "GET /***/x"),
    "in a form": ("key=to+p%22s3cret", "key=***"),
    "in an address of requests": ("GET /to%20p%22s3cret?a=b", "GET /***?a=b"),
    "in JSON": ('{"key": "to p\\"s3cret"}', '{"key": "***"}'),
    "cut off at the end": ('it is to p"s3', "it is ***"),
    "a few letters that say nothing": ("it is to", "it is to"),
}


@pytest.mark.parametrize(("said", "kept"), SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_a_secret_that_are_hidden(said, kept):
    assert redact(said, NAMED) == kept


def test_a_secret_of_special_characters_is_hidden_as_requests_and_json_write_it(monkeypatch):
    secret = 'pa"ss\\wo/rd+x=&y \xe9%z'
    monkeypatch.setenv("CONDUCTOR_SECRET_ODD", secret)
    address, body = requests.utils.requote_uri(f"/echo?k={secret}"), json.dumps({"s": secret}, ensure_ascii=False)

    assert redact([address, body, json.dumps(secret)], ("ODD",)) == ["/echo?k=***", '{"s": "***"}', '"***"']


def test_a_secret_is_hidden_at_any_position_of_a_value():
    assert redact({"a": [1, None, {"b": 'to p"s3cret'}]}, NAMED) == {"a": [1, None, {"b": "***"}]}
    assert redact([{'x to p"s3cret': {'to p"s3cret': 1}}], NAMED) == [{"x ***": {"***": 1}}]


def test_the_parts_of_a_secret_that_is_json_are_hidden_but_no_part_of_a_few_characters():
    assert redact(["on db.inside by 98765", "7 times"], ("DB",)) == ["on *** by ***", "7 times"]


def test_other_secrets_are_none_of_its_business():
    assert redact("somebody else's", NAMED) == "somebody else's"


def test_an_unknown_secret_hides_nothing(db):
    assert redact("text", ("NOBODY",)) == "text"
