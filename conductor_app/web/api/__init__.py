"""Conductor's REST API. In this package, a run is a workflow execution.

Each package holds the views and the serializers of one capability. A view parses the request, executes a command or a
query, and renders the reply; the `ApiOperation` that decorates a handler declares its permission and its summary. Field
names of clients occur only in serializers.
"""
