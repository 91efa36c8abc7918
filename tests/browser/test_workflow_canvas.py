"""The canvas of the workflow editor in a browser: workflows are built, tested and started without writing JSON."""

import json

import pytest
from playwright.sync_api import expect

from conductor_app.definitions.models import WorkflowDefinition
from tests.browser.editor_text import replace_in_editor, text_of_editor
from tests.browser.page_checks import (
    NARROW,
    WIDE,
    assert_accessible,
    assert_usable_by_everybody,
    has_no_horizontal_scroll,
)
from tests.builders import catch, fork, human, simple, try_
from tests.scenario import define_workflow

WORKFLOWS = "/admin/conductor/workflowdefinition/"


def set_field(page, label: str, value: str) -> None:
    """Fill in a field of the panel, and wait until the text of the editor has the change."""
    with page.expect_response("**/canvas/"):
        page.get_by_label(label, exact=False).first.fill(value)
        page.keyboard.press("Enter")
    expect(page.locator(".step-panel")).to_have_attribute("aria-busy", "false")


def node(page, ref: str):
    return page.locator(f'.diagram-node[data-ref="{ref}"]')


@pytest.fixture
def order(transactional_db):
    define_workflow("order", simple("charge"), simple("ship", inputParameters={"receipt": "${charge.output.receipt}"}))
    return WorkflowDefinition.objects.get(name="order")


def test_the_canvas_is_used_by_keyboard_and_every_action_can_be_undone(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/")
    before = text_of_editor(page)
    node(page, "charge").focus()

    page.keyboard.press("F2")
    expect(page.get_by_label("Reference")).to_be_focused()
    page.keyboard.type("pay")
    page.keyboard.press("Enter")
    expect(node(page, "pay")).to_be_visible()
    assert "${pay.output.receipt}" in text_of_editor(page)

    page.keyboard.press("Escape")
    expect(node(page, "pay")).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator(".diagram-node").first).to_have_attribute("data-ref", "ship")

    node(page, "pay").focus()
    page.keyboard.press("Delete")
    expect(node(page, "pay")).to_have_count(0)
    expect(page.locator("[data-canvas-message]")).to_contain_text("1 value that read its output was removed")

    page.locator(".diagram-insert").last.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox", name="Search step types")).to_be_focused()
    page.keyboard.type("wait")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(node(page, "wait")).to_be_visible()

    for _ in range(4):
        page.get_by_role("button", name="Undo").click()
    expect(node(page, "charge")).to_be_visible()
    assert text_of_editor(page) == before
    node(page, "charge").focus()
    page.keyboard.press("Control+Shift+z")
    expect(node(page, "pay")).to_be_visible()


def test_the_default_handler_and_the_final_steps_of_a_try_step_are_edited_by_keyboard(page, transactional_db):
    define_workflow("order", try_("paid", simple("charge"), on=[catch()]), simple("refund"))
    page.goto(f"{WORKFLOWS}{WorkflowDefinition.objects.get(name='order').pk}/edit/")
    before = text_of_editor(page)

    page.locator('[role=button][data-insert="tasks[0].catchDefault[0]"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-panel-title]")).to_contain_text("first in paid › catch all others")
    page.keyboard.type("noop")
    page.keyboard.press("Enter")
    expect(node(page, "noop")).to_have_attribute("data-path", "tasks[0].catchDefault[0]")

    node(page, "refund").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="refund")).to_be_focused()
    page.get_by_label("Move to").select_option("first in paid › finally")
    page.get_by_role("button", name="Move", exact=True).press("Enter")
    expect(node(page, "refund")).to_have_attribute("data-path", "tasks[0].finallyTasks[0]")
    assert [*json.loads(text_of_editor(page))["tasks"][0]][-2:] == ["catchDefault", "finallyTasks"]

    node(page, "noop").focus()
    page.keyboard.press("Delete")
    expect(node(page, "noop")).to_have_count(0)
    assert "catchDefault" not in text_of_editor(page) and "finallyTasks" in text_of_editor(page)

    for _ in range(3):
        page.get_by_role("button", name="Undo").press("Enter")
    expect(node(page, "refund")).to_have_attribute("data-path", "tasks[1]")
    assert text_of_editor(page) == before


