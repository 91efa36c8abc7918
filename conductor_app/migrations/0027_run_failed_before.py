from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0026_run_failed_before_at"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("failed_before_at__isnull", False)),
                fields=["failed_before_at"],
                name="run_failed_before",
            ),
        ),
    ]
