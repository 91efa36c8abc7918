"""Mark the grants of prefixes.

Before, each grant whose target ended with `*` was one of a prefix, also that which the creator of an object named `*`
or `order_*` received: it owned all objects. Such a grant stays, for exactly that name. It is one that

- a user has given to itself, because a user can give only what it has: the grant adds nothing, or is a creator's,
- a group has received with an object of this name, from the creator of the object.

All other grants with a trailing `*` were written by an administrator, and become grants of prefixes. Tags have none.
The target keeps its `*`, so that a process of the previous version reads the same grants beside this one.
"""

from django.db import migrations

MODELS = {
    "WORKFLOW_DEF": "WorkflowDefinition",
    "TASK_DEF": "TaskDefinition",
    "WORKFLOW_SCHEDULE": "Schedule",
    "EVENT_HANDLER": "EventHandler",
    "SECRET_NAME": "Secret",
    "ENV_VARIABLE": "Variable",
    "SCHEMA": "SchemaDefinition",
    "WEBHOOK": "Webhook",
    "USER_FORM_TEMPLATE": "FormTemplate",
    "INTEGRATION_PROVIDER": "Integration",
    "PROMPT": "Prompt",
}


def mark_prefixes(apps, schema_editor):
    grants = apps.get_model("conductor", "Grant").objects.using(schema_editor.connection.alias)
    patterns = grants.filter(target_id__endswith="*", is_prefix=False).exclude(target_type="TAG")
    if not patterns.exists():
        # The tables of users may be in another database.
        return
    prefixes = [
        row.pk
        for row in patterns.select_related("user__application").iterator()
        if not (is_own(row) if row.user_id else is_shared_by_creator(row, apps, schema_editor.connection.alias))
    ]
    for start in range(0, len(prefixes), 500):
        grants.filter(pk__in=prefixes[start : start + 500]).update(is_prefix=True)


def is_own(row):
    """Return True if a user or an application has given itself the grant. It is recorded with its name."""
    application = getattr(row.user, "application", None)
    return row.granted_by == (application.name if application else row.user.username)[:255]


def is_shared_by_creator(row, apps, alias):
    """Return True if the giver of the grant has created an object with this name."""
    if row.target_type not in MODELS or not row.granted_by:
        return False
    rows = apps.get_model("conductor", MODELS[row.target_type]).objects.using(alias)
    return rows.filter(name=row.target_id, created_by=row.granted_by).exists()


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0004_grant_is_prefix"),
    ]

    operations = [
        migrations.RunPython(mark_prefixes, migrations.RunPython.noop),
    ]
