"""Pages of human tasks and of form templates."""
