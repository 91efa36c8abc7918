"""Only the pages of conductor_app, in a project without its own admin site."""

from django.urls import include, path

urlpatterns = [path("conductor/", include("conductor_app.in_process.urls"))]
