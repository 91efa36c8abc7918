"""The page "Definitions from Git": what was edited or deleted since a folder was applied, and its export."""

import pytest

from conductor_app.definitions import commands as definition_commands
from tests.api_fixtures import Api
from tests.builders import simple
from tests.page_text import page_text

pytestmark = pytest.mark.django_db
PAGE = "/admin/definition-drift/"
TASK = {"name": "charge", "retryCount": 3}
WORKFLOW = {"name": "order", "schemaVersion": 2, "tasks": [simple("charge")]}


@pytest.fixture
def applied(clock):
    """Apply a task definition and a workflow."""
    document = {"label": "shop", "commit": "4711abc", "documents": [TASK, WORKFLOW]}
    assert Api().post("/definitions/apply", document).json()["failed"] == 0


def test_without_edits_the_page_says_that_nothing_has_drifted(operator, applied):
    assert "2 definitions are as they were applied." in page_text(operator.get(PAGE))


def test_the_page_explains_how_to_apply_a_folder_before_the_first_one(operator, clock):
    assert "No folder has been applied yet" in page_text(operator.get(PAGE))


def test_the_page_lists_who_has_edited_what(operator, applied):
    definition_commands.save_task({**TASK, "retryCount": 7}, "olga")
    definition_commands.delete_workflow("order", 1, "otto")

    text = page_text(operator.get(PAGE))

    assert "retries 3 to 7" in text
    assert "olga" in text
    assert "deleted" in text
    assert "otto" in text
    assert "4711abc" in text


def test_an_edit_is_exported_as_a_document_for_the_folder(operator, applied):
    definition_commands.save_workflow({**WORKFLOW, "version": 2, "description": "Edited"}, "olga", overwrite=False)
    row = operator.get(PAGE).context["rows"][0]["item"].applied

    exported = operator.get(f"{PAGE}{row.pk}/").json()

    assert exported["description"] == "Edited"
    assert "version" not in exported
    assert operator.get(f"{PAGE}{row.pk + 100}/").status_code == 404


def test_the_page_has_few_queries(operator, applied, django_assert_max_num_queries):
    definition_commands.save_task({**TASK, "retryCount": 7}, "olga")
    definition_commands.delete_workflow("order", 1, "otto")

    with django_assert_max_num_queries(15):
        operator.get(PAGE)
