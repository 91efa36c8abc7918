"""Taskcluster's Queue, Auth and Object services. In this package, an attempt is a run.

Each package holds the views and the serializers of one capability. A view parses the request, executes a command or a
query, and renders the reply; its `methods` declare the scopes and the schemas of each method.
"""
