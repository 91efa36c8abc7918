"""The recorded replies, which models of other SDKs read, cover every step type and every state."""

import pytest

from conductor_app.core.step_types import STEP_TYPES

from .reply_documents import RUN_STATUSES, TASK_STATUSES

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


def test_the_recorded_replies_have_every_step_type_and_every_state(reply_folder):
    runs = reply_folder.documents("Workflow")
    tasks = [task for run in runs for task in run["tasks"]]

    assert {task["status"] for task in tasks} == TASK_STATUSES
    assert {run["status"] for run in runs} == RUN_STATUSES
    assert STEP_TYPES.keys() <= {name for task in tasks for name in (task["taskType"], task["workflowTask"]["type"])}
