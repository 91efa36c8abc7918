"""Names and literals in a Python script, found without parsing it."""

import pytest

from conductor_app.core.expressions import script_names, without_texts

SCRIPT = """
total = orders[0].total  # the first
note = 'said \\' $.x' + "b # c" + '''d
 e \\''' f''' + \"\"\"g\"\"\"
return größe
"""


def test_texts_and_comments_are_ignored():
    assert without_texts("a = 'b' + \"c # d\" # e\nf") == "a = '' + '' ''\nf"


def test_tokens_are_names_and_keywords_in_order_of_first_use():
    assert script_names(SCRIPT) == ["total", "orders", "note", "return", "größe"]


def test_an_unclosed_text_ends_with_its_line_or_the_script():
    assert script_names("a = 'b\nc = '''d\ne") == ["a", "c"]


@pytest.mark.parametrize("text", ["'\\\\", "'''\\\\'''", '"\\\\', "'''", "#'\n"])
def test_a_text_of_quotes_is_read_in_one_pass(text):
    assert script_names(text * 100_000 + "\na") in ([], ["a"])
