"""Addresses of pages contain no empty parameters: operators paste them into tickets."""

import re
from html import unescape

from django.urls import reverse

from conductor_app.failures import commands as failure_groups
from tests.builders import simple
from tests.scenario import claim_and_report, define_task, start_run_of

RUNS = "/admin/conductor/run/"


def test_a_form_with_empty_fields_redirects_to_its_address_without_them(operator):
    for given, clean in [
        (
            f"{RUNS}?q=&name=order&version=&status=FAILED&status=PAUSED&label=",
            "?name=order&status=FAILED&status=PAUSED",
        ),
        (f"{RUNS}?q=&name=&started=", ""),
        ("/admin/failures/?tab=all&definition=&q=no+van", "?tab=all&q=no+van"),
        ("/admin/queue/?name=ship&domain=", "?name=ship"),
    ]:
        reply = operator.get(given)

        assert (reply.status_code, reply["Location"]) == (302, given.partition("?")[0] + clean), given


def test_other_addresses_are_not_redirected(operator):
    for query in ["", "?", "?name=order", "?all", "?name=a%3D&label=b"]:
        assert operator.get(f"{RUNS}{query}").status_code == 200, query


def test_requests_of_scripts_and_forms_that_change_data_are_not_redirected(operator):
    live = operator.get(f"{reverse('admin:queues_live')}?rev=", headers={"X-Requested-With": "fetch"})

    assert live.status_code == 200
    assert operator.post("/admin/bulk/plan/?status=", {"action": "retry", "status": "FAILED"}).status_code != 301


def test_every_page_of_the_navigation_removes_empty_parameters(operator):
    sections = operator.get("/admin/").context["available_apps"]
    addresses = [page["admin_url"] for section in sections for entry in section["models"] for page in entry["pages"]]

    assert len(addresses) > 30
    for address in addresses:
        reply = operator.get(f"{address}?q=&status=&page=2&name=")
        assert (reply.status_code, reply["Location"]) == (302, f"{address}?page=2")


def test_filters_and_tabs_of_lists_link_to_addresses_without_empty_parameters(operator, clock):
    define_task("charge", retryCount=0)
    start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    failure_groups.group_failures(100)

    for address in (f"{RUNS}?status=FAILED", "/admin/failures/", "/admin/human-tasks/"):
        links = re.findall(r'href="([^"]*\?[^"]*)"', operator.get(address).content.decode())
        assert [link for link in links if re.search(r"=(&|$)", unescape(link))] == [], address


def test_an_address_of_a_page_without_its_last_slash_redirects(operator):
    for path in ["/admin/queues", "/admin/conductor/run", "/admin/failures", "/admin/conductor/workflowdefinition/add"]:
        reply = operator.get(f"{path}?name=a")

        assert (reply.status_code, reply["Location"]) == (301, f"{path}/?name=a"), path


def test_the_address_of_the_pages_without_its_slash_redirects(client):
    for path in ("/admin", "/"):
        assert client.get(path)["Location"] == "/admin/"


def test_an_address_without_its_slash_is_reached_after_the_sign_in(client, operator):
    assert client.get("/admin/queues")["Location"] == "/admin/login/?next=/admin/queues"
    assert operator.get("/admin/queues", follow=True).redirect_chain == [("/admin/queues/", 301)]


def test_an_address_without_a_page_is_not_redirected(operator):
    for path in ["/admin/nothing", "/admin/nothing/", "/admin/queues/nothing", "/admin//example.org"]:
        assert operator.get(path).status_code == 404, path


def test_a_form_is_not_redirected(operator):
    assert operator.post("/admin/queues", {}).status_code == 404
