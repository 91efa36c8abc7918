from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the versions of indexes, by which processes know whether the vectors that they have read are current."""

    dependencies = [
        ("conductor", "0031_validate_alert_kinds"),
    ]

    operations = [
        migrations.CreateModel(
            name="VectorIndexVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("database", models.CharField(max_length=255)),
                ("index", models.CharField(max_length=255)),
                ("version", models.CharField(max_length=32)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("database", "index"), name="one_version_per_index"),
                ],
            },
        ),
    ]
