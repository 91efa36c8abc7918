"""Programs for developers and maintainers, outside of the tests: `python -m qa.bench`."""
