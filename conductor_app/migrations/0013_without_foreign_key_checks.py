import django.db.models.deletion
from django.db import migrations, models

from conductor_app.models.migration_operations import DropForeignKeyCheck

CHILDREN = {"run": ("task", "attempt", "historyentry"), "task": ("attempt",)}
RELATED_NAMES = {"task": "tasks", "attempt": "attempts", "historyentry": "history"}


def drop_check(child: str, parent: str) -> DropForeignKeyCheck:
    is_nullable = {"null": True} if parent == "run" and child != "historyentry" else {}
    key = models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=RELATED_NAMES[child],
        to=f"conductor.{parent}",
        **is_nullable,
    )
    return DropForeignKeyCheck(model_name=child, name=parent, field=key)


class Migration(migrations.Migration):
    """Drop the checks of foreign keys that every report had to pass: four lookups and row locks per task.

    The parents exist, because every writer has locked them; deletions cascade in the application.
    """

    # Each statement locks its tables only until it ends.
    atomic = False

    dependencies = [
        ("conductor", "0012_quotas_indexes"),
    ]

    operations = [drop_check(child, parent) for parent, children in CHILDREN.items() for child in children]
