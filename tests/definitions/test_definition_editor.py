"""The definition editor: validation while typing, drafts, and a review before saving."""

import json
import re

import pytest
from django.test import Client

from conductor_app.access.models import AuditEntry
from conductor_app.core.validation.findings import HINT
from conductor_app.definitions.editor.checks import check_text
from conductor_app.definitions.models import DefinitionDraft, TaskDefinition, WorkflowDefinition
from tests.access.users import client_with
from tests.builders import noop, simple
from tests.page_text import html, page_text
from tests.scenario import define_task, define_workflow, start_run, start_run_of

WORKFLOWS = "/admin/conductor/workflowdefinition/"
TASKS = "/admin/conductor/taskdefinition/"


@pytest.fixture
def order(clock, db):
    define_workflow("order", simple("charge"), simple("ship", inputParameters={"receipt": "${charge.output.receipt}"}))
    return WorkflowDefinition.objects.get(name="order")


@pytest.fixture
def author(db) -> Client:
    """Return a client of a user who may only edit workflow definitions."""
    return client_with("view_workflowdefinition", "change_workflowdefinition", name="arno")


def text(**changes):
    document = {"name": "order", "version": 1, "ownerEmail": "team@example.com", "tasks": [simple("charge")]}
    return json.dumps(document | changes, indent=2)


def check(client, text, path=WORKFLOWS):
    return client.post(f"{path}check/", {"document": text}).json()


def test_a_wrong_reference_is_marked_at_its_line_with_the_nearest_name(operator, order):
    wrong = simple("ship", inputParameters={"receipt": "${chrage.output.receipt}"})
    typed = text(tasks=[simple("charge"), wrong])

    [finding] = [each for each in check(operator, typed)["findings"] if each["severity"] == "error"]

    line = typed.split("\n")[finding["line"] - 1]
    assert line[finding["column"] :][: finding["length"]] == '"${chrage.output.receipt}"'
    assert (finding["written"], finding["meant"]) == ("chrage.output", "charge.output")


def test_the_picture_follows_the_text(operator, order):
    assert 'data-ref="pack"' in check(operator, text(tasks=[simple("charge"), simple("pack")]))["picture"]


def test_nul_characters_are_removed_in_every_spelling(operator, order):
    typed = text(description="s\0o", tasks=[simple("a\0b", inputParameters={"\0c": ["\0"]})])

    assert check(operator, typed.replace('"order"', '"o\\u0000"'))["picture"]
    assert operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": typed}).status_code == 302

    kept = WorkflowDefinition.objects.get(name="order", version=2)
    assert (kept.description, kept.document["tasks"][0]["name"]) == ("so", "ab")
    assert kept.document["tasks"][0]["inputParameters"] == {"c": [""]}


def test_invalid_json_is_marked_and_keeps_the_diagram(operator, order):
    said = check(operator, '{\n  "name": "order",\n  "tasks": [,]\n}')

    assert (said["findings"][0]["line"], said["findings"][0]["column"]) == (3, 12)
    assert said["picture"] is None and said["known"] is None


@pytest.mark.parametrize("typed", ["", "[]", "null", "7", "[" * 100_000, '{"a": NaN}', '{"tasks": [[[]]]}', "{}"])
def test_any_text_whatsoever_gets_an_answer(operator, order, typed):
    assert check(operator, typed)["findings"]


def test_completion_offers_references_types_tasks_and_recent_outputs(operator, order):
    define_task("charge", outputKeys=["receipt", "total"])

    known = check(operator, order_text(order))["known"]

    assert known["refs"] == ["charge", "ship"] and "charge" in known["tasks"]
    assert known["outputs"]["charge"] == {"receipt": {}, "total": {}}
    assert "FORK_JOIN_DYNAMIC" in known["stepTypes"] and "loopCondition" in known["fields"]["step"]


def order_text(order):
    return json.dumps(order.document, indent=2)


def test_a_check_takes_few_queries(operator, order, django_assert_max_num_queries):
    with django_assert_max_num_queries(15):
        check(operator, order_text(order))


def test_edits_are_saved_as_a_draft_and_offered_again(operator, order):
    operator.post(f"{WORKFLOWS}draft/?name=order", {"document": '{"half', "base": "r1n1"})

    page = operator.get(f"{WORKFLOWS}{order.pk}/edit/")

    assert "Your draft from" in page_text(page) and "{&quot;half" in html(page)
    assert page.context["form"].initial["base"] == "r1n1"


def test_a_draft_is_its_authors_own(operator, author, order):
    operator.post(f"{WORKFLOWS}draft/?name=order", {"document": "mine"})

    assert "Your draft from" not in page_text(author.get(f"{WORKFLOWS}{order.pk}/edit/"))


