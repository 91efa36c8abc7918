"""The page of a run in a browser: it follows the run, and one choice holds on all tabs."""

import re

import pytest
from playwright.sync_api import expect

from conductor_app.runs.commands import repair as run_commands_repair
from tests.browser.page_checks import (
    NARROW,
    WIDE,
    assert_usable_by_everybody,
    has_no_horizontal_scroll,
    protruding_texts,
)
from tests.builders import loop, simple
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, reload_run, start_run


@pytest.fixture
def looped(transactional_db):
    """Return a run with a loop that failed in its third iteration and was retried."""
    define_task("scan", retryCount=0)
    define_workflow("scan_document", loop("pages", simple("scan"), times=4))
    run = start_run("scan_document")
    for outcome in ("COMPLETED", "COMPLETED", "FAILED"):
        claim_and_report("scan", outcome)
    run_commands_repair.retry(run.pk, "olga")
    return reload_run(run)


@pytest.fixture
def failed(transactional_db):
    define_task("charge", retryCount=0)
    given = {"shelf": "${reserve.output.shelf}", "lost": "${reserve.output.shelv}"}
    define_workflow("order", simple("reserve"), simple("charge", inputParameters=given))
    run = start_run("order", input={"order": 4711})
    claim_and_report("reserve", output={"shelf": "B-12"})
    claim_and_report("charge", "FAILED", reason="502 from gateway")
    return run


def page_of(run, query=""):
    return f"/admin/conductor/run/{run.pk}/change/{query}"


def test_every_tab_fits_and_can_be_used_by_everybody(page, failed):
    for tab in ("timeline", "events"):
        assert_usable_by_everybody(page, page_of(failed, f"?tab={tab}"))
    for tab in ("diagram", "tasks", "data", "audit"):
        page.set_viewport_size(WIDE)
        page.goto(page_of(failed, f"?tab={tab}"))
        assert has_no_horizontal_scroll(page), tab
        page.set_viewport_size(NARROW)
        assert has_no_horizontal_scroll(page), f"{tab}, narrow"


def test_a_phone_shows_cause_and_tabs_first_and_the_other_facts_on_demand(page, failed):
    page.set_viewport_size(NARROW)
    page.goto(page_of(failed))
    assert page.locator("nav.tabs").bounding_box()["y"] < 400

    page.get_by_text("All facts").click()
    expect(page.locator(".facts").first.get_by_text(failed.pk)).to_be_visible()
    page.goto(page_of(failed, "?tab=audit"))
    expect(page.locator("nav.tabs [aria-current]")).to_be_in_viewport(ratio=0.9)


@pytest.mark.one_database
def test_a_task_that_is_selected_on_a_narrow_screen_comes_into_view(page, looped):
    page.set_viewport_size(NARROW)
    page.goto(page_of(looped, "?tab=timeline"))
    page.locator("a[data-select][href*='task=scan']").first.click()

    expect(page.locator("#task-open h2")).to_be_in_viewport()


@pytest.mark.one_database
def test_the_table_of_tasks_fits_its_card_beside_an_open_task(page, failed):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(page_of(failed, "?tab=tasks&task=charge"))
    expect(page.locator("#task-open")).to_be_visible()

    card, table = page.locator(".tab-body"), page.locator("table.tasks")
    assert table.bounding_box()["width"] <= card.bounding_box()["width"]
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth") and protruding_texts(page) == []


def test_words_stay_separate_when_another_tab_replaces_the_content(page, failed):
    page.goto(page_of(failed, "?task=-"))
    page.get_by_label("Ways of looking at the run").get_by_role("link", name="Tasks").click()

    expect(page.locator("table.tasks tr[data-key=charge] th")).to_have_js_property("innerText", "charge Worker task")


def test_a_selection_applies_to_all_tabs_and_the_address(page, failed):
    page.goto(page_of(failed, "?task=-"))
    page.get_by_role("link", name="reserve").click()
    expect(page.locator("#task-open")).to_contain_text("B-12")
    assert "task=reserve" in page.url

    page.get_by_label("Ways of looking at the run").get_by_role("link", name="Events").click()
    expect(page.locator(".history")).to_contain_text("502 from gateway")
    expect(page.locator("#task-open h2")).to_have_text("reserve")
    page.go_back()
    expect(page.locator(".timeline")).to_be_visible()


