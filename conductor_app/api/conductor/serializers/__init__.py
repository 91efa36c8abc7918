"""The client's field names stop here: what comes in becomes our words, what goes out is written field by field."""
