"""No pages of conductor_app."""

urlpatterns: list[object] = []
