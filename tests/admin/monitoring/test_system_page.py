"""The system page: background jobs, database, configuration, and recommended actions."""

from html import unescape

import pytest

from conductor_app.models import SweepPass
from tests.admin.page_text import page_text

pytestmark = pytest.mark.django_db
SYSTEM = "/admin/system/"


def passed(name: str, clock, ago: int = 0, **more) -> None:
    began = clock.now() - ago
    SweepPass.objects.create(name=name, began_at=began, ended_at=began + 2, **more)


def test_a_new_server_explains_how_to_start_its_sweeps(operator):
    assert "No sweep has run yet" in page_text(operator.get(SYSTEM))


def test_a_healthy_server_reports_no_problems(operator, clock):
    passed("wake_runs", clock)
    passed("prune_finished", clock, ago=1_800_000)

    answer = operator.get(SYSTEM)
    page, advice = page_text(answer), [sentence for _, sentence in answer.context["advice"]]

    # PostgreSQL's own clock differs from the frozen clock, and the page reports the difference.
    assert [sentence for sentence in advice if "The database clock" not in unescape(sentence)] == []
    assert advice or "None: every sweep runs on time" in page
    assert "all applied" in page


def test_a_late_or_failing_sweep_has_advice(operator, clock):
    passed("wake_runs", clock, ago=120_000)
    passed("expire_leases", clock, lag_ms=9_000)
    passed("deliver_messages", clock, error="OperationalError: gone", failed_at=clock.now())

    page = page_text(operator.get(SYSTEM))

    assert "wake_runs last ran 2 min ago. Check that Celery beat and a worker are running." in page
    assert "expire_leases is 9.0 s behind" in page
    assert "deliver_messages is failing: OperationalError: gone" in page


def test_secrets_of_the_configuration_are_hidden(operator, settings):
    settings.CONDUCTOR_SECRETS_KEYS = ("very-secret-key-of-the-server-0001",)
    settings.CONDUCTOR_REDIS_URL = "redis://:hunter2@cache/0"

    page = page_text(operator.get(SYSTEM))

    assert "very-secret" not in page and "hunter2" not in page
    assert "SECRETS_KEYS set" in page


def test_a_risky_value_is_marked(operator, settings):
    settings.CONDUCTOR_API_ACCESS = "open"

    assert "API is open: no authentication." in page_text(operator.get(SYSTEM))


def test_the_page_requires_permission_and_takes_few_queries(operator, client, django_assert_max_num_queries):
    operator.get(SYSTEM)
    with django_assert_max_num_queries(15):
        operator.get(SYSTEM)
    assert client.get(SYSTEM).status_code == 302
