"""The script engines of helper processes, where each is imported by its bare name without the rest of this project."""
