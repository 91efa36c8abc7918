"""Definitions: lists, editor, versions, bundles, simulator, and the form that starts a run."""
