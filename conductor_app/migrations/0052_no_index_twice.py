from django.db import migrations

TABLES = ("conductor_run", "conductor_task", "conductor_attempt")
"""Where every change writes. Ids are looked up whole or as a range from their beginning: their key serves both."""
SECOND_INDEX = (
    "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = %s "
    "AND indexdef LIKE '%%(id varchar_pattern_ops)'"
)


def drop(apps, schema_editor):
    """Drop the index that Django makes on PostgreSQL beside the one of a textual primary key."""
    if schema_editor.connection.vendor != "postgresql":
        return
    quoted = schema_editor.quote_name
    with schema_editor.connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(SECOND_INDEX, [table])
            for (name,) in cursor.fetchall():
                cursor.execute(f"DROP INDEX {quoted(name)}")


def make(apps, schema_editor):
    """Make it again."""
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE INDEX {table}_id_like ON {table} (id varchar_pattern_ops)")


class Migration(migrations.Migration):
    """Ids are indexed once: each change of a run writes two entries less on PostgreSQL."""

    dependencies = [("conductor", "0051_acts_on_groups_that_wait")]

    operations = [migrations.RunPython(drop, make)]
