"""A colleague is given exactly one team's workflows, and an administrator sees what the colleague sees."""

import re

from playwright.sync_api import expect

from conductor_app.access.commands import people
from conductor_app.access.commands.people import OPERATOR, VIEWER, Access
from tests.browser.page_checks import NARROW, has_no_horizontal_scroll
from tests.stored_scenarios import define_workflow, start_run, step

PASSWORD = "correct horse 47"


def define_two_teams() -> None:
    for name in ("shop_order", "shop_refund", "payroll"):
        define_workflow(name, step("pack"))
        start_run(name, correlation_id=f"{name}-1")


def test_a_colleague_gets_exactly_one_teams_workflows_in_a_minute(page, pages, live):
    define_two_teams()

    page.goto("/admin/people/")
    page.get_by_role("link", name="Invite a person").click()
    page.get_by_label("Name", exact=True).fill("bob")
    page.get_by_label("Operator").check()
    page.get_by_label("Names and prefixes").fill("shop_*")
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.locator("main")).to_contain_text("shop_order")
    expect(page.locator("main")).not_to_contain_text("payroll")
    link = page.locator("pre.once").inner_text().strip()

    context = pages.browser.new_context(base_url=live)
    pages.contexts.append(context)
    bobs = context.new_page()
    bobs.goto(link)
    bobs.get_by_label("New password", exact=True).fill(PASSWORD)
    bobs.get_by_label("New password confirmation").fill(PASSWORD)
    bobs.get_by_role("button", name="Set password").click()
    expect(bobs.locator(".messagelist")).to_contain_text("Your password is set. Sign in as bob.")
    bobs.get_by_label("User name").fill("bob")
    bobs.get_by_label("Password", exact=True).fill(PASSWORD)
    bobs.get_by_role("button", name="Sign in").click()
    expect(bobs.locator("#user-tools summary")).to_contain_text("bob")
    bobs.goto("/admin/conductor/workflowdefinition/")
    expect(bobs.locator("main")).to_contain_text("shop_order")
    expect(bobs.locator("main")).not_to_contain_text("payroll")


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
