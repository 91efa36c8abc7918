"""An empty server leads to a first run, and follows what the user does."""

from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.runs.models import Run
from conductor_app.tasks.models import Poller
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import claim_next, define_workflow, start_run

STEPS = "/admin/first-steps/live/"


def test_the_sample_workflow_is_created_by_a_button(operator, clock):
    assert "Create sample workflow" in page_text(operator.get("/admin/"))

    operator.post("/admin/first-steps/", {"do": "create_sample"})

    assert TaskDefinition.objects.get().name == "greet"
    sample = WorkflowDefinition.objects.get(name="hello_world")
    page = operator.get(STEPS)
    assert f'href="/admin/conductor/workflowdefinition/{sample.pk}/start/"' in html(page)
    assert "Create sample workflow" not in page_text(page)


def test_the_sample_workflow_replaces_nothing(operator, clock):
    operator.post("/admin/first-steps/", {"do": "create_sample"})
    answer = operator.post("/admin/first-steps/", {"do": "create_sample"}, follow=True)

    assert "hello_world" in page_text(answer) and WorkflowDefinition.objects.count() == 1
    assert operator.post("/admin/first-steps/", {"do": "dance"}).status_code == 302


def test_only_authors_create_the_sample_workflow(viewer, clock):
    assert "Create sample workflow" not in page_text(viewer.get("/admin/"))
    assert viewer.post("/admin/first-steps/", {"do": "create_sample"}).status_code == 403
    assert not WorkflowDefinition.objects.exists()


def test_polls_of_built_in_workers_are_not_the_users_first_poll(operator, clock, django_assert_max_num_queries):
    Poller.objects.create(task_type="HTTP", worker="server", polled_at=clock.now())
    assert "Waiting for the first poll" in page_text(operator.get("/admin/"))

    claim_next("greet")
    with django_assert_max_num_queries(15):
        page = operator.get("/admin/")

    assert "First poll received: greet" in page_text(page) and "Waiting for the first poll" not in page_text(page)


def test_samples_of_workers_contain_the_address_of_this_server(operator, clock):
    page = html(operator.get("/admin/"))

    assert page.count("http://testserver/api") >= 4 and "SERVER" not in page
    assert all(f"<summary>{language}</summary>" in page for language in ("Python", "JavaScript", "Java", "Go"))
    assert 'data-copy="from conductor.client' in page and 'data-live="/admin/first-steps/live/"' in page


def test_one_click_leads_to_the_picture_of_a_run_that_needs_no_worker(operator, viewer, clock):
    answer = operator.post("/admin/first-steps/", {"do": "run_sample"})

    run = Run.objects.get()
    assert answer.url == f"/admin/conductor/run/{run.pk}/change/?tab=diagram&task=-"
    assert 'class="diagram-svg"' in html(operator.get(answer.url)) and run.started_by == "olga"
    assert operator.post("/admin/first-steps/", {"do": "run_sample"}).url != answer.url
    assert WorkflowDefinition.objects.get().name == "first_run"
    assert viewer.post("/admin/first-steps/", {"do": "run_sample"}).status_code == 403


def test_the_steps_remain_until_a_worker_has_polled_and_a_run_of_the_sample_has_started(operator, clock):
    operator.post("/admin/first-steps/", {"do": "run_sample"})
    operator.post("/admin/first-steps/", {"do": "create_sample"})
    claim_next("greet")
    assert "Start hello_world" in page_text(operator.get("/admin/"))

    start_run("hello_world", input={"name": "Ida"})

    assert "Get started" not in page_text(operator.get("/admin/"))


def test_a_started_run_of_the_sample_does_not_end_the_steps_before_a_worker_polls(operator, clock):
    operator.post("/admin/first-steps/", {"do": "run_sample"})
    operator.post("/admin/first-steps/", {"do": "create_sample"})
    start_run("hello_world", input={"name": "Ida"})
    assert "Waiting for the first poll" in page_text(operator.get("/admin/"))

    claim_next("greet")

    assert "Get started" not in page_text(operator.get("/admin/"))


def test_the_steps_end_with_a_run_of_a_workflow_of_ones_own(operator, clock):
    define_workflow("order", simple("charge"))
    assert "Get started" in page_text(operator.get("/admin/"))
    start_run("order")

    assert "Get started" not in page_text(operator.get("/admin/"))
