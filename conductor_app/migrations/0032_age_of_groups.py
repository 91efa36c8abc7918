from django.db import migrations, models
from django.db.models import Min, OuterRef, Subquery

import conductor_app.models.fields


def as_old_as_their_first_tasks(apps, schema_editor):
    """Groups that are there already have the age of what is left in them."""
    own = apps.get_model("conductor", "Solo").objects.filter(group_id=OuterRef("pk")).order_by().values("group_id")
    first = own.annotate(first=Min("task__created_at")).values("first")
    groups = apps.get_model("conductor", "Group").objects.annotate(first=Subquery(first))
    groups.filter(first__isnull=False).update(created_at=Subquery(first))


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0031_files_of_runs"),
    ]

    operations = [
        migrations.AlterModelOptions(name="group", options={"verbose_name": "task group"}),
        migrations.AddField("group", "created_at", conductor_app.models.fields.MomentField(default=0)),
        migrations.RunPython(as_old_as_their_first_tasks, migrations.RunPython.noop),
        migrations.AddIndex("group", models.Index(fields=["-created_at", "id"], name="group_by_age")),
    ]
