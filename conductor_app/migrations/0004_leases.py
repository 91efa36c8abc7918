from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0003_run_trees"),
    ]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("holder", models.CharField(blank=True, default="", max_length=255)),
                ("revision", models.BigIntegerField(default=0)),
            ],
        ),
    ]
