"""An admin site of the project's own."""

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig


class ShopAdminSite(AdminSite):
    site_header = "Shop"


class ShopAdminConfig(AdminConfig):
    default_site = "shop.apps.ShopAdminSite"
