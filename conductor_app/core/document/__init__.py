"""The workflow document: read, checked, edited, compared."""
