from django.db import migrations, models

import conductor_app.models.fields


class Migration(migrations.Migration):
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
    ]
