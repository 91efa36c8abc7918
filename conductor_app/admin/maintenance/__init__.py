"""Pages for maintenance: audit log, retention, background jobs, system."""
