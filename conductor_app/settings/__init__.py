"""Settings: `base` is what all profiles share; each profile is the whole difference between them."""
