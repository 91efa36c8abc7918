"""The operators' screens: a screen family a module, all inside one AdminSite (`site.py`)."""
