"""How languages write numbers and dates, where we differ from Django."""
