"""Routers that tests use."""


class OtherDatabase:
    """Sends the tables of conductor_app to another database."""

    def db_for_write(self, model, **hints):
        return "other" if model._meta.app_label == "conductor" else None


class OrdersWithWorkflows:
    """Has the orders in the database of the workflows, and all other tables of the project in `default`."""

    def db_for_read(self, model, **hints):
        return "workflows" if model._meta.app_label == "orders" else None

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return db == ("workflows" if app_label == "orders" else "default")
