"""Commands against any server, by its address: `conductor-app plan`, `apply`, `drift`, `export`.

They need neither Django nor a database.
"""