def test_places_for_a_step_are_named_by_the_steps_around_them(page, transactional_db):
    define_workflow("order", *fork([simple("weigh")], [simple("label")], ref="fork"))
    page.goto(f"{WORKFLOWS}{WorkflowDefinition.objects.get(name='order').pk}/edit/?view=canvas")

    for place in ("at the start", "first in fork › branch 2", "after label"):
        expect(page.get_by_role("button", name=f"Insert a step {place}", exact=True)).to_be_visible()


def test_the_focus_stays_on_a_plus_when_a_check_draws_the_diagram_again(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/")
    place = page.locator('[role=button][data-insert="tasks[1]"]')
    place.focus()
    replace_in_editor(page, '"taskReferenceName": "ship"', '"taskReferenceName": "send"', has_focus=False)
    expect(node(page, "send")).to_be_visible()
    expect(place).to_be_focused()


def test_a_step_type_is_found_by_ordinary_words_and_its_own_name_comes_first(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=canvas")
    page.locator(".diagram-insert").first.click()
    search = page.get_by_role("searchbox", name="Search step types")
    expected = {
        "http request": "HTTP request",
        "wait": "Wait",
        "approval": "Human task",
        "loop": "Loop",
        "if": "Switch",
        "parallel": "Fork",
        "stop": "Terminate",
        "terminate": "Terminate",
        "call api": "HTTP request",
        "email": "Worker task",
        "script": "Script",
        "delay": "Wait",
    }
    found = {}
    for words in expected:
        search.fill(words)
        found[words] = page.locator(".step-types li:not([hidden]) b").first.inner_text()
    assert found == expected

    search.fill("")
    expect(page.locator(".step-types li:not([hidden]) b").first).to_have_text("Worker task")


def test_a_phone_scrolls_to_the_form_of_a_step_that_was_added(page, transactional_db):
    page.set_viewport_size(NARROW)
    page.goto(f"{WORKFLOWS}add/?view=canvas")
    page.get_by_role("button", name="Add the first step").click()
    page.get_by_role("searchbox", name="Search step types").fill("worker")
    page.locator(".step-types button:visible").first.click()

    expect(page.get_by_label("Reference")).to_be_focused()
    expect(page.get_by_label("Description")).to_be_in_viewport(ratio=1)


def test_text_and_canvas_are_one_draft(page, order):
    page.goto(f"{WORKFLOWS}{order.pk}/edit/?view=json")
    expect(page.locator(".step-panel")).to_be_hidden()
    page.locator(".cm-content").focus()
    replace_in_editor(page, "${charge.", "${chrage.", has_focus=False)
    expect(page.locator(".diagram-finding")).to_have_count(1)

    page.get_by_role("link", name="Canvas").click()
    page.locator("[data-findings] a").first.click()
    panel = page.locator(".step-panel")
    expect(panel.get_by_text("There is no step chrage")).to_be_visible()
    panel.get_by_label("Value 1").fill("${charge.output.receipt}")
    page.get_by_role("button", name="Review and save").click()
    expect(page.get_by_text("There is no step")).to_have_count(0)
    expect(page.get_by_text("No change in meaning.")).to_be_visible()


def test_the_canvas_and_its_forms_fit_and_can_be_used_by_everybody(page, transactional_db):
    schema = {"properties": {"grade": {"enum": ["a", "b"]}, "note": {"type": "string"}}}
    asked = human("ask", inputs={"__humanTaskDefinition": {"jsonSchema": schema}})
    define_workflow("order", simple("charge", inputParameters={"a": "${charge.output.x}"}, optional=True), asked)
    address = f"{WORKFLOWS}{WorkflowDefinition.objects.get(name='order').pk}/edit/?view=canvas"
    assert_usable_by_everybody(page, address)
    for scheme, size in (("light", WIDE), ("dark", NARROW)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        for place in ('.diagram-node[data-ref="charge"]', '.diagram-node[data-ref="ask"]', ".diagram-insert"):
            with page.expect_response("**/canvas/"):
                page.locator(place).first.click()
            expect(page.locator(".step-panel :focus")).to_have_count(1)
            assert_accessible(page)
            assert has_no_horizontal_scroll(page), place
