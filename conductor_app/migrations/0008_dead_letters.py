from django.db import migrations, models

import conductor_app.models.fields
from conductor_app.core.snapshot import NEVER
from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0007_run_tree_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="ServerClock",
            fields=[
                ("host", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("ahead_ms", models.BigIntegerField()),
                ("measured_at", conductor_app.models.fields.MomentField()),
            ],
        ),
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(condition=models.Q(("due_at", NEVER)), fields=["to", "id"], name="message_undelivered"),
        ),
    ]
