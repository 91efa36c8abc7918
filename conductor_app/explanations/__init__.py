"""Why a run waits or has failed: one answer for pages, API and agents."""
