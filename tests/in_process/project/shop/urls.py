"""The addresses of the project."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("conductor/", include("conductor_app.in_process.urls")),
]
