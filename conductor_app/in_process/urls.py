"""URL patterns that another Django project includes to have the pages and the REST API below a path of its own.

path("conductor/", include("conductor_app.in_process.urls"))
"""

from django.urls import path

from ..site.mount import serve_mounted

app_name = "conductor"
urlpatterns = [
    path("<path:path>", serve_mounted),
    path("", serve_mounted, name="index"),
    # The first pattern matches these. They are for `reverse("conductor:run", args=[run_id])` in the project.
    path("admin/conductor/run/<str:run_id>/change/", serve_mounted, name="run"),
    path("api", serve_mounted, name="api"),
]
