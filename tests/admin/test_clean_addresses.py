"""Addresses of pages contain no empty parameters: operators paste them into tickets."""

import pytest
from django.urls import reverse

RUNS = "/admin/conductor/run/"


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        (
            f"{RUNS}?q=&name=order&version=&status=FAILED&status=PAUSED&label=",
            "?name=order&status=FAILED&status=PAUSED",
        ),
        (f"{RUNS}?q=&name=&started=", ""),
        ("/admin/failures/?tab=all&definition=&q=no+van", "?tab=all&q=no+van"),
        ("/admin/queue/?name=ship&domain=", "?name=ship"),
    ],
)
def test_a_form_with_empty_fields_redirects_to_its_address_without_them(operator, given, clean):
    reply = operator.get(given)

    assert (reply.status_code, reply["Location"]) == (302, given.partition("?")[0] + clean)


@pytest.mark.parametrize("query", ["", "?", "?name=order", "?all", "?name=a%3D&label=b"])
def test_other_addresses_are_not_redirected(operator, query):
    assert operator.get(f"{RUNS}{query}").status_code == 200


def test_requests_of_scripts_and_forms_that_change_data_are_not_redirected(operator):
    live = operator.get(f"{reverse('admin:queues_live')}?rev=", headers={"X-Requested-With": "fetch"})

    assert live.status_code == 200
    assert operator.post("/admin/bulk/plan/?status=", {"action": "retry", "status": "FAILED"}).status_code != 301
