from django.db import migrations, models

import conductor_app.db.fields
from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0020_one_open_attempt_per_task"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="traceparent",
            field=models.CharField(blank=True, max_length=55, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="traced_at",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False), ("traceparent__isnull", False))
                & models.Q(("traced_at__isnull", True), ("traced_at__lt", models.F("ended_at")), _connector="OR"),
                fields=["ended_at"],
                name="run_to_trace",
            ),
        ),
    ]
