"""Plain names of step types, which pages show instead of the type, and of the places of steps."""

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..core.definition import DEFAULT_TYPE, FORK
from ..core.step_edits import StepPlace
from ..core.step_types import ai, decisions, forks, loops, other_runs, sub_workflows, try_catch, waiting, worker_tasks
from ..utils.formatting import LazyText

TYPE_LABELS: Mapping[str, LazyText] = {
    DEFAULT_TYPE: gettext_lazy("Worker task"),
    worker_tasks.HttpStep.type: gettext_lazy("HTTP request"),
    worker_tasks.HttpPollStep.type: gettext_lazy("HTTP poll"),
    worker_tasks.JdbcStep.type: gettext_lazy("SQL statement"),
    worker_tasks.KafkaPublishStep.type: gettext_lazy("Publish to Kafka"),
    worker_tasks.EventStep.type: gettext_lazy("Publish event"),
    worker_tasks.Inline.type: gettext_lazy("Script"),
    worker_tasks.Lambda.type: gettext_lazy("Script"),
    worker_tasks.JsonJqTransform.type: gettext_lazy("jq transformation"),
    worker_tasks.Dynamic.type: gettext_lazy("Dynamic task"),
    waiting.Human.type: gettext_lazy("Human task"),
    waiting.Wait.type: gettext_lazy("Wait"),
    waiting.WaitForWebhook.type: gettext_lazy("Wait for a webhook"),
    waiting.Yield.type: gettext_lazy("Yield"),
    waiting.PullWorkflowMessages.type: gettext_lazy("Receive messages"),
    decisions.Switch.type: gettext_lazy("Switch"),
    decisions.DecisionStep.type: gettext_lazy("Decision"),
    decisions.SetVariable.type: gettext_lazy("Set variables"),
    decisions.Terminate.type: gettext_lazy("Terminate"),
    decisions.Noop.type: gettext_lazy("No operation"),
    forks.ForkJoin.type: gettext_lazy("Fork"),
    forks.ForkJoinDynamic.type: gettext_lazy("Dynamic fork"),
    forks.Join.type: gettext_lazy("Join"),
    forks.ExclusiveJoin.type: gettext_lazy("Exclusive join"),
    loops.DoWhile.type: gettext_lazy("Loop"),
    loops.ForEach.type: gettext_lazy("For each"),
    loops.ForEachItem.type: gettext_lazy("Item of a list"),
    try_catch.TryCatch.type: gettext_lazy("Try"),
    sub_workflows.SubWorkflow.type: gettext_lazy("Sub-workflow"),
    sub_workflows.StartWorkflow.type: gettext_lazy("Start workflow"),
    other_runs.GetWorkflowStep.type: gettext_lazy("Get workflow"),
    other_runs.TerminateWorkflowStep.type: gettext_lazy("Terminate workflows"),
    other_runs.UpdateTaskStep.type: gettext_lazy("Update task"),
    ai.LlmChatComplete.type: gettext_lazy("Chat with a model"),
    ai.LlmTextComplete.type: gettext_lazy("Ask a model"),
    ai.CallMcpToolStep.type: gettext_lazy("Call an MCP tool"),
    ai.ListMcpToolsStep.type: gettext_lazy("List MCP tools"),
    ai.LlmGenerateEmbeddings.type: gettext_lazy("Generate embeddings"),
    ai.LlmGetEmbeddings.type: gettext_lazy("Get embeddings"),
    ai.LlmIndexText.type: gettext_lazy("Index a text"),
    ai.LlmSearchEmbeddings.type: gettext_lazy("Search embeddings"),
    ai.LlmSearchIndex.type: gettext_lazy("Search an index"),
    ai.LlmStoreEmbeddings.type: gettext_lazy("Store embeddings"),
}


def type_label(type: str) -> str:
    """Return the plain name of a step type. Workers execute types that are not registered."""
    label = TYPE_LABELS.get(forks.ForkJoin.type if type == FORK else type, TYPE_LABELS[DEFAULT_TYPE])
    return str(label)


def place_label(place: StepPlace) -> str:
    """Return a place for a new step in words, such as `after charge`."""
    if place.after:
        return _("after %(ref)s") % {"ref": place.after}
    label = _("branch %(number)s") % {"number": place.branch} if place.branch else place.label
    if around := f"{place.owner} › {label}" if label else place.owner:
        return _("first in %(ref)s") % {"ref": around}
    return _("at the start")
