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
    """Return a function that migrates the database that the others are copies of. Its argument: the keys of users."""
    names = []

    @cache
    def migrate(keys: str) -> Shop:
        place = {"NAME": str(tmp_path_factory.mktemp("shop") / "shop.sqlite3")}
        if connection.vendor == "postgresql":
            settings = connection.settings_dict
            place = {name: settings[name] for name in ("USER", "PASSWORD", "HOST", "PORT")}
            place |= {"ENGINE": "django.db.backends.postgresql", "NAME": f"shop_{os.getpid()}_{keys}"}
            _execute(f"CREATE DATABASE {place['NAME']}")
            names.append(place["NAME"])
        shop = Shop(place, variables={"SHOP_KEYS": keys} if keys else {})
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
    """Return the project with a new database. A parameter is the kind of keys of its users."""
    with django_db_blocker.unblock():
        migrated = migrated_shop(getattr(request, "param", ""))
        source, variables = migrated.database["NAME"], dict(migrated.variables)
        if connection.vendor == "sqlite":
            path = tmp_path / "shop.sqlite3"
            shutil.copy(source, path)
            yield Shop({"NAME": str(path)}, variables=variables)
            return
        name = f"{source}_{next(_numbers)}"
        _execute(f"CREATE DATABASE {name} TEMPLATE {source}")
        yield Shop(migrated.database | {"NAME": name}, variables=variables)
        _execute(f"DROP DATABASE {name} WITH (FORCE)")


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
