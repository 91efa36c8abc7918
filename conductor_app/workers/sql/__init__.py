"""SQL tasks: one statement on a database that the operator has named."""
