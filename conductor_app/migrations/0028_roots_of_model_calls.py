from django.db import migrations
from django.db.models import OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, NullIf


def fill_roots(apps, schema_editor):
    """Set the top of the tree of the run of each call."""
    calls = apps.get_model("conductor", "ModelCall").objects.filter(root_id="")
    run = apps.get_model("conductor", "Run").objects.filter(pk=OuterRef("run_id"))
    root = run.values_list(Coalesce(NullIf("root_id", Value("")), "pk"))[:1]
    calls.update(root_id=Coalesce(Subquery(root), "run_id"))


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0027_budget_reservations"),
    ]

    operations = [migrations.RunPython(fill_roots, migrations.RunPython.noop)]
