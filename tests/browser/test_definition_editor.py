"""The definition editor in a browser: validation, diagram, review, and saving a new version."""

import json

import pytest
from playwright.sync_api import expect

from conductor_app.definitions.models import WorkflowDefinition
from tests.browser.editor_text import replace_in_editor, text_of_editor
from tests.browser.page_checks import assert_usable_by_everybody
from tests.builders import simple
from tests.scenario import define_task, define_workflow

WORKFLOWS = "/admin/conductor/workflowdefinition/"
SELECTS_ALL = """() => {
    const { doc, selection: { main } } = document.querySelector("[data-code-editor]").codeView.state;
    return main.from === 0 && main.to === doc.length;
}"""
"""Whether the editor has read that the browser's selection contains the whole text."""
SELECT_AND_INSERT = """(content, data) => {
    content.focus();
    getSelection().selectAllChildren(content);
    const input = { inputType: "insertText", data, bubbles: true, cancelable: true };
    content.dispatchEvent(new InputEvent("beforeinput", input));
}"""
"""Inserts a text before the browser reports the selection that it replaces."""


@pytest.fixture
def order(transactional_db):
    define_task("charge")
    define_workflow("order", simple("charge"), simple("ship", inputParameters={"receipt": "${charge.output.receipt}"}))
    return WorkflowDefinition.objects.get(name="order")


def test_an_author_changes_a_workflow_and_saves_it_as_a_new_version(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=json")
    picture = page.locator("[data-picture]")
    expect(picture.locator(".diagram-node")).to_have_count(2)

    replace_in_editor(page, '"taskReferenceName": "ship"', '"taskReferenceName": "deliver"')
    expect(picture.get_by_role("link", name="deliver")).to_be_visible()

    replace_in_editor(page, "${charge.output", "${chrage.output")
    said = page.locator("[data-findings] li", has_text="There is no step chrage")
    expect(said).to_contain_text("Did you mean charge?")
    expect(said.get_by_role("link", name="deliver")).to_have_attribute("title", "line 17")
    expect(page.locator(".cm-lintRange-error")).to_have_text('"${chrage.output.receipt}"')

    replace_in_editor(page, "${chrage.output", "${charge.output")
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    page.get_by_role("button", name="Review and save").click()
    expect(page.get_by_text("step deliver added: Worker task ship, after charge")).to_be_visible()
    page.get_by_label("Reason", exact=True).fill("The carrier calls it so")
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("heading", name="order v2")).to_be_visible()
    expect(page.locator(".version-list")).to_contain_text("The carrier calls it so")

    page.get_by_role("link", name="Start a run").click()
    page.get_by_label("Correlation id").fill("order-4711")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name="order v2")).to_be_visible()
    expect(page.get_by_text("order-4711").first).to_be_visible()


def test_a_text_that_replaces_the_whole_document_keeps_to_the_policy_of_the_page(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=json")
    document = {"name": "order", "version": 1, "tasks": [simple("refund")]}

    for text in (json.dumps(document, indent=2), "{", json.dumps(document)):
        page.locator(".cm-content").press("Control+a")
        page.wait_for_function(SELECTS_ALL)
        page.keyboard.insert_text(text)
        # Firefox adds line breaks around a text that automation inserts in place of everything.
        page.wait_for_function("text => document.querySelector('[name=document]').value.trim() === text", arg=text)

    expect(page.locator("[data-picture]").get_by_role("link", name="refund")).to_be_visible()


def test_a_text_that_follows_a_selection_at_once_replaces_it(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=json")

    page.locator(".cm-content").evaluate(SELECT_AND_INSERT, '{"name": "order"}')

    assert text_of_editor(page) == '{"name": "order"}'


def test_a_box_of_the_diagram_leads_to_its_lines_and_edits_are_saved_as_a_draft(page, order):
    page.clock.install()
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=json")
    page.locator("[data-picture]").get_by_role("link", name="ship").click()
    expect(page.locator(".cm-activeLine").first).to_contain_text("{")
    expect(page.locator(".diagram-node.chosen")).to_have_attribute("data-ref", "ship")

    replace_in_editor(page, '"ship"', '"half')
    page.clock.fast_forward(5000)
    expect(page.locator("[data-draft-state]")).to_contain_text("Draft saved")
    page.reload()
    expect(page.get_by_text("Your draft from")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text('"half')


def test_the_authors_pages_fit_and_can_be_used_by_everybody(page, order):
    for path in ("change/?step=ship", "edit/", "compare/", "start/", "test/"):
        assert_usable_by_everybody(page, f"{WORKFLOWS}{order.pk}/{path}")


def test_findings_are_visible_without_scrolling(pages, olga, order):
    page = pages.open(olga, size={"width": 1280, "height": 800})
    page.goto(f"{WORKFLOWS}{order.pk}/edit/")

    expect(page.locator("[data-findings] .findings-sum")).to_be_in_viewport()
    expect(page.locator("[data-findings] .findings li").first).to_be_in_viewport()
