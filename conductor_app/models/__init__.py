"""The place where Django looks for the tables of an app: it imports those of every slice."""

from importlib import import_module

from django.utils.module_loading import module_has_submodule

from ..site.slices import SLICES

import_module("conductor_app.db.leases")
for name in SLICES:
    slice_package = import_module(f"conductor_app.{name}")
    if module_has_submodule(slice_package, "models"):
        import_module(f"conductor_app.{name}.models")
