"""Pages about the engine as a whole: overview, saved views, background jobs, system."""