def test_the_page_updates_in_place_and_does_not_disturb_an_open_form(page, transactional_db):
    define_task("ship")
    define_workflow("parcel", simple("ship"))
    run = start_run("parcel")
    page.clock.install()
    page.goto(page_of(run))
    page.evaluate("window.stays = true")
    expect(page.locator(".cause")).to_contain_text("Waiting")
    page.locator("#act-pause summary").click()
    page.locator("#act-pause input[name=reason]").fill("stock count")

    claim_next("ship")
    page.clock.fast_forward(3000)
    expect(page.locator(".cause")).to_contain_text("on worker")
    assert page.evaluate("window.stays")
    expect(page.locator("#act-pause input[name=reason]")).to_have_value("stock count")
    page.locator("#act-pause button").click()
    expect(page.locator(".messagelist")).to_contain_text("Paused.")


def test_dragging_over_the_axis_zooms_in(page, failed):
    page.goto(page_of(failed, "?task=-"))
    axis = page.locator("th[data-brush]").bounding_box()
    page.mouse.move(axis["x"] + 20, axis["y"] + 8)
    page.mouse.down()
    page.mouse.move(axis["x"] + axis["width"] / 2, axis["y"] + 8, steps=3)
    page.mouse.up()

    expect(page.get_by_role("link", name="Fit")).to_be_visible()
    assert "from=" in page.url


def test_the_tree_of_a_retried_run_can_be_used_by_everybody(page, looped):
    assert_usable_by_everybody(page, page_of(looped, "?task=-"))
    page.set_viewport_size(NARROW)
    page.goto(page_of(looped, "?task=scan__2"))
    assert has_no_horizontal_scroll(page)


def test_the_chart_keeps_its_width_beside_a_panel_that_can_be_resized(page, looped):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(page_of(looped, "?task=scan__2"))
    assert page.locator("th.bar").bounding_box()["width"] >= 500

    before = page.locator(".side-panel").bounding_box()["width"]
    page.get_by_role("separator").focus()
    page.keyboard.press("ArrowLeft")
    wider = page.locator(".side-panel").bounding_box()["width"]
    assert wider == before + 32
    page.reload()
    assert page.locator(".side-panel").bounding_box()["width"] == wider


def test_a_row_folds_in_place_by_keyboard(page, looped):
    page.goto(page_of(looped, "?task=-"))
    page.evaluate("window.stays = true")
    page.keyboard.press("j")
    page.keyboard.press("o")

    expect(page.locator(".timeline tbody tr")).to_have_count(1)
    assert page.evaluate("window.stays") and "shut=pages" in page.url


def test_keys_zoom_the_timeline(page, failed):
    page.goto(page_of(failed, "?task=-"))
    page.keyboard.press("+")
    expect(page.get_by_role("link", name="Fit")).to_be_visible()
    page.keyboard.press("-")
    page.keyboard.press("0")

    expect(page.get_by_role("link", name="Fit")).to_have_count(0)


def test_a_late_reply_to_an_earlier_selection_changes_nothing(page, failed):
    page.goto(page_of(failed, "?task=-"))
    page.keyboard.press("+")
    expect(page.get_by_role("link", name="Fit")).to_be_visible()
    held = []

    def hold_first(route):
        if held or "from=" not in route.request.url:
            route.continue_()
        else:
            held.append(route)

    page.route("**/*", hold_first)
    with page.expect_request(re.compile("from=")):
        page.keyboard.press("+")
    page.keyboard.press("0")
    expect(page.get_by_role("link", name="Fit")).to_have_count(0)
    with page.expect_response(lambda response: response.request == held[0].request):
        held[0].continue_()

    expect(page.get_by_role("link", name="Fit")).to_have_count(0)


def test_the_correlation_id_and_the_id_are_copied_with_one_click(page, failed):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(page_of(failed))

    page.locator(".facts [data-copy]").click()

    expect(page.locator(".facts .copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == failed.pk


def test_times_of_the_timeline_are_beside_its_bars_and_never_on_them(page, looped):
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        page.goto(page_of(looped, "?task=scan__2"))
        assert page.locator(".timeline td.bar text").count() == 0
        assert has_no_horizontal_scroll(page) and protruding_texts(page) == []
