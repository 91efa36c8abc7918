"""Each citation of a specification leads to a section of spec."""

import re

import pytest

from tests.documentation.citations import ROOT, anchors, citations, citations_in

PAGES = ("execution", "api", "taskcluster")


def test_every_citation_in_code_and_tests_resolves_to_an_anchor():
    known = {page: anchors(page) for page in PAGES}
    found = list(citations())

    assert len(found) > 250
    assert [cited for cited in found if cited.anchor not in known.get(cited.page, ())] == []


@pytest.mark.parametrize(
    ("comment", "cited"),
    [
        ("# as there (execution §4.1).", [("execution", "s4-1")]),
        ("# (api §1.2a, §3.16)", [("api", "s1-2a"), ("api", "s3-16")]),
        ("# (api §3.2-3.4)", [("api", "s3-2"), ("api", "s3-4")]),
        ("# execution §11 rows 31 and 32", [("execution", "s11"), ("execution", "s11-31"), ("execution", "s11-32")]),
        ("# (execution §11 37, 38)", [("execution", "s11"), ("execution", "s11-37"), ("execution", "s11-38")]),
        ("# execution §12, item 7", [("execution", "s12"), ("execution", "s12-7")]),
        ("# RFC 9110 §14", []),
        ("# §3 of nothing", [("", "s3")]),
    ],
)  # fmt: skip
def test_a_citation_names_a_page_sections_and_rows(comment, cited):
    assert [(each.page, each.anchor) for each in citations_in(comment, "module.py")] == cited


def test_each_section_sign_in_code_and_tests_is_followed_by_a_number():
    marks = [(path, line) for path, line in lines_of_code() for _ in re.findall("§", line)]
    numbered = [(path, line) for path, line in lines_of_code() for _ in re.findall(r"§ ?\d", line)]

    assert len(marks) > 250
    assert set(marks) - set(numbered) == set()


def lines_of_code() -> list[tuple[str, str]]:
    paths = [path for folder in ("conductor_app", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        (path.as_posix(), line)
        for path in paths
        if "documentation" not in path.parts
        for line in path.read_text().splitlines()
    ]
