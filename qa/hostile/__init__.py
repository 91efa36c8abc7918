"""Random requests to every address of a server. None may cause an internal error or reveal a secret."""
