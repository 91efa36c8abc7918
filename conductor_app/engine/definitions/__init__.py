"""Commands on definitions: save, delete, draft, bundle, simulate and test."""
