"""The Django project of the tests with a new database: a copy of one migrated once for each type of user keys."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.in_process.shop import Shop

_numbers = count()


@pytest.fixture(scope="session")
def migrated_shop(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Shop]]:
    """Return a function that migrates the database that the others are copies of.

    Its argument: the keys of users, or "divided", with the workflows and the orders in another database than the users.
    """
    names = []

    def create(suffix: str) -> dict[str, Any]:
        if connection.vendor == "sqlite":
            return {"NAME": str(tmp_path_factory.mktemp("shop") / "shop.sqlite3")}
        settings = connection.settings_dict
        place = {name: settings[name] for name in ("USER", "PASSWORD", "HOST", "PORT")}
        place |= {"ENGINE": "django.db.backends.postgresql", "NAME": f"shop_{os.getpid()}_{suffix}"}
        _execute(f"CREATE DATABASE {place['NAME']}")
        names.append(place["NAME"])
        return place

    @cache
    def migrate(kind: str) -> Shop:
        if kind == "divided":
            shop = Shop(create(kind), workflows=create("workflows"))
            shop.manage("migrate", "-v", "0", "--database", "workflows")
        else:
            shop = Shop(create(kind), variables={"SHOP_KEYS": kind} if kind else {})
        shop.manage("migrate", "-v", "0")
        shop.manage("conductor_definitions", "--apply")
        return shop

    yield migrate
    with django_db_blocker.unblock():
        for name in names:
            _execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def shop(
    request: pytest.FixtureRequest, migrated_shop: Callable[[str], Shop], django_db_blocker: Any, tmp_path: Path
) -> Iterator[Shop]:
    """Return the project with a new database. A parameter is the argument of `migrated_shop`."""
    with django_db_blocker.unblock():
        migrated, names = migrated_shop(getattr(request, "param", "")), []

        def copy(place: dict[str, Any]) -> dict[str, Any]:
            if not place:
                return {}
            source = place["NAME"]
            if connection.vendor == "sqlite":
                return place | {"NAME": str(shutil.copy(source, tmp_path / f"{next(_numbers)}.sqlite3"))}
            name = f"{source}_{next(_numbers)}"
            _execute(f"CREATE DATABASE {name} TEMPLATE {source}")
            names.append(name)
            return place | {"NAME": name}

        databases = copy(migrated.database), copy(migrated.workflows)
        yield Shop(databases[0], variables=dict(migrated.variables), workflows=databases[1])
        for name in names:
            _execute(f"DROP DATABASE {name} WITH (FORCE)")


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
