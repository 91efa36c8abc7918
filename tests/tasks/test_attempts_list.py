"""The list of attempts: filters by state, id and queue, and stable pagination."""

import re

import pytest
from django.urls import reverse

from tests.page_text import html, page_text
from tests.stored_scenarios import claim_and_report, define_workflow, newest_attempt_of, start_run, start_run_of, step

LIST = reverse("admin:conductor_attempt_changelist")


@pytest.fixture
def attempts(clock, db):
    """Create 120 attempts, all pending except one."""
    first = start_run_of(step("ship"))
    claim_and_report("ship")
    ids = [newest_attempt_of(start_run("order"), "ship").pk for _ in range(119)]
    return [newest_attempt_of(first, "ship").pk, *ids]


def shown(page):
    return re.findall(r'href="([0-9a-f-]{36})/change/"', html(page))


def follow(client, page, rel):
    address = re.search(rf'<a href="([^"]*)" rel="{rel}"', html(page))
    return client.get(LIST + address.group(1).replace("&amp;", "&")) if address else None


def test_every_attempt_appears_on_exactly_one_page_in_both_directions(operator, attempts):
    pages = [operator.get(LIST)]
    while (further := follow(operator, pages[-1], "next")) is not None:
        pages.append(further)

    assert [id for page in pages for id in shown(page)] == sorted(attempts, reverse=True)
    assert [len(shown(page)) for page in pages] == [50, 50, 20]
    assert shown(follow(operator, pages[2], "prev")) == shown(pages[1])
    assert "120 attempts" in page_text(pages[0])


def test_pages_keep_the_filter_and_the_search(operator, attempts):
    page = operator.get(LIST, {"state": "pending"})
    assert "119 attempts" in page_text(page)
    assert len(shown(follow(operator, page, "next"))) == 50

    page = operator.get(LIST, {"q": "ship"})
    assert "119 attempts" in page_text(page) and len(shown(follow(operator, page, "next"))) == 50


def test_a_deep_page_takes_as_many_queries_as_the_first(operator, attempts, django_assert_max_num_queries):
    with django_assert_max_num_queries(15):
        operator.get(LIST, {"after": attempts[60]})


@pytest.mark.parametrize("asked", [{"after": "é" * 300}, {"before": "\0"}, {"after": "x", "before": "y"}, {"p": "9"}])
def test_a_place_that_never_was_does_no_harm(operator, clock, asked):
    define_workflow("order", step("ship"))
    start_run("order")

    assert operator.get(LIST, asked).status_code in (200, 302)
