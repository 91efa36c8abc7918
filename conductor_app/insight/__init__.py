"""Reading for people: computes, never writes."""
