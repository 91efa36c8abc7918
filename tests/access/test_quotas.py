"""Quotas of callers: requests above them get 429 with Retry-After, on both APIs and on pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from conductor_app.access import permissions as permission_cache
from conductor_app.access import quotas as token_buckets
from conductor_app.access.models import AccessRevision, CallerQuota, TokenBucket
from conductor_app.access.quotas import (
    NO_QUOTAS,
    POLLS,
    SEARCHES,
    STARTS,
    TokenLeases,
    caller_of_user,
    delete_quotas,
    quotas_of,
    save_quotas,
)
from conductor_app.core.errors import QuotaExceeded
from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.processes.sweeps import prune_finished, sweep_once
from conductor_app.runs.models import Run
from conductor_app.schedules.models import ScheduleExecution
from conductor_app.site import api_urls as urls
from conductor_app.taskcluster.auth.commands import ClientSettings, create_client
from conductor_app.web.api.view import ConductorView
from tests.access.users import api_client_of, create_application, logged_in_client
from tests.builders import simple
from tests.runs.test_parallel import at_once
from tests.runs.test_statements import Counted
from tests.scenario import run_commit_hooks
from tests.taskcluster.signing import credentials, sign_request

pytestmark = pytest.mark.usefixtures("with_logins")


@pytest.fixture
def shop(clock):
    """Return an application without limits."""
    made = create_application("shop", "ADMIN")
    api_client_of(made).define(simple("pay"))
    return made


@pytest.fixture
def api(shop):
    return api_client_of(shop)


def limit(kind="application", name="shop", **values):
    save_quotas(kind, name, values, "olga")


def statuses(send, count):
    return [send().status_code for _ in range(count)]


def start(api):
    return api.post("/workflow", {"name": "order"})


def poll(api):
    return api.get("/tasks/poll/batch/pay", timeout=0, workerid="w")


def test_starts_above_the_quota_get_429_until_the_next_second(api, clock):
    limit(starts_per_second=2)

    assert statuses(lambda: start(api), 3) == [200, 200, 429]
    clock.advance(seconds=0.5)
    assert statuses(lambda: start(api), 2) == [200, 429]
    assert Run.objects.count() == 3


def test_a_refusal_is_an_error_document_that_names_the_quota_and_when_to_retry(api):
    limit(starts_per_second=0.1)
    start(api)

    reply = start(api)

    assert (reply.status_code, reply["Retry-After"]) == (429, "10")
    body = reply.json()
    assert (body["status"], body["retryable"]) == (429, True)
    assert body["message"] == "The caller's quota of 0.1 starts per second is used up."


def test_polls_above_the_quota_get_429(api):
    limit(polls_per_second=2)

    assert statuses(lambda: poll(api), 3) == [200, 200, 429]
    assert api.get("/tasks/poll/pay", workerid="w").status_code == 429


def test_a_report_is_never_refused(api):
    limit(polls_per_second=1)
    start(api)
    [task] = poll(api).json()

    assert statuses(lambda: poll(api), 1) == [429]
    assert api.report(task).status_code == 200


def test_searches_above_the_quota_get_429(api, clock):
    limit(searches_per_minute=2)

    assert statuses(lambda: api.get("/workflow/search"), 3) == [200, 200, 429]
    assert api.get("/tasks/search")["Retry-After"] == "30"
    clock.advance(seconds=30)
    assert statuses(lambda: api.get("/tasks/search"), 2) == [200, 429]


def rates_by_path():
    for pattern in urls.urlpatterns:
        view = getattr(pattern.callback, "cls", None)
        if view and issubclass(view, ConductorView):
            yield from ((str(pattern.pattern), operation.rate) for operation in view.operations.values())


def test_every_search_and_every_poll_counts():
    words = {"search": SEARCHES, "poll": POLLS}
    expected = {
        path: rate
        for word, rate in words.items()
        for path, _ in rates_by_path()
        if any(part.startswith(word) and part != "polldata" for part in path.split("/"))
    }

    assert len(expected) == 12
    assert {path: rate for path, rate in rates_by_path() if rate} == expected


def test_open_runs_above_the_quota_are_not_started(api, clock):
    limit(open_runs=2)

    assert statuses(lambda: start(api), 3) == [200, 200, 429]
    [task] = api.poll("pay")
    api.report(task)
    clock.advance(seconds=1)
    assert statuses(lambda: start(api), 2) == [200, 429]


def test_the_runs_of_others_do_not_count(api, clock):
    limit(open_runs=1)
    other = api_client_of(create_application("other", "ADMIN"))

    assert statuses(lambda: start(other), 2) == [200, 200]
    assert statuses(lambda: start(api), 2) == [200, 429]


def test_a_repeated_start_returns_its_run_without_counting(api):
    limit(starts_per_second=1)
    request = {"name": "order", "idempotencyKey": "k", "idempotencyStrategy": "RETURN_EXISTING"}

    replies = [api.post("/workflow", request) for _ in range(3)]

    assert len({reply.content for reply in replies}) == 1 and Run.objects.count() == 1


def test_the_default_applies_to_every_caller_and_the_own_quota_overrides_it(api, clock):
    limit("default", "", polls_per_second=1, open_runs=5)
    limit(polls_per_second=3)
    other = api_client_of(create_application("other", "ADMIN"))

    assert statuses(lambda: poll(api), 4) == [200, 200, 200, 429]
    assert statuses(lambda: poll(other), 2) == [200, 429]
    assert [quotas_of(caller_of_user(row.user_id or 0)).open_runs for row in CallerQuota.objects.all()] == [5, 5]


def test_a_quota_of_0_exempts_a_caller_from_the_default(api):
    limit("default", "", polls_per_second=1)
    limit(polls_per_second=0)

    assert statuses(lambda: poll(api), 3) == [200, 200, 200]


def test_a_changed_quota_takes_effect_in_every_process_within_one_second(api, shop, clock):
    limit(polls_per_second=1)
    statuses(lambda: poll(api), 2)
    # Another process changes the quota: this one is not notified.
    CallerQuota.objects.update(polls_per_second=100)
    AccessRevision.objects.update(revision=1_000)
    assert quotas_of(caller_of_user(shop.user_id)).polls_per_second == 1

    clock.advance(seconds=1)

    assert quotas_of(caller_of_user(shop.user_id)).polls_per_second == 100
    assert statuses(lambda: poll(api), 3) == [200, 200, 200]


def test_without_quotas_no_statement_reads_them(api, clock):
    poll(api)
    clock.advance(seconds=1)
    permission_cache.clear_cache()

    with Counted() as counted:
        start(api)
        poll(api)

    assert not [sql for sql in counted.statements if "callerquota" in sql or "tokenbucket" in sql]


def test_when_the_last_quota_is_removed_no_process_reads_quotas(api, shop, clock):
    limit(polls_per_second=1)
    assert AccessRevision.objects.get().has_quotas
    delete_quotas(caller_of_user(shop.user_id), "olga")

    assert not AccessRevision.objects.get().has_quotas
    assert quotas_of(caller_of_user(shop.user_id)) == NO_QUOTAS


def test_the_quotas_of_a_deleted_caller_are_deleted(shop):
    limit(polls_per_second=1)
    User.objects.get(pk=shop.user_id).delete()

    assert not CallerQuota.objects.exists() and not AccessRevision.objects.get().has_quotas


def test_a_busy_caller_causes_a_statement_for_many_requests_and_a_refused_one_none(api, clock):
    limit(polls_per_second=100)
    with Counted() as first:
        assert statuses(lambda: poll(api), 101) == [200] * 100 + [429]
    with Counted() as refused:
        assert statuses(lambda: poll(api), 20) == [429] * 20

    counted = [sql for sql in first.statements if "tokenbucket" in sql and sql.startswith("UPDATE")]
    assert len(counted) <= 15
    assert refused.statements == []


def test_a_rate_is_exact_across_processes(shop, clock, monkeypatch):
    caller, granted = caller_of_user(shop.user_id), 0
    processes = [TokenLeases() for _ in range(4)]
    for second in range(5):
        clock.advance(seconds=1 if second else 0)
        for number in range(200):
            token_buckets._leases.value = processes[number % 4]
            try:
                token_buckets.take_token(caller, POLLS, 20)
                granted += 1
            except QuotaExceeded:
                continue

    assert granted == 5 * 20


def test_concurrent_requests_get_no_more_tokens_than_there_are(shop, clock):
    def take(number):
        try:
            token_buckets.take_token("user 1", STARTS, 10)
        except QuotaExceeded:
            return 0
        return 1

    assert sum(at_once(take, 30)) == 10


def test_concurrent_processes_get_no_more_tokens_than_there_are(shop, clock):
    token_buckets._exchange("user 1", STARTS, 10, 0, 0)

    assert sum(at_once(lambda number: token_buckets._exchange("user 1", STARTS, 10, 1, 0)[0], 30)) == 10


def test_unused_tokens_return_to_the_bucket(shop, clock):
    for _ in range(12):
        token_buckets.take_token("user 1", SEARCHES, 600)
    # The process has taken 1, 2, 4 and 8 tokens, and keeps 3. Within 1.1 s, 11 are added.
    clock.advance(seconds=1.1)

    token_buckets.take_token("user 1", SEARCHES, 600)

    assert TokenBucket.objects.get().tokens == 600 - 15 + 11 + 3 - 1


def test_a_sweep_deletes_idle_buckets(shop, clock):
    token_buckets.take_token("user 1", STARTS, 10)
    clock.advance(seconds=3_601)

    prune_finished(10)

    assert not TokenBucket.objects.exists()


def test_a_schedule_counts_for_its_owner_and_waits_when_the_quota_is_used_up(api, clock):
    limit(open_runs=1)
    schedule = {"name": "hourly", "cronExpression": "0 0 * * * *", "startWorkflowRequest": {"name": "order"}}
    assert api.post("/scheduler/schedules", schedule).status_code == 200
    start(api)

    clock.advance(seconds=3_600)
    with run_commit_hooks():
        sweep_once()

    execution = ScheduleExecution.objects.get()
    assert execution.reason == "The caller's quota of 1 open runs is used up."
    assert (execution.state, Run.objects.count()) == ("POLLED", 1)


def test_a_page_and_the_api_count_for_the_same_quota(api, clock):
    user = User.objects.create_superuser("ann")
    limit("user", "ann", starts_per_second=1)
    browser = logged_in_client(user)

    first = start_on_page(browser)
    second = start_on_page(browser)
    by_api = browser.post("/api/workflow/order", "{}", content_type="application/json")

    assert (first.status_code, Run.objects.count()) == (302, 1)
    assert "The caller&#x27;s quota of 1 starts per second is used up." in second.content.decode()
    assert by_api.status_code == 429


def start_on_page(browser: Browser):
    row = WorkflowDefinition.objects.get(name="order")
    return browser.post(f"/admin/conductor/workflowdefinition/{row.pk}/start/", {"input": "{}", "step": "start"})


def test_a_taskcluster_client_above_its_quota_gets_429(shop, clock):
    _, token = create_client("fleet/1", ClientSettings(["*"], clock.now() + 86_400_000, "", False), "olga")
    limit("client", "fleet/1", searches_per_minute=1)
    path = "/api/queue/v1/task-queues"
    given = credentials("fleet/1", token)

    def send():
        header = sign_request(given, path=path)
        return Browser().get(path, headers={"Authorization": header, "Host": "tc.example.org:8000"})

    first, second = send(), send()

    assert (first.status_code, second.status_code) == (200, 429)
    assert (second.json()["code"], second["Retry-After"]) == ("TooManyRequests", "60")
    assert "quota of 1 searches per minute" in second.json()["message"]
