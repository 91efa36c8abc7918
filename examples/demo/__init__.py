"""A shop for outdoor equipment processes its orders: a client of the server on the official Python SDK.

`workers.py` shows how to write workers, `workflows.py` the workflows that call them and the orders. It is run by
`make demo`.
"""
