from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0013_without_foreign_key_checks"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status__in", ["LEASED", "PENDING"]), ("due_at__lt", 9007199254740991)),
                fields=["due_at"],
                name="attempt_with_timer",
            ),
        ),
    ]
