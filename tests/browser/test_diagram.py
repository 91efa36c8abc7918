"""Diagrams in a browser: zoom, pan, the overview of a large one, and the choice of an iteration."""

import re

import pytest
from playwright.sync_api import expect

from conductor_app.definitions.models import WorkflowDefinition
from tests.browser.page_checks import NARROW, assert_usable_by_everybody, has_no_horizontal_scroll
from tests.builders import loop, simple, step_of, switch
from tests.scenario import claim_and_report, define_task, define_workflow, start_run

BRANCHES = [[simple(f"branch_{number}")] for number in range(8)]
LOOP = loop("pages", simple("scan_page"), times=2)


@pytest.fixture
def large(transactional_db):
    """Start a run with 40 steps, wider and higher than the page, whose second iteration of a loop is open."""
    define_task("scan_page")
    join = step_of("JOIN", "together", joinOn=[f"branch_{number}" for number in range(8)])
    many = [simple(f"pack_{number}") for number in range(28)]
    define_workflow("parcels", LOOP, step_of("FORK_JOIN", "split", forkTasks=BRANCHES), join, *many)
    run = start_run("parcels")
    claim_and_report("scan_page")
    return f"/admin/conductor/run/{run.pk}/change/?tab=diagram&task=-"


def view_of(page):
    return page.locator(".diagram")


def width_of_drawing(page) -> float:
    return page.locator(".diagram-svg").bounding_box()["width"]


def scroll_of(page) -> list[int]:
    return view_of(page).evaluate("view => [view.scrollLeft, view.scrollTop]")


def test_a_large_diagram_fits_and_can_be_used_by_everybody(page, large):
    assert_usable_by_everybody(page, large)


def test_buttons_and_keys_zoom_and_the_zoom_survives_an_update(page, large):
    page.goto(large)
    page.locator("[data-zoom=full]").click()
    original = width_of_drawing(page)
    page.get_by_role("button", name="Zoom in").click()
    assert width_of_drawing(page) == pytest.approx(original * 1.25, abs=2)
    view_of(page).press("-")
    view_of(page).press("-")
    assert width_of_drawing(page) == pytest.approx(original / 1.25, abs=2)
    expect(page.locator("[data-zoom=full]")).to_have_text("80 %")

    claim_and_report("scan_page")
    expect(page.locator(".diagram-node.active, .diagram-node.waiting").filter(has_text="branch_0")).to_be_visible()
    assert width_of_drawing(page) == pytest.approx(original / 1.25, abs=2)

    view_of(page).press("0")
    assert view_of(page).evaluate("view => view.scrollHeight <= view.clientHeight + 200")


def test_the_texts_stay_readable_on_a_phone_and_without_javascript(page, large):
    page.set_viewport_size(NARROW)
    page.goto(large)

    assert has_no_horizontal_scroll(page)
    sizes = page.locator(".diagram-svg text").evaluate_all(
        """texts => texts.map((text) => {
             const svg = text.ownerSVGElement;
             return parseFloat(getComputedStyle(text).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width;
           })"""
    )
    assert min(sizes) >= 11


def test_a_diagram_of_two_columns_opens_whole_on_a_phone(page, transactional_db):
    define_workflow("trip", switch("route", {"fast": [simple("fly")]}, [simple("walk")]))
    page.set_viewport_size(NARROW)
    page.goto(f"/admin/conductor/run/{start_run('trip').pk}/change/?tab=diagram&task=-")

    assert width_of_drawing(page) <= view_of(page).evaluate("view => view.clientWidth")


def test_no_text_leaves_its_box(page, large):
    page.goto(large)

    too_wide = page.locator(".diagram-node").evaluate_all(
        """nodes => nodes.filter((node) => {
             const end = node.querySelector("rect:not(.behind)").getBoundingClientRect().right - 4;
             return [...node.querySelectorAll("text")].some((text) => text.getBoundingClientRect().right > end);
           }).map((node) => node.textContent)"""
    )
    assert too_wide == []


def test_the_overview_and_dragging_move_the_view_and_a_drag_follows_no_link(page, large):
    page.goto(large)
    expect(page.locator(".diagram-map rect")).to_have_count(41)
    box = page.locator(".diagram-map").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 12)
    _left, top = scroll_of(page)
    assert top > 1000

    box = view_of(page).bounding_box()
    address = page.url
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y + 100, steps=4)
    page.mouse.up()
    assert scroll_of(page)[1] == pytest.approx(top - 100, abs=2)
    assert page.url == address


