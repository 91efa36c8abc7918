"""A colleague is given exactly one team's workflows, and an administrator sees what the colleague sees."""

import re

from playwright.sync_api import expect

from conductor_app.access.commands import people
from conductor_app.access.commands.people import OPERATOR, VIEWER, Access
from tests.browser.page_checks import NARROW, has_no_horizontal_scroll
from tests.builders import simple
from tests.scenario import define_workflow, start_run

PASSWORD = "correct horse 47"


def define_two_teams() -> None:
    for name in ("shop_order", "shop_refund", "payroll"):
        define_workflow(name, simple("pack"))
        start_run(name, correlation_id=f"{name}-1")


def test_an_administrator_sees_the_pages_of_a_colleague_and_returns(page):
    define_two_teams()
    bob = people.invite("bob", "", Access(VIEWER, ("shop_*",)), "olga")

    page.goto("/admin/people/")
    page.get_by_role("button", name="Show pages bob").click()
    expect(page.locator(".shown-as")).to_contain_text("You see the pages as bob. Nothing can be changed.")
    page.goto("/admin/conductor/workflowdefinition/")
    expect(page.locator("main")).to_contain_text("shop_order")
    expect(page.locator("main")).not_to_contain_text("payroll")
    page.get_by_role("button", name="Back to olga").click()
    expect(page).to_have_url(re.compile("/admin/people/$"))
    expect(page.locator(".shown-as")).to_have_count(0)
    expect(page.get_by_role("link", name=bob.username)).to_be_visible()


def test_the_pages_fit_a_phone(pages, olga):
    define_two_teams()
    bob = people.invite("bob", "bob@example.org", Access(OPERATOR, ("shop_*",), ("team:shop",)), "olga")

    for scheme in ("light", "dark"):
        page = pages.open(olga, size=NARROW, scheme=scheme)
        for address in ("", "invite/", "new-program/", f"{bob.pk}/"):
            page.goto(f"/admin/people/{address}")
            assert has_no_horizontal_scroll(page), address
