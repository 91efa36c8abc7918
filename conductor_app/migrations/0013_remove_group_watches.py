"""Remove the watches of task groups, and the actions on groups that wait for an approval.

Exempt from the linter: no release has these tables. Processes of revisions that read them are stopped for it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0012_owners_of_bulk_operations"),
    ]

    operations = [migrations.DeleteModel(name="GroupWatch"), migrations.DeleteModel(name="PendingApproval")]
