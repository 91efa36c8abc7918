"""The workers that ship with the server, by the task type that they serve."""

from conductor_app.workers.http import Http

WORKERS = {worker.type: worker for worker in (Http(),)}
