"""An app whose second migration changes a table that another session has locked."""
