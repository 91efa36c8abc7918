"""The built-in workers, by their task type."""

from conductor_app.workers.event import EventWorker
from conductor_app.workers.http import Http
from conductor_app.workers.http_poll import HttpPoll
from conductor_app.workers.jdbc import Jdbc
from conductor_app.workers.kafka_publish import KafkaPublish

WORKERS = {worker.type: worker for worker in (Http(), HttpPoll(), Jdbc(), EventWorker(), KafkaPublish())}
