"""Store which user owns a saved view, and which one has caused an entry of the audit log: names can be used again.

Exempt from the linter: the table of saved views is small, so that its new constraint locks it for a moment only, and
processes of the previous version write no `owner_id`, which the constraint allows.
"""

from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0014_run_with_breakpoints"),
    ]

    operations = [
        migrations.AddField(
            model_name="savedview",
            name="owner_id",
            field=conductor_app.db.fields.UserKeyField(null=True, blank=True),
        ),
        migrations.RemoveConstraint(model_name="savedview", name="one_view_per_owner_and_name"),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                name="one_view_per_user_and_name", fields=["owner_id", "owner", "name"]
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="actor_id",
            field=conductor_app.db.fields.UserKeyField(null=True, blank=True),
        ),
        migrations.AlterModelOptions(
            name="secret",
            options={"ordering": ["name"], "permissions": [("execute_secret", "Can execute secrets (no effect)")]},
        ),
        migrations.AlterModelOptions(
            name="variable",
            options={"ordering": ["name"], "permissions": [("execute_variable", "Can execute variables (no effect)")]},
        ),
    ]
