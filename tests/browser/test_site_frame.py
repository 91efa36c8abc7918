"""What all pages share, in a browser: command palette, keyboard shortcuts, sidebar, themes."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.tasks.models import Poller
from tests.browser.page_checks import (
    NARROW,
    WIDE,
    assert_accessible,
    assert_usable_by_everybody,
    has_no_horizontal_scroll,
)
from tests.builders import simple
from tests.scenario import claim_and_report, define_task, define_workflow, start_run

SCREENS = ["/admin/", "/admin/conductor/run/", "/admin/queues/", "/admin/conductor/auditentry/", "/admin/preferences/"]
REFUSAL = {"Content-Type": "text/html; charset=utf-8", "X-Request-Id": "4711"}
REFUSED = '<div class="panel-error" role="alert"><p>Queues could not be counted.</p></div>'


@pytest.fixture
def orders(transactional_db):
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))
    failed = start_run("order", correlation_id="order-4711")
    claim_and_report("charge", "FAILED", reason="502 from gateway")
    return failed


def test_screens_fit_obey_their_policy_and_are_accessible(page, orders):
    for path in SCREENS:
        assert_usable_by_everybody(page, path)
        # In Firefox, axe counts the space of buttons that are transparent until a row is pointed at.
        if page.context.browser.browser_type.name == "chromium":
            assert_accessible(page, ["target-size"])


def test_a_narrow_header_shows_all_problems(page, orders):
    start_run("order", correlation_id="order-4712")
    Poller.objects.all().delete()
    page.request.get("/admin/status-bar/")  # counts the problems
    page.goto("/admin/")
    summary = page.locator("#strip").get_by_text("2 problems")
    expect(page.locator("#strip p").get_by_text("1 queue without workers")).to_be_visible()
    expect(summary).to_be_hidden()
    page.set_viewport_size(NARROW)
    summary.click()

    links = page.locator("#strip .menu-body a")
    expect(links).to_have_text(["1 failed, 24 h", "1 queue without workers"])
    for link in links.all():
        expect(link).to_be_in_viewport()
    assert has_no_horizontal_scroll(page)
    links.first.click()
    expect(page).to_have_url(re.compile("status=FAILED"))


def test_a_phone_shows_the_filters_of_runs_after_a_press(page, orders):
    start_run("order")
    page.goto("/admin/conductor/run/?status=FAILED")
    switch, boxes = page.locator(".filters-switch summary"), page.locator(".status-boxes")
    expect(boxes).to_be_visible()
    expect(switch).to_be_hidden()
    page.set_viewport_size(NARROW)
    expect(switch).to_have_text(re.compile(r"Filters \(1\)"))
    expect(boxes).to_be_hidden()
    expect(page.locator(".active-filters .chip")).to_be_visible()
    assert page.locator(".filter-bar").bounding_box()["height"] < 130

    switch.focus()
    page.keyboard.press("Enter")

    expect(boxes).to_be_visible()
    assert has_no_horizontal_scroll(page)
    page.get_by_text("Completed", exact=True).first.click()
    page.locator(".filter-line > button").click()
    expect(page).to_have_url(re.compile("status=FAILED.*status=COMPLETED|status=COMPLETED.*status=FAILED"))


def test_the_newest_runs_are_visible_in_the_list_of_workflows(page, orders):
    page.set_viewport_size({"width": 1280, "height": 900})
    names = {"description": "Restores the stock of a failed order", "ownerEmail": "owner@example.com"}
    define_workflow("order_compensation_after", simple("charge"), **names)
    start_run("order_compensation_after")
    page.goto("/admin/conductor/workflowdefinition/")

    assert page.locator(".results").evaluate("each => each.scrollWidth <= each.clientWidth")


def test_pages_use_the_bundled_font(page, orders):
    page.goto("/admin/")
    page.evaluate("document.fonts.ready")

    assert page.evaluate("[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)") == [
        "Inter"
    ]


def test_keyboard_shortcuts_find_a_run_and_select_rows_and_are_off_in_text_fields(page, orders):
    page.goto("/admin/conductor/run/")
    page.keyboard.press("/")
    page.keyboard.type("jx?")
    expect(page.locator("#searchbar")).to_have_value("jx?")
    expect(page.locator("tr.current-row")).to_have_count(0)

    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    expect(page.locator("tr.current-row")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{orders.pk}/change/")

    page.keyboard.press("Control+k")
    page.keyboard.type("order-4711")
    expect(page.locator("#find-hits a.chosen")).to_contain_text("order-4711")
    assert_accessible(page)
    page.evaluate("() => { document.body.dataset.former = 'yes'; }")
    page.keyboard.press("Enter")
    expect(page.locator("body:not([data-former])")).to_be_visible()
    page.wait_for_url(f"**/run/{orders.pk}/change/")


def test_the_key_g_and_a_letter_open_a_page_and_the_palette_shows_the_letters(page, orders):
    page.goto("/admin/")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/admin/queues/")
    page.keyboard.press("j")  # G was used up

    page.keyboard.press("Control+k")
    expect(page.locator("#find-hits a", has_text="Task definitions")).to_contain_text("G T")
    page.keyboard.type("gq")
    expect(page.locator("#find-field")).to_have_value("gq")


def test_the_breadcrumbs_lead_back_to_the_list_with_its_filters(page, orders):
    page.goto("/admin/conductor/run/?status=FAILED")
    page.get_by_role("link", name="order-4711").click()
    page.get_by_label("Breadcrumbs").get_by_role("link", name="Runs").click()
    page.wait_for_url("**/admin/conductor/run/?status=FAILED")
    page.locator("#side").get_by_role("link", name="Runs").click()
    page.wait_for_url("**/admin/conductor/run/")


def test_a_search_writes_only_its_filled_fields_into_the_address(page, orders):
    page.goto("/admin/conductor/run/")
    navigations = []
    page.on("request", lambda request: navigations.append(request.url) if request.is_navigation_request() else None)
    page.locator("#searchbar").fill("order")
    page.locator("input[name=status][value=FAILED]").check(force=True)
    page.locator("#searchbar").press("Enter")
    page.wait_for_url("**/run/?q=order&status=FAILED")

    assert [url.partition("?")[2] for url in navigations] == ["q=order&status=FAILED"]


def test_a_narrow_page_opens_its_side(pages, olga, orders):
    page = pages.open(olga, size=NARROW)
    page.goto("/admin/")
    page.locator(".burger").click()

    expect(page.get_by_role("link", name="Queues", exact=True)).to_be_in_viewport()
    assert_accessible(page)
    assert page.goto("/admin/nowhere/").status == 404
    assert has_no_horizontal_scroll(page)
    expect(page.get_by_role("link", name="Go to the overview")).to_be_in_viewport()
    pages.validation_errors.clear()  # the browser logs the 404 on its console


def test_times_are_displayed_in_the_selected_zone(page, orders):
    page.goto("/admin/preferences/")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".messagelist")).to_contain_text("Asia/Tokyo")
    page.goto("/admin/conductor/run/")

    assert "+0900" in page.locator("tbody time").first.get_attribute("title")


def test_a_fragment_displays_errors_and_the_page_reports_an_unreachable_server(pages, page, orders):
    page.route("**/admin/queues/live/**", lambda route: route.fulfill(status=500, headers=REFUSAL, body=REFUSED))
    page.clock.install()
    page.goto("/admin/queues/")
    page.clock.fast_forward(3000)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Queues could not be counted.")
    expect(alert).to_contain_text("Request 4711")

    page.unroute("**/admin/queues/live/**")
    alert.get_by_role("button", name="Try again").click()
    expect(alert).to_have_count(0)

    page.route("**/admin/queues/live/**", lambda route: route.abort())
    page.clock.fast_forward(3000)
    expect(alert).to_contain_text("The server does not respond.")
    expect(page.locator("#strip b").first).to_be_hidden()

    page.unroute("**/admin/queues/live/**")
    page.clock.fast_forward(3000)
    expect(alert).to_have_count(0)
    expect(page.locator("#strip b").first).to_be_visible()
    pages.validation_errors.clear()  # the browser logs the server error on its console


def test_a_user_without_permission_learns_which_one_is_missing(pages, orders):
    page = pages.open(User.objects.create_user("nobody", is_staff=True))
    page.route("**/*", lambda route: route.continue_())
    response = page.goto("/admin/queues/")

    assert response.status == 403
    expect(page.locator("main")).to_contain_text("You need the permission to view tasks.")
    pages.validation_errors.clear()  # the browser logs the 403 on its console


def test_the_switch_of_the_navigation_is_no_tab_stop_of_a_wide_page(pages, olga, orders):
    for size, stops in ((WIDE, False), (NARROW, True)):
        page = pages.open(olga, size=size)
        page.goto("/admin/preferences/")
        expect(page.locator("#side-open")).to_be_visible(visible=stops)


def test_the_palette_switches_the_theme_without_leaving_the_page(page, orders):
    page.goto("/admin/queues/")
    page.keyboard.press("Control+k")
    page.keyboard.type("dark theme")
    expect(page.locator("#find-hits a.chosen")).to_contain_text("Dark theme")
    page.keyboard.press("Enter")

    expect(page.locator("html[data-theme=dark]")).to_have_count(1)
    assert page.url.endswith("/admin/queues/")


def test_the_steps_of_few_runs_are_beside_their_names(page):
    define_workflow("order", simple("pack"), simple("ship"))
    start_run("order")
    workflow = WorkflowDefinition.objects.get(name="order")

    page.goto(f"/admin/workflows/{workflow.pk}/history/")

    name, cell = (page.locator(f".step-grid tbody tr:first-child {each}").bounding_box() for each in ("th", "td"))
    assert name and cell and cell["x"] - name["x"] < 200
    steps, charts = (page.locator(each).first.bounding_box() for each in (".step-grid", ".trends"))
    assert steps and charts and steps["y"] > charts["y"] + charts["height"]
