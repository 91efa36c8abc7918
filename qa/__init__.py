"""Programs for developers and maintainers that are no tests."""
