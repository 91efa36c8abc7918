"""The tables of this server at a state of its migrations, which need not be the newest one."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import DateTimeField, Model

from conductor_app.management.upgrade_check import describe_outdated

from .archive_keys import SEALED_COLUMN
from .errors import BackupRefused

MIGRATIONS_TABLE = "django_migrations"


@dataclass(frozen=True)
class ProductTable:
    """A table of this server, as its models describe it."""

    name: str
    columns: list[str]
    time_columns: frozenset[str]
    sealed_columns: frozenset[str]
    id_column: str | None
    """The column with a sequence, None if there is none."""


def read_migrations(connection: BaseDatabaseWrapper) -> dict[str, list[str]]:
    """Return the names of the applied migrations of each app."""
    by_app: dict[str, list[str]] = {}
    for app, name in sorted(MigrationLoader(connection).applied_migrations):
        by_app.setdefault(app, []).append(name)
    return by_app


def product_tables(migrations: Mapping[str, list[str]]) -> list[ProductTable]:
    """Return the tables of the models at this state of the migrations.

    Raises:
        BackupRefused: when this version does not have one of the migrations.
    """
    loader = MigrationLoader(None, replace_migrations=False)
    keys = require_known(loader, migrations)
    apps = loader.project_state(keys).apps
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    return sorted((_product_table(model) for model in models if not model._meta.proxy), key=lambda table: table.name)


def require_known(loader: MigrationLoader, migrations: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return the keys of the migrations.

    Raises:
        BackupRefused: when this version does not have one of them, or has replaced only some of them.
    """
    keys = [(app, name) for app, names in migrations.items() for name in names]
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    if unknown := sorted(set(keys) - set(loader.disk_migrations) - replaced):
        listed = ", ".join(f"{app}.{name}" for app, name in unknown[:5])
        raise BackupRefused(
            f"The database has migrations that this version does not have: {listed}. Use the version that applied "
            "them, or a newer one."
        )
    if refusal := describe_outdated(loader, keys):
        raise BackupRefused(refusal)
    return [key for key in keys if key in loader.graph.nodes]


def apply_migrations(connection: BaseDatabaseWrapper, migrations: Mapping[str, list[str]]) -> None:
    """Apply exactly these migrations to an empty database."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    keys = set(require_known(executor.loader, migrations))
    followed = {parent.key for key in keys for parent in graph.node_map[key].parents if parent.key[0] == key[0]}
    executor.migrate(sorted(keys - followed))


def _product_table(model: type[Model]) -> ProductTable:
    fields = {str(field.column): field for field in model._meta.local_concrete_fields}
    key = model._meta.pk
    return ProductTable(
        name=model._meta.db_table,
        columns=list(fields),
        time_columns=frozenset(column for column, field in fields.items() if isinstance(field, DateTimeField)),
        sealed_columns=frozenset(
            column
            for column, field in fields.items()
            if SEALED_COLUMN.fullmatch(column) and field.get_internal_type() == "TextField"
        ),
        id_column=key.column if key is not None and key.get_internal_type().endswith("AutoField") else None,
    )
