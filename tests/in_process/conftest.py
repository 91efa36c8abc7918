"""The Django project of the tests with a new database: a copy of one that is migrated once."""

import os
import shutil
from collections.abc import Iterator
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
) -> Iterator[Shop]:
    """Migrate the database that the others are copies of."""
    if connection.vendor == "sqlite":
        shop = Shop({"NAME": str(tmp_path_factory.mktemp("shop") / "shop.sqlite3")})
        shop.manage("migrate", "-v", "0")
        shop.manage("conductor_definitions", "--apply")
        yield shop
        return
    settings = connection.settings_dict
    place = {name: settings[name] for name in ("USER", "PASSWORD", "HOST", "PORT")}
    place |= {"ENGINE": "django.db.backends.postgresql", "NAME": f"shop_{os.getpid()}"}
    with django_db_blocker.unblock():
        _execute(f"CREATE DATABASE {place['NAME']}")
        Shop(place).manage("migrate", "-v", "0")
        Shop(place).manage("conductor_definitions", "--apply")
        yield Shop(place)
        _execute(f"DROP DATABASE {place['NAME']} WITH (FORCE)")


@pytest.fixture
def shop(migrated_shop: Shop, django_db_blocker: Any, tmp_path: Path) -> Iterator[Shop]:
    """Return the project with a new database."""
    source = migrated_shop.database["NAME"]
    if connection.vendor == "sqlite":
        path = tmp_path / "shop.sqlite3"
        shutil.copy(source, path)
        yield Shop({"NAME": str(path)})
        return
    name = f"{source}_{next(_numbers)}"
    with django_db_blocker.unblock():
        _execute(f"CREATE DATABASE {name} TEMPLATE {source}")
        yield Shop(migrated_shop.database | {"NAME": name})
        _execute(f"DROP DATABASE {name} WITH (FORCE)")


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
