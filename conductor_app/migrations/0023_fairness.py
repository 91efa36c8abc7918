"""Add fairness keys of runs and attempts, and the turns of the keys of a queue.

Processes of the previous version insert rows without a key.
"""

from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0022_run_to_trace"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="fairness",
            field=conductor_app.db.fields.DocumentField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="fairness_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.AddField(
            model_name="attempt",
            name="fairness_weight",
            field=models.FloatField(db_default=1.0, default=1.0),
        ),
        migrations.CreateModel(
            name="FairShare",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue", models.CharField(max_length=640)),
                ("priority", models.SmallIntegerField()),
                ("key", models.CharField(max_length=255)),
                ("place", models.BigIntegerField()),
                ("served_at", conductor_app.db.fields.MomentField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["queue", "priority", "place", "served_at"], name="share_by_place")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "priority", "key"), name="one_share_per_queue_priority_key"
                    )
                ],
            },
        ),
    ]
