"""Slug ids: a UUID of version 4 in URL-safe base64, as Taskcluster names tasks and groups."""

SLUGID_PATTERN = r"^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$"