def test_a_draft_can_be_discarded(operator, order):
    operator.post(f"{WORKFLOWS}draft/?name=order", {"document": "mine"})

    answer = operator.post(f"{WORKFLOWS}draft/?name=order", {"discard": f"{WORKFLOWS}{order.pk}/edit/"})

    assert answer.url == f"{WORKFLOWS}{order.pk}/edit/"
    assert not DefinitionDraft.objects.exists()


def test_discarding_a_draft_does_not_redirect_to_another_server(operator, order):
    for elsewhere in ("//evil.example", "/\\evil.example"):
        assert operator.post(f"{WORKFLOWS}draft/?name=order", {"discard": elsewhere}).url == "../"


def test_invalid_json_is_kept_as_a_draft(operator, order):
    operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": '{"half', "step": "review"})

    assert DefinitionDraft.objects.get().text == '{"half'


def test_saving_discards_the_draft(operator, order):
    operator.post(f"{WORKFLOWS}draft/?name=order", {"document": "mine"})

    operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": text()})

    assert not DefinitionDraft.objects.exists()


def test_a_huge_draft_is_refused(operator, order):
    answer = operator.post(f"{WORKFLOWS}draft/?name=order", {"document": "x" * 5_000_001})

    assert answer.status_code in (400, 413) and not DefinitionDraft.objects.exists()


