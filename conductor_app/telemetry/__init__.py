"""Telemetry: metrics, the context of log lines, and traces."""
