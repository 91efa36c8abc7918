from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0013_remove_group_watches"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("debug__isnull", False)), fields=["-id"], name="run_with_breakpoints"
            ),
        ),
    ]
