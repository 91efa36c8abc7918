"""Help: the guide that each page leads to, and the documents as pages."""

import re

import pytest

from conductor_app.site.help import DOCS, GUIDES, OTHERWISE, guide_address, render_markdown
from tests.page_text import html

DOCUMENTS = sorted(str(file.relative_to(DOCS)).removesuffix(".md") for file in DOCS.rglob("*.md"))


def test_each_link_of_a_document_leads_to_a_document_and_to_one_of_its_headings():
    pages = {f"/admin/help/{name}/": render_markdown((DOCS / f"{name}.md").read_text(), name) for name in DOCUMENTS}
    links = [(name, found) for name in pages for found in re.findall(r'href="(?!http)([^"]+)"', pages[name])]

    assert len(links) > 100
    for name, link in links:
        address, _sign, anchor = link.partition("#")
        assert not anchor or f'id="{anchor}"' in pages[address or name], (name, link)
        assert (address or name) in pages


def test_a_document_has_its_tables_and_code_but_no_front_matter_and_no_pictures():
    heading, table = "---\ntitle: x\n---\n# A `b`, c\n![film](film.gif)\n", "|a|\n|-|\n|1|\n"
    text = f"{heading}\n{table}\n```json\n<b>\n```\n[code](../../code.py)\n"

    assert render_markdown(text, "how-to/limits") == (
        '<h1 id="a-b-c">A <code>b</code>, c</h1>\n<p></p>\n<div class="scroll"><table>\n<thead>\n<tr>\n<th>a</th>\n'
        "</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n</tr>\n</tbody>\n</table></div>\n"
        '<pre tabindex="0"><code class="language-json">&lt;b&gt;\n</code></pre>\n<p><a>code</a></p>\n'
    )


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
