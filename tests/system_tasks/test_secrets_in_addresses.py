"""A message about a request that failed names its address without any part of a secret that the address has."""

import pytest

from conductor_app.access import secrets as secret_cache
from conductor_app.access.commands import secrets as secret_commands
from conductor_app.system_tasks import registry
from tests.free_port import free_port
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db(transaction=True)
SECRETS = {
    "an address with a token in its path": ("http://127.0.0.1:PORT/services/T00/CANARY99XYZ?mode=1", "SECRET"),
    "an address with a password": ("http://user:CANARYpw77@127.0.0.1:PORT/hooks/CANARY88token", "SECRET"),
    "a line break at the end, in the path": ("CANARY7788\n", "http://127.0.0.1:PORT/a/SECRET"),
    "a fragment in the path": ("SP CANARY/77@x%41#é", "http://127.0.0.1:PORT/a/SECRET"),
    "a query in the path": ("CANARY5566?x=1", "http://127.0.0.1:PORT/SECRET"),
    "special characters in the password": ('p"CANARY\\ä/+&= z\nq', "http://u:SECRET@127.0.0.1:PORT/"),
    "a fragment in the password": ("SP CANARY/77@x%41#é", "http://u:SECRET@127.0.0.1:PORT/"),
    "a host": ("canary-inside-host.invalid", "http://SECRET/x"),
}


@pytest.mark.parametrize(("secret", "uri"), SECRETS.values(), ids=SECRETS)
def test_a_failed_request_shows_no_part_of_a_secret(clock, settings, secret, uri):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    port = str(free_port())
    secret_commands.put_secret("ADDRESS", secret.replace("PORT", port), "t")
    secret_cache.clear_secret_cache()
    request = {"uri": uri.replace("PORT", port).replace("SECRET", "${workflow.secrets.ADDRESS}"), "method": "GET"}
    step = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"http_request": request}}
    scenario = Scenario(clock, step)

    with run_commit_hooks():
        registry.run_built_in_workers()

    attempt = scenario.task("call")
    assert attempt.reason
    shown = f"{attempt.reason} {attempt.output} {scenario.output} {scenario.reason}".lower()
    assert "canary" not in shown, shown