def test_the_overview_of_a_diagram_covers_no_part_of_it(page, large):
    page.set_viewport_size({"width": 1280, "height": 900})
    define_workflow("claims", step_of("FORK_JOIN", "split", forkTasks=BRANCHES), step_of("JOIN", "joined"))
    wide = f"/admin/conductor/run/{start_run('claims').pk}/change/?tab=diagram"

    for address in (large, wide):
        page.goto(address)
        box, drawn = page.locator(".diagram-map").bounding_box(), view_of(page).bounding_box()
        is_beside = box["x"] >= drawn["x"] + drawn["width"]
        assert is_beside or box["y"] >= drawn["y"] + drawn["height"], address
        assert is_beside == (address == large)


def test_an_iteration_of_a_loop_is_chosen_in_the_diagram(page, large):
    page.goto(large)
    scan = page.locator(".diagram-node[data-ref=scan_page]")
    expect(scan).to_contain_text("Pending")

    for shown in ("2 / 2", "1 / 2"):
        page.get_by_role("link", name="Previous iteration of pages").click()
        expect(page.locator(".diagram-picker")).to_contain_text(shown)

    expect(scan).not_to_contain_text("Pending")
    expect(scan).to_have_attribute("href", re.compile("task=scan_page__1"))
    assert "iteration=pages%3A1" in page.url
    page.get_by_role("link", name="All iterations").press("Enter")
    expect(scan).to_contain_text("Pending")


def test_a_step_is_selected_without_leaving_the_place_in_the_diagram(page, large):
    page.goto(large)
    # An update that comes before the event of the scroll, which the browser sends with its next frame.
    view_of(page).evaluate(
        """view => {
            view.scrollTo(view.scrollLeft, 40);
            for (const name of ["ops:changing", "ops:changed"]) document.dispatchEvent(new CustomEvent(name));
        }"""
    )
    page.locator(".diagram-node[data-ref=scan_page]").dispatch_event("click")

    expect(page.locator("#task-open h2")).to_have_text("scan_page, iteration 2")
    assert scroll_of(page)[1] == 40


def test_the_whole_area_of_a_step_that_was_not_reached_is_a_link(page, large):
    page.goto(large)

    box = page.locator(".diagram-node[data-ref=split]").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.75)

    expect(page).to_have_url(re.compile("task=split"))


def test_a_diagram_that_is_wider_than_its_frame_fits_it_at_first(page, transactional_db):
    page.set_viewport_size({"width": 1280, "height": 900})
    define_workflow("claims", step_of("FORK_JOIN", "split", forkTasks=BRANCHES[:2]), step_of("JOIN", "joined"))
    page.goto(f"/admin/conductor/workflowdefinition/{WorkflowDefinition.objects.get().pk}/change/")

    scale = page.locator("[data-zoom=full]")
    expect(scale).not_to_have_text("100 %")
    assert view_of(page).evaluate("view => view.scrollWidth <= view.clientWidth")
    assert 60 <= int(scale.inner_text().split()[0]) < 100


def test_the_heading_of_a_closed_section_is_beside_its_triangle(page, transactional_db):
    define_workflow("claims", simple("pay"))
    page.goto(f"/admin/conductor/workflowdefinition/{WorkflowDefinition.objects.get().pk}/change/")

    assert page.locator("#tool summary").bounding_box()["height"] < 30


def test_a_diagram_that_is_too_wide_to_read_opens_at_the_waiting_step_with_an_overview(page, transactional_db):
    page.set_viewport_size({"width": 1280, "height": 900})
    define_workflow("claims", step_of("FORK_JOIN", "split", forkTasks=BRANCHES), step_of("JOIN", "joined"))
    run = start_run("claims")
    for number in range(7):
        define_task(f"branch_{number}")
        claim_and_report(f"branch_{number}")
    page.goto(f"/admin/conductor/run/{run.pk}/change/?tab=diagram&task=branch_7")

    expect(page.locator("[data-zoom=full]")).to_have_text("85 %")
    expect(page.locator(".diagram-map")).to_be_visible()
    expect(page.locator(".diagram-node[data-ref=branch_7]")).to_be_in_viewport()
    page.locator("[data-zoom=fit]").click()
    expect(page.locator(".diagram-map")).to_be_hidden()
