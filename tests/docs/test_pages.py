"""The code of the documentation, executed page by page, and the labels that it names."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

from tests.docs.code_blocks import ROOT, pages, read_code_blocks, server_mode

EXECUTED = ("bash", "python", "json")
OTHERWISE = ("javascript", "java", "xml", "properties")
"""Languages of files. The commands of their page execute them."""
INSTALLED_BY = {"javascript": "javascript_packages", "java": "java"}
"""The fixtures that install what a language needs, or skip the page."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_the_code_of_a_page_does_what_the_page_shows(page: Path, page_run, settings, request):
    text = page.read_text(encoding="utf-8")
    blocks = read_code_blocks(text)
    settings.CONDUCTOR_API_ACCESS = server_mode(text)
    for language in {block.language for block in blocks} & set(INSTALLED_BY):
        request.getfixturevalue(INSTALLED_BY[language])

    for block in blocks:
        page_run.execute(block)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_each_block_of_a_page_is_executed_or_says_why_not(page: Path):
    blocks = read_code_blocks(page.read_text(encoding="utf-8"))

    unclear = [
        f"{page.name}:{block.line}"
        for block in blocks
        if (block.language in EXECUTED and block.exemption and len(block.exemption.split()) < 4)
        or (block.language in OTHERWISE and not block.is_file and not block.exemption)
        or (block.title and not (block.is_output or block.is_terminal or block.is_file))
    ]

    assert unclear == []


CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
LABEL = re.compile(r"^(?:- )?\*\*[^*]+?\*\*|\*\*([^*]+?)\*\*", re.MULTILINE)
"""Bold words at the beginning of a line introduce a paragraph or an item. Others are labels of pages."""
LITERAL = r"""(u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))"""
CALL = re.compile(rf"(?:gettext|_)\({LITERAL}(?:, {LITERAL})?")
"""A call of gettext, with a singular and a plural, or a context and a text."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_each_label_in_bold_exists_in_the_pages(page: Path):
    texts = page_texts()
    patterns = [re.sub(r"%\\\((\w+)\\\)[sd]", ".+", re.escape(text)) for text in texts if "%(" in text]
    labels = {
        " ".join(label.split()) for label in LABEL.findall(CODE.sub("", page.read_text(encoding="utf-8"))) if label
    }

    unknown = labels - texts

    assert {label for label in unknown if not any(re.fullmatch(pattern, label) for pattern in patterns)} == set()


@cache
def page_texts() -> frozenset[str]:
    """Return the texts of pages, as gettext would extract them from the code and the templates."""
    return frozenset([*code_texts(), *template_texts()])


def code_texts() -> Iterator[str]:
    for path in (ROOT / "conductor_app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if name == "_" or "gettext" in name:
                yield from (each.value for each in node.args if isinstance(each, ast.Constant))


def template_texts() -> Iterator[str]:
    # Django turns the tags of a template into calls such as gettext(u'Save').
    for path in (ROOT / "templates").rglob("*.html"):
        calls = CALL.findall(templatize(path.read_text(encoding="utf-8")))
        yield from (ast.literal_eval(text) for call in calls for text in call if text)
