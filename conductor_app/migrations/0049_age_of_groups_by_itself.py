import conductor_app.models.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0048_requests_of_audit_entries"),
    ]

    operations = [
        migrations.AlterField(
            model_name="group",
            name="created_at",
            field=conductor_app.models.fields.MomentField(db_default=0, default=0),
        ),
    ]
