"""Settings: `base` is common to all profiles; each profile contains all differences."""
