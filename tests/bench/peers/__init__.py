"""Comparison of this server with other engines: `make bench PEERS=1`."""
