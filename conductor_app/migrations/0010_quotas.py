"""Create the tables of quotas.

Exempt from the linter: all its indexes belong to tables that it creates, which are empty.
"""

import django.db.models.deletion
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models

import conductor_app.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0009_dead_letters"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CallerQuota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("starts_per_second", models.FloatField(blank=True, null=True)),
                ("polls_per_second", models.FloatField(blank=True, null=True)),
                ("searches_per_minute", models.FloatField(blank=True, null=True)),
                ("open_runs", models.IntegerField(blank=True, null=True)),
                ("stored_bytes", models.BigIntegerField(blank=True, null=True)),
                ("updated_at", conductor_app.models.fields.MomentField()),
                ("updated_by", models.CharField(max_length=255)),
                (
                    "client",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to="conductor.client"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Coalesce(models.F("user"), models.Value(0)),
                        django.db.models.functions.comparison.Coalesce(models.F("client"), models.Value("")),
                        name="one_quota_per_caller",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("client__isnull", False), ("user__isnull", False), _negated=True),
                        name="quota_has_one_caller",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenBucket",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("caller", models.CharField(max_length=320)),
                ("resource", models.CharField(max_length=16)),
                ("tokens", models.FloatField()),
                ("updated_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [models.Index(fields=["updated_at"], name="bucket_by_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("caller", "resource"), name="one_bucket_per_caller")
                ],
            },
        ),
    ]
