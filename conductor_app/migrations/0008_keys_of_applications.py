import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conductor", "0007_applications_of_keys")]

    operations = [
        migrations.AlterField(
            model_name="accesskey",
            name="application",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="keys", to="conductor.application"
            ),
        ),
        # With a default, so that the way back can write rows before it knows their names.
        migrations.AlterField(
            model_name="accesskey", name="application_name", field=models.CharField(default="", max_length=255)
        ),
        migrations.RemoveField(model_name="accesskey", name="application_name"),
    ]
