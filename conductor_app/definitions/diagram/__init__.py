"""Diagrams of workflow definitions."""
