"""The processes of a server: command line, supervisor, background jobs, sweeps, upgrades."""
