"""Watching: what needs a person, why work does not move, what fails, who works."""
