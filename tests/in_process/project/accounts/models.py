"""Users with an e-mail address instead of a name."""

import os
import uuid
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class Users(BaseUserManager):
    def create_user(self, email, password=None, **fields):
        user = self.model(email=email, **fields)
        if user.pk == "":
            user.pk = unusual_text()
        user.set_password(password)
        user.save()
        return user


def unusual_text():
    """Return a key that is no number, with characters that addresses, HTML and SQL treat in a special way."""
    return f"ann/ 'x' \"%s\" %2F&<b>?#;\n\u00e4\u202e{uuid.uuid4()}"


def key_field():
    """Return the primary key of users: a number, or what the environment names."""
    if (kind := os.environ.get("SHOP_KEYS")) == "uuid":
        return models.UUIDField(primary_key=True, serialize=False, default=uuid.uuid4)
    if kind == "text":
        return models.CharField(max_length=200, primary_key=True, serialize=False)
    return models.BigAutoField(primary_key=True, serialize=False, verbose_name="ID")


class User(AbstractBaseUser, PermissionsMixin):
    id = key_field()
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    objects = Users()
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
