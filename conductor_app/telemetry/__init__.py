"""What the server tells those who watch it: counts and times, what a log line is about, traces."""
