"""The Python SDK and a server that requires an access key."""

import pytest
from conductor.client.configuration.configuration import Configuration
from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
from conductor.client.http.rest import AuthorizationException
from conductor.client.orkes_clients import OrkesClients

from conductor_app.access import quotas as token_buckets
from conductor_app.access.models import Application
from conductor_app.access.quotas import caller_of_user, save_quotas
from conductor_app.access.tokens import create_key
from tests.clients import importable_workers as handled
from tests.clients.shop_workflow import Shop, serve_tasks, worker
from tests.clients.wait_until import eventually


@pytest.fixture(autouse=True)
def _token_is_needed(settings):
    settings.CONDUCTOR_API_ACCESS = "token"


@pytest.fixture
def with_key(server: str) -> Configuration:
    """Return the SDK's configuration with a key."""
    key, secret = create_key("tests")
    settings = AuthenticationSettings(key_id=key, key_secret=secret)
    return Configuration(server_api_url=f"{server}/api", authentication_settings=settings, log_level="CRITICAL")


def test_workers_and_clients_with_a_key_are_let_in(with_key):
    shop = Shop(OrkesClients(with_key))
    shop.define("cut")
    run_id = shop.start()

    with serve_tasks(with_key, worker("cut", handled.nothing)):
        run = shop.wait_for_end(run_id)

    assert run.status == "COMPLETED"


def test_a_worker_above_its_quota_of_polls_backs_off_and_polls_again(with_key):
    shop = Shop(OrkesClients(with_key))
    shop.define("cut")
    application = Application.objects.get(name="tests")
    save_quotas("application", "tests", {"polls_per_second": 1}, "olga")
    lease = token_buckets._leases.value.find(caller_of_user(application.user_id), "polls")

    with serve_tasks(with_key, worker("cut", handled.nothing)):
        eventually(lambda: lease.refused_until)
        run = shop.wait_for_end(shop.start())

    assert run.status == "COMPLETED"


def test_a_client_without_a_key_is_refused(clients):
    with pytest.raises(AuthorizationException) as refused:
        clients.get_metadata_client().get_all_task_defs()

    assert refused.value.status == 401
    assert refused.value.error_code == "INVALID_TOKEN"


def test_a_client_with_an_invalid_token_fetches_a_new_one(with_key):
    client = OrkesClients(with_key).get_metadata_client()
    with_key.update_token("yesterday's")

    assert client.get_all_task_defs() == []
    assert with_key.AUTH_TOKEN != "yesterday's"
