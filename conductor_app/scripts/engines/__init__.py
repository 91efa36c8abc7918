"""Script engines. A helper process imports one of them as a top-level module, without the rest of this project."""
