"""Pages that plan and follow repairs: of one run, and of many."""
