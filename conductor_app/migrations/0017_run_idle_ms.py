from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0016_owners_of_views"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="idle_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
