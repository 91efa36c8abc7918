"""GREET: a built-in type for tests only, declared by two classes: the type of the step, and its worker."""

from conductor_app.core.step_types.base import BuiltIn, gettext_noop, input_member, step_of
from conductor_app.system_tasks.registry import BuiltInWorker, WorkResult


class Greet(BuiltIn):
    """Greets a person."""

    type = "GREET"
    label = gettext_noop("Greeting")
    required_inputs = ("person",)
    output_members = {"text": None}
    summary = gettext_noop("Greet a person")
    sample = (step_of(type, "greet", inputParameters={"person": ""}),)
    members = (input_member("person", gettext_noop("Person")),)


class GreetWorker(BuiltInWorker):
    type = Greet.type

    def perform(self, inputs):
        return WorkResult("COMPLETED", {"text": f"Hello {inputs['person']}"})
