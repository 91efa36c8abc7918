from django.db import migrations, models

import conductor_app.models.fields


class Migration(migrations.Migration):
    """Add the definitions that folders have applied."""

    dependencies = [
        ("conductor", "0022_run_by_version"),
    ]

    operations = [
        migrations.CreateModel(
            name="AppliedDefinition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=120)),
                ("kind", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=255)),
                ("stated_version", models.IntegerField(default=0)),
                ("version", models.IntegerField(default=0)),
                ("versions", conductor_app.models.fields.DocumentField(default=list)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("commit", models.CharField(blank=True, default="", max_length=64)),
                ("applied_at", conductor_app.models.fields.MomentField()),
                ("applied_by", models.CharField(max_length=255)),
            ],
            options={
                "indexes": [models.Index(fields=["label", "kind", "name"], name="applied_definition_of_label")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "name", "stated_version"), name="one_source_per_definition_and_version"
                    )
                ],
            },
        ),
    ]
