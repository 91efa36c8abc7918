"""Settings: `base` has the common ones, and each profile the differences."""