def test_a_change_is_reviewed_in_sentences_and_lines_before_saving(operator, order):
    start_run("order")
    tasks = [simple("charge", retryCount=5), simple("ship", inputParameters={"receipt": "${charge.output.receipt}"})]

    page = page_text(operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": text(tasks=tasks), "step": "review"}))

    assert "charge: retries set to 5" in page
    assert '"retryCount": 5' in page
    assert "1 run follows version 1 now" in page
    assert "New version 2" in page
    assert WorkflowDefinition.objects.count() == 1


def test_a_text_without_a_change_becomes_no_draft_and_is_not_saved(operator, order):
    page, saved = f"{WORKFLOWS}{order.pk}/edit/", {"document": order_text(order)}
    operator.post(f"{WORKFLOWS}draft/?name=order", {"document": "mine"})

    review = page_text(operator.post(page, {**saved, "step": "review"}))
    tested = operator.post(page, {**saved, "step": "test"})

    assert "Nothing has changed" in review and "New version 2" not in review
    assert "draft" not in tested.url and not DefinitionDraft.objects.exists()
    operator.post(page, {"document": text(description="new"), "step": "test"})
    assert DefinitionDraft.objects.exists()


def test_validation_errors_are_displayed_before_saving(operator, order):
    page = page_text(operator.post(f"{WORKFLOWS}{order.pk}/edit/", {"document": text(tasks=[]), "step": "review"}))

    assert "saving will be rejected" in page and "The workflow has no steps yet. Add the first one." in page
    assert "Reason Stored in the audit log." in page


@pytest.mark.parametrize(("kind", "body"), [("DO_WHILE", "loopOver"), ("TRY_CATCH", "tryTasks")])
def test_a_container_that_was_just_added_has_a_hint_and_cannot_be_saved(db, kind, body):
    step = {
        "name": "each",
        "taskReferenceName": "each",
        "type": kind,
        body: [],
        "loopCondition": "false",
    }
    checked = check_text("workflow", text(tasks=[step]))

    found = {each.finding.message: each.finding.severity for each in checked.findings}
    assert [severity for message, severity in found.items() if "yet. Add one inside it." in message] == [HINT], found
    assert checked.rejections


def test_a_definition_is_started_like_another_one(operator, order):
    offered = operator.get(f"{WORKFLOWS}add/?like={order.pk}").context["form"].initial["document"]

    assert json.loads(offered)["name"] == "order_copy" and len(json.loads(offered)["tasks"]) == 2


def test_an_author_may_edit_and_a_viewer_may_not_even_check(author, viewer, order):
    assert author.get(f"{WORKFLOWS}{order.pk}/edit/").status_code == 200
    assert check(author, text())["findings"] is not None
    for path in (f"{order.pk}/edit/", "check/", "draft/?name=order", f"{order.pk}/restore/"):
        assert viewer.post(f"{WORKFLOWS}{path}", {"document": text(), "discard": "/"}).status_code == 403, path


@pytest.mark.parametrize("path", ["check/", "draft/", "1/restore/"])
def test_changing_addresses_reject_get(operator, order, path):
    assert operator.get(f"{WORKFLOWS}{path.replace('1/', f'{order.pk}/')}").status_code == 405


def test_the_policy_lets_the_editor_make_its_styles_and_no_other_page(operator, order):
    policy = operator.get(f"{WORKFLOWS}{order.pk}/edit/").headers["Content-Security-Policy"]
    nonce = operator.get(f"{WORKFLOWS}{order.pk}/edit/").context["request"].csp_nonce

    assert "style-src 'self' 'nonce-" in policy and str(nonce) not in policy, "each page has its own"
    assert "nonce" not in operator.get("/admin/").headers["Content-Security-Policy"]


def test_the_page_of_a_task_displays_its_retries_and_limits(operator, clock):
    define_task("charge", retryCount=3, retryLogic="EXPONENTIAL_BACKOFF", retryDelaySeconds=10)
    define_workflow("order", simple("charge"))
    row = TaskDefinition.objects.get(name="charge")

    page = page_text(operator.get(f"{TASKS}{row.pk}/change/"))

    assert (
        "4 attempts, retried after 10.0 s, 20.0 s, 40.0 s. The last one starts 1 min 10 s after the first failure."
        in page
    )
    assert "Timeout per attempt 1 h" in page and "order v1" in page


def test_a_check_of_a_task_definition_draws_its_policies(operator, clock):
    typed = json.dumps({"name": "charge", "retryCount": 2, "ownerEmail": "a@example.com"})

    assert "3 attempts" in check(operator, typed, TASKS)["picture"]


def test_old_versions_are_compared_with_the_one_before(operator, order):
    define_workflow("order", simple("charge"), version=2)
    row = WorkflowDefinition.objects.get(version=2)

    page = page_text(operator.get(f"{WORKFLOWS}{row.pk}/compare/"))

    assert "v1 → v2" in page and "step ship removed: Worker task" in page


def test_a_comparison_of_equal_versions_says_so_instead_of_empty_tables(operator, order):
    copy = WorkflowDefinition.objects.create(name="order", version=2, document=order.document)

    equal = page_text(operator.get(f"{WORKFLOWS}{copy.pk}/compare/"))
    itself = page_text(operator.get(f"{WORKFLOWS}{copy.pk}/compare/?with={copy.pk}"))

    assert "The documents of v1 and v2 are equal." in equal and "Diagram of" not in equal
    assert "You compare v2 with itself. Choose another version." in itself


def test_the_diagrams_of_two_versions_mark_the_steps_that_differ(operator, order):
    define_workflow("order", simple("charge", optional=True), noop("mail"), version=2)
    row = WorkflowDefinition.objects.get(version=2)

    pictures = operator.get(f"{WORKFLOWS}{row.pk}/compare/").context["pictures"]

    notes = [{node.ref: (node.note, node.tone) for node in picture.nodes} for _version, picture in pictures]
    assert notes == [
        {"charge": ("changed", "active"), "ship": ("removed", "failed")},
        {"charge": ("changed", "active"), "mail": ("added", "succeeded")},
    ]


def test_the_head_of_a_page_with_versions_leads_to_them_and_the_rollback_is_in_their_head(operator, order):
    [first] = WorkflowDefinition.objects.all()
    page = html(operator.get(f"{WORKFLOWS}{first.pk}/change/"))
    assert 'href="#versions"' not in page and "Roll back" not in page

    define_workflow("order", simple("charge"), simple("ship"), version=2)
    page = html(operator.get(f"{WORKFLOWS}{WorkflowDefinition.objects.get(version=2).pk}/change/"))
    assert page.index('href="#versions"') < page.index('id="picture-head"')
    card = page[page.index('id="versions"') :]
    assert card.index("Roll back to v1") < card.index("<table")


def test_an_old_version_becomes_the_newest_again(operator, order):
    define_workflow("order", simple("charge"), version=2)

    answer = operator.post(f"{WORKFLOWS}{order.pk}/restore/", {"reason": "v2 loses parcels"})

    newest = WorkflowDefinition.objects.get(version=3)
    assert answer.url == f"{WORKFLOWS}{newest.pk}/change/"
    assert len(newest.document["tasks"]) == 2 and newest.document["version"] == 3
    assert AuditEntry.objects.get(object_id="order:3").reason == "v2 loses parcels"


def test_the_version_history_lists_authors_reasons_and_run_results(operator, order):
    start_run_of(simple("charge"), name="order")
    page = operator.get(f"{WORKFLOWS}{order.pk}/change/")

    [version] = page.context["versions"]
    assert (version.author, version.open_runs) == ("ann", 1)


def test_the_page_takes_few_queries(operator, order, django_assert_max_num_queries):
    for version in range(2, 12):
        define_workflow("order", simple("charge"), version=version)

    with django_assert_max_num_queries(15):
        page = operator.get(f"{WORKFLOWS}{order.pk}/change/?step=charge")
    assert "Type Worker task Task charge" in page_text(page)


def test_runs_of_older_versions_can_be_upgraded_to_the_newest(operator, order):
    start_run_of(simple("charge"), simple("pack"), name="order")
    define_workflow("order", simple("charge"), simple("ship"), version=2)
    newest = WorkflowDefinition.objects.get(version=2)

    page = html(operator.get(f"{WORKFLOWS}{newest.pk}/change/"))

    assert "1 of v1" in page
    address = re.search(r'href="([^"]*action=upgrade[^"]*)"', page)[1].replace("&amp;", "&")
    assert "Continues each active run with the newest version" in page_text(operator.get(address))
