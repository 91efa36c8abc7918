"""The shell in a browser: the palette, the keys, the side, the themes."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.insight.situations import define, define_task, start, step, work

from .conftest import NARROW, WIDE, has_no_sideways_scroll

SCREENS = ["/admin/", "/admin/conductor/run/", "/admin/queues/", "/admin/conductor/auditentry/", "/admin/preferences/"]


@pytest.fixture
def orders(transactional_db):
    define_task("charge", retryCount=0)
    define("order", step("charge"))
    failed = start("order", correlation_id="order-4711")
    work("charge", "FAILED", reason="502 from gateway")
    return failed


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_screens_fit_keep_their_policy_and_can_be_used_by_everybody(pages, olga, orders, accessible, size, scheme):
    page = pages.open(olga, size=size, scheme=scheme)

    for path in SCREENS:
        page.goto(path)
        assert has_no_sideways_scroll(page), path
        accessible(page)


def test_the_palette_finds_a_run_by_its_correlation_id_and_opens_it(page, orders):
    page.goto("/admin/")
    page.keyboard.press("Control+k")
    page.keyboard.type("order-4711")
    expect(page.locator("#find-hits a.chosen")).to_contain_text("order-4711")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/run/{orders.pk}/change/")


def test_keys_walk_the_rows_and_open_one(page, orders):
    page.goto("/admin/conductor/run/")
    page.keyboard.press("j")
    expect(page.locator("tr.at")).to_have_count(1)
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/run/{orders.pk}/change/")


def test_keys_stay_letters_in_a_text_field(page, orders):
    page.goto("/admin/conductor/run/")
    page.keyboard.press("/")
    page.keyboard.type("jx?")

    expect(page.locator("#searchbar")).to_have_value("jx?")
    expect(page.locator("tr.at")).to_have_count(0)


def test_a_narrow_page_opens_its_side(pages, olga, orders):
    page = pages.open(olga, size=NARROW)
    page.goto("/admin/")
    page.locator(".burger").click()

    expect(page.get_by_role("link", name="Queues", exact=True)).to_be_in_viewport()


def test_moments_are_shown_in_the_chosen_zone(page, orders):
    page.goto("/admin/preferences/")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator(".messagelist")).to_contain_text("Asia/Tokyo")
    page.goto("/admin/conductor/run/")

    assert "+0900" in page.locator("tbody time").first.get_attribute("title")


def test_whoever_may_not_learns_what_is_missing(pages, orders):
    page = pages.open(User.objects.create_user("nobody", is_staff=True))
    page.route("**/*", lambda route: route.continue_())
    response = page.goto("/admin/queues/")

    assert response.status == 403
    expect(page.locator("main")).to_contain_text("conductor.view_attempt")
    pages.complaints.clear()  # the browser says on its console that a page was refused
