from django.db import migrations

from conductor_app.models.migration_operations import SetFillFactor


class Migration(migrations.Migration):
    """Leave room for updates on the pages of rows that every task updates: two updates of an attempt log half as much."""

    # Each statement locks its table only until it ends.
    atomic = False

    dependencies = [
        ("conductor", "0015_drop_redundant_indexes"),
    ]

    operations = [SetFillFactor(model_name, 90) for model_name in ("run", "task", "attempt")]
