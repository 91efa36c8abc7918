"""Let alerts be rules on workflows, without a view.

Exempt from the linter: the table of alerts is small, so that its new constraint locks it for a moment only, and it allows
what processes of the previous version write. These log an error for a rule that is turned on during the upgrade.
"""

from django.db import migrations, models

import conductor_app.db.fields

KINDS = ("count", "share", "absence", "age", "budget", "new_cause", "returned_cause", "unpolled_queue")


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0017_run_idle_ms"),
    ]

    operations = [
        migrations.AlterField(
            model_name="alert",
            name="view",
            field=models.ForeignKey(
                null=True,
                on_delete=models.deletion.CASCADE,
                related_name="alerts",
                to="conductor.savedview",
            ),
        ),
        migrations.AddField(
            model_name="alert",
            name="workflow",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.AddField(
            model_name="alert",
            name="seen",
            field=conductor_app.db.fields.DocumentField(blank=True, null=True),
        ),
        migrations.RemoveConstraint(model_name="alert", name="alert_kind_is_known"),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="alert_kind_is_known"),
        ),
    ]
