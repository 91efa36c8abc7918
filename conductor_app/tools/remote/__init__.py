"""Commands against any server, by its address: `conductor-app runs`, `queues`, `failures`, `tasks`.

They need neither Django nor a database.
"""
