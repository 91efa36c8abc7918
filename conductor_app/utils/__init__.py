"""Small modules without dependencies: clock, randomness, JSON, formats, differences."""
