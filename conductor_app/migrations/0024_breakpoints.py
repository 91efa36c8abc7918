from django.db import migrations

import conductor_app.models.fields


class Migration(migrations.Migration):
    """Store the breakpoints of runs and definitions. Null columns are added without rewriting a table."""

    dependencies = [
        ("conductor", "0023_applied_definitions"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="debug",
            field=conductor_app.models.fields.DocumentField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="workflowdefinition",
            name="breakpoints",
            field=conductor_app.models.fields.DocumentField(blank=True, null=True),
        ),
    ]
