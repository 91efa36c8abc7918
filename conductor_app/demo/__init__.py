"""An outdoor shop fulfils its orders: a client of the server, on the official Python SDK and nothing of ours.

Read `workers.py` to learn how a worker is written, `workflows.py` for what calls it, `orders.py` for what is ordered.
"""
