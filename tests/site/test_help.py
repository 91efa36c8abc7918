"""Help: the guide that each page leads to, and the documents as pages."""

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from conductor_app.site.help import DOCS, GUIDES, OTHERWISE, guide_address, render_markdown
from tests.page_text import html

DOCUMENTS = sorted(str(file.relative_to(DOCS)).removesuffix(".md") for file in DOCS.rglob("*.md"))


def words(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<!--.*?-->", "", markup, flags=re.S))).split())


def test_every_document_has_the_words_that_a_parser_of_markdown_finds():
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    for name in DOCUMENTS:
        text = re.sub(r"\A---\n.*?\n---\n", "", (DOCS / f"{name}.md").read_text(), flags=re.S)
        assert words(render_markdown(text, name)) == words(parser.render(text)), name


def test_every_guide_exists_and_the_longest_beginning_of_a_path_counts(db):
    assert {*GUIDES.values(), OTHERWISE} <= {*DOCUMENTS}
    assert guide_address("/admin/") == "/admin/help/reference/pages/"
    assert guide_address("/admin/conductor/run/") == "/admin/help/how-to/find-and-change-runs/"
    assert guide_address("/admin/conductor/run/7/change/") == "/admin/help/how-to/failed-and-waiting-runs/"
    assert guide_address("/admin/conductor/workflowdefinition/7/test/") == "/admin/help/how-to/test-workflows/"


def test_a_page_leads_to_its_guide_whose_links_lead_to_other_documents_and_headings(viewer):
    assert 'href="/admin/help/how-to/alerts-and-notifications/"' in html(viewer.get("/admin/alerts/"))
    guide = html(viewer.get("/admin/help/how-to/alerts-and-notifications/"))
    steps = html(viewer.get("/admin/help/how-to/ai-steps/"))

    assert "Receive alerts and notifications" in guide and 'href="/admin/help/index/"' in guide
    assert 'href="/admin/help/how-to/ai-steps/#be-notified-before-a-budget-is-spent"' in guide
    assert 'id="be-notified-before-a-budget-is-spent"' in steps


@pytest.mark.parametrize("name", ["../README", "how-to/none", "/etc/passwd"])
def test_only_documents_have_a_page(viewer, client, name):
    assert viewer.get(f"/admin/help/{name}/").status_code == 404
    assert client.get("/admin/help/how-to/limits/").status_code == 302
