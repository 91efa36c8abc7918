"""Management commands, and the supervisor of the processes on one machine."""
