from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0021_traces_of_runs"),
    ]

    operations = [
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
