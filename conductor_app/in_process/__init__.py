"""The Python API for code of another Django project, in its own process and in its own transactions."""
