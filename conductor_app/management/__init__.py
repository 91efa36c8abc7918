"""Management commands, and the supervisor of the processes of one machine."""
