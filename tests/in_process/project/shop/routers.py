"""A router that a test of the system checks uses."""


class OtherDatabase:
    """Sends the tables of conductor_app to another database."""

    def db_for_write(self, model, **hints):
        return "other" if model._meta.app_label == "conductor" else None
