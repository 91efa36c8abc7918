from django.db import migrations, models

import conductor_app.db.fields
from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0025_run_kept_until"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="failed_before_at",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("failed_before_at__isnull", False)),
                fields=["failed_before_at"],
                name="run_failed_before",
            ),
        ),
    ]
