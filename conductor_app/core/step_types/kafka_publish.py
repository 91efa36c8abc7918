"""KAFKA_PUBLISH: publishes a message to Kafka."""

from .built_in import BuiltIn


class KafkaPublishStep(BuiltIn):
    """Executed by a built-in worker."""

    type = "KAFKA_PUBLISH"
    icon = "event"
    required_inputs = ("kafka_request",)
