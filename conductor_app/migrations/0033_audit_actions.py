from typing import Any

from django.db import migrations

RENAMED = {
    "activate key": "enable key",
    "ask": "request approval",
    "forget": "remove",
    "forget case": "delete test case",
    "hand out now": "skip delay",
    "hand_task_on": "reassign_task",
    "hold by cases": "require test cases",
    "keep case": "save test case",
    "prioritise": "change priority",
    "put_task_back": "release_task",
    "take from worker": "release from worker",
    "take work again": "resume",
    "take_task": "claim_task",
    "warn by cases": "make test cases optional",
    "withdraw key": "disable key",
}
"""Former actions of the audit log and the present ones."""


def rename_actions(apps: Any, schema_editor: Any) -> None:
    entries = apps.get_model("conductor", "AuditEntry").objects.using(schema_editor.connection.alias)
    for former, present in RENAMED.items():
        entries.filter(action=former).update(action=present)


class Migration(migrations.Migration):
    """Rename actions in the audit log to the words of the pages. Entries of the previous release are shown as they are."""

    dependencies = [
        ("conductor", "0032_versions_of_vector_indexes"),
    ]

    operations = [migrations.RunPython(rename_actions, migrations.RunPython.noop)]
