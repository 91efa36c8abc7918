"""Folders of definitions, such as Git repositories: plan, apply, drift, bundles."""
