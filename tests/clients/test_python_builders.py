"""Every builder class of the Python SDK: what it writes is registered and run, with the end that the table says."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.workflow import conductor_workflow
from conductor.client.workflow import task as builders
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.do_while_task import DoWhileTask, ForEachTask, LoopTask
from conductor.client.workflow.task.dynamic_fork_task import DynamicForkTask
from conductor.client.workflow.task.dynamic_task import DynamicTask
from conductor.client.workflow.task.event_task import ConductorEventTask, EventTaskInterface, SqsEventTask
from conductor.client.workflow.task.fork_task import ForkTask
from conductor.client.workflow.task.get_document import GetDocument
from conductor.client.workflow.task.http_poll_task import HttpPollInput, HttpPollTask
from conductor.client.workflow.task.http_task import HttpInput, HttpTask
from conductor.client.workflow.task.human_task import HumanTask
from conductor.client.workflow.task.inline import InlineTask
from conductor.client.workflow.task.javascript_task import JavascriptTask
from conductor.client.workflow.task.join_task import JoinTask
from conductor.client.workflow.task.json_jq_task import JsonJQTask
from conductor.client.workflow.task.kafka_publish import KafkaPublishTask
from conductor.client.workflow.task.kafka_publish_input import KafkaPublishInput
from conductor.client.workflow.task.llm_tasks.call_mcp_tool import CallMcpTool
from conductor.client.workflow.task.llm_tasks.chat_message import ChatMessage, Role
from conductor.client.workflow.task.llm_tasks.generate_audio import GenerateAudio
from conductor.client.workflow.task.llm_tasks.generate_image import GenerateImage
from conductor.client.workflow.task.llm_tasks.list_mcp_tools import ListMcpTools
from conductor.client.workflow.task.llm_tasks.llm_chat_complete import LlmChatComplete
from conductor.client.workflow.task.llm_tasks.llm_generate_embeddings import LlmGenerateEmbeddings
from conductor.client.workflow.task.llm_tasks.llm_index_documents import LlmIndexDocument
from conductor.client.workflow.task.llm_tasks.llm_index_text import LlmIndexText
from conductor.client.workflow.task.llm_tasks.llm_query_embeddings import LlmQueryEmbeddings
from conductor.client.workflow.task.llm_tasks.llm_search_embeddings import LlmSearchEmbeddings
from conductor.client.workflow.task.llm_tasks.llm_search_index import LlmSearchIndex
from conductor.client.workflow.task.llm_tasks.llm_store_embeddings import LlmStoreEmbeddings
from conductor.client.workflow.task.llm_tasks.llm_text_complete import LlmTextComplete
from conductor.client.workflow.task.llm_tasks.utils.embedding_model import EmbeddingModel
from conductor.client.workflow.task.pull_workflow_messages_task import PullWorkflowMessagesTask
from conductor.client.workflow.task.set_variable_task import SetVariableTask
from conductor.client.workflow.task.simple_task import SimpleTask
from conductor.client.workflow.task.start_workflow_task import StartWorkflowTask
from conductor.client.workflow.task.sub_workflow_task import InlineSubWorkflowTask, SubWorkflowTask
from conductor.client.workflow.task.switch_task import SwitchTask
from conductor.client.workflow.task.task import TaskInterface
from conductor.client.workflow.task.terminate_task import TerminateTask, WorkflowStatus
from conductor.client.workflow.task.wait_for_webhook_task import WaitForWebHookTask
from conductor.client.workflow.task.wait_task import WaitForDurationTask, WaitTask, WaitUntilTask

from conductor_app.ai.models import Integration
from tests.ai.embedding_server import running_embedding_server
from tests.recording_web_server import WebServer, json_answer

from . import sdk_table
from .model_server import ANSWER, running_model_server
from .shop_workflow import Shop
from .wait_until import eventually

PAST = "2020-01-01 00:00"
FIRST = EmbeddingModel("local", "words")
INDEX: dict[str, Any] = {"vector_db": "default", "index": "docs"}


class Built(NamedTuple):
    """Steps that builders write, and how their run ends.

    `output`: members of its output. `reports`: the results that the test reports for tasks, by reference.
    `reason`: a part of the reason of a failed run. `waits_for`: the reference of a task that stays in its queue.
    """

    steps: list[TaskInterface]
    output: dict[str, Any] | None = None
    status: str = "COMPLETED"
    reports: dict[str, str] = {}
    reason: str = ""
    waits_for: str = ""


class Outside(NamedTuple):
    """What the steps reach: a web server, a server of embeddings, and a registered workflow."""

    web: WebServer
    executor: Any


def noop(ref: str = "n") -> TaskInterface:
    return InlineTask(ref, "1")


def echo(ref: str, **inputs: Any) -> TaskInterface:
    """Return a step that returns its input `value`."""
    return InlineTask(ref, "$.value", inputs)


def for_each(_: Outside) -> Built:
    inside = InlineTask(
        "said",
        "$.item + $.index + $.first",
        {
            "item": "${each.output.loopItem}",
            "index": "${each.output.loopIndex}",
            "first": "${each.output.item}",
        },
    )
    done = InlineTask("all", "[1, 2].map((n) => $.each[n].said.result)", {"each": "${each.output}"})
    return Built([ForEachTask("each", [inside], ["a", "b"]), done], {"result": ["a0a", "b1b"]})


def do_while(_: Outside) -> Built:
    task = DoWhileTask("again", "$.again.iteration < 3", [noop()])
    return Built([task, echo("count", value="${again.output.iteration}")], {"result": 3})


def loop(_: Outside) -> Built:
    return Built([LoopTask("twice", 2, [noop()]), echo("count", value="${twice.output.iteration}")], {"result": 2})


def fork(_: Outside) -> Built:
    branches = [[echo("a", value=1)], [noop(), echo("b", value=2)]]
    both = echo("both", value=["${split_join.output.a.result}", "${split_join.output.b.result}"])
    return Built([ForkTask("split", branches, join_on=["a", "b"]), both], {"result": [1, 2]})


def join(_: Outside) -> Built:
    steps = [ForkTask("split", [[echo("a", value=1)], [noop()]]), JoinTask("both", join_on=["a", "n"])]
    return Built(steps, {"a": {"result": 1}, "n": {"result": 1}})


def dynamic_fork(_: Outside) -> Built:
    plan = (
        "({tasks: ['x', 'y'].map((r) => ({name: r, taskReferenceName: r, type: 'INLINE'})), "
        "inputs: {x: {expression: '1'}, y: {expression: '2'}}})"
    )
    split = DynamicForkTask("split", "tasks", "inputs", JoinTask("both"))
    split.input_parameters.update({"tasks": "${plan.output.result.tasks}", "inputs": "${plan.output.result.inputs}"})
    return Built([InlineTask("plan", plan), split], {"x": {"result": 1}, "y": {"result": 2}})


def switch(_: Outside) -> Built:
    chosen = SwitchTask("by_value", "b").switch_case("a", [noop("a")]).switch_case("b", [echo("b", value=7)])
    script = SwitchTask("by_script", "$.n > 1 ? 'many' : 'one'", use_javascript=True)
    script.input_parameter("n", "${b.output.result}").switch_case("one", noop("one")).default_case([noop("default")])
    return Built([chosen, script, echo("last", value="${default.output.result}")], {"result": 1})


def human(_: Outside) -> Built:
    return Built([HumanTask("approve", display_name="Approve")], {"result": "said"}, reports={"approve": "said"})


def dynamic(_: Outside) -> Built:
    return Built([DynamicTask("builders_worker", "any")], {"result": "said"}, reports={"any": "said"})


def simple(_: Outside) -> Built:
    return Built([SimpleTask("builders_worker", "one")], {"result": "said"}, reports={"one": "said"})


def webhook(_: Outside) -> Built:
    return Built([WaitForWebHookTask("paid", {"$['id']": "7"})], {"result": "said"}, reports={"paid": "said"})


def messages(_: Outside) -> Built:
    return Built([PullWorkflowMessagesTask("next")], {"result": "said"}, reports={"next": "said"})


def sub_workflow(outside: Outside) -> Built:
    ConductorWorkflow(outside.executor, "builders_child").add(echo("e", value=4)).register(overwrite=True)
    return Built([SubWorkflowTask("child", "builders_child", 1)], {"result": 4})


def inline_sub_workflow(outside: Outside) -> Built:
    child = ConductorWorkflow(outside.executor, "builders_inline").add(echo("e", value=5))
    # The SDK has two classes of this name. The second one is what `workflow >> workflow` adds.
    both = [builder("child", child) for builder in (InlineSubWorkflowTask, conductor_workflow.InlineSubWorkflowTask)]
    both[1].task_reference_name = "again"
    return Built(both, {"result": 5})


def start_workflow(outside: Outside) -> Built:
    ConductorWorkflow(outside.executor, "builders_child").add(noop()).register(overwrite=True)
    started = StartWorkflowTask("start", "builders_child", StartWorkflowRequest(name="builders_child", input={}), 1)
    return Built([started, InlineTask("is_id", "$.id.length", {"id": "${start.output.workflowId}"})], {"result": 36})


def http(outside: Outside) -> Built:
    outside.web.answers["/a"] = json_answer({"n": 1})
    task = HttpTask("get", HttpInput(uri=f"{outside.web.url}/a"))
    return Built([task, echo("n", value=task.body("n"))], {"result": 1})


def http_poll(outside: Outside) -> Built:
    outside.web.answers["/b"] = [json_answer({"done": False}), json_answer({"done": True})]
    condition = "(function(){ return $.output.response.body.done; })();"
    return Built(
        [HttpPollTask("ask", HttpPollInput(condition, polling_interval=1, uri=f"{outside.web.url}/b"))], {"polls": 2}
    )


def kafka(_: Outside) -> Built:
    given = KafkaPublishInput(bootstrap_servers="127.0.0.1:1", topic="t", value="v", request_timeout_ms="100")
    task = KafkaPublishTask("send", given)
    return Built([task], status="FAILED", reason="Kafka")


def set_variable(_: Outside) -> Built:
    task = SetVariableTask("set")
    task.input_parameters.update({"color": "red"})
    return Built([task, echo("read", value="${workflow.variables.color}")], {"result": "red"})


def jq(_: Outside) -> Built:
    return Built([JsonJQTask("sum", ".n | add").input_parameter("n", [1, 2])], {"result": 3})


def text_complete(_: Outside) -> Built:
    return Built([LlmTextComplete("said", "openai", "m", "hello")], {"result": ANSWER})


def chat_complete(_: Outside) -> Built:
    return Built([LlmChatComplete("said", "openai", "m", [ChatMessage(Role.USER, "hello")])], {"result": ANSWER})


def search_index(_: Outside) -> Built:
    stored = LlmIndexText(
        task_ref_name="store", text="A cat", doc_id="1", embedding_model=FIRST, namespace="n", **INDEX
    )
    found = LlmSearchIndex("find", INDEX["vector_db"], "n", INDEX["index"], "local", "words", "cat")
    return Built([stored, found, echo("texts", value="${find.output.result[0].text}")], {"result": "A cat"})


def store_embeddings(_: Outside) -> Built:
    made = LlmGenerateEmbeddings("made", "local", "words", "A dog")
    stored = LlmStoreEmbeddings("store", embeddings="${made.output.result}", namespace="n", id="2", **INDEX)
    found = LlmSearchEmbeddings("find", embeddings="${made.output.result}", namespace="n", **INDEX)
    return Built([made, stored, found, echo("id", value="${find.output.result[0].docId}")], {"result": "2"})


def query_embeddings(_: Outside) -> Built:
    made = LlmGenerateEmbeddings("made", "local", "words", "A dog")
    stored = LlmStoreEmbeddings("store", embeddings="${made.output.result}", namespace="n", id="3", **INDEX)
    found = LlmQueryEmbeddings("find", embeddings="${made.output.result}", namespace="n", **INDEX)
    return Built([made, stored, found, echo("id", value="${find.output.result[0].docId}")], {"result": "3"})


def unavailable(task: TaskInterface) -> Callable[[Outside], Built]:
    return lambda _: Built([task], waits_for=task.task_reference_name, status="RUNNING")


CASES: dict[type[TaskInterface], Callable[[Outside], Built]] = {
    CallMcpTool: lambda out: Built([CallMcpTool("call", out.web.url, "price")], status="FAILED", reason="MCP"),
    ConductorEventTask: lambda _: Built([ConductorEventTask("tell", "built")], {"sink": "conductor:built"}),
    DoWhileTask: do_while,
    DynamicForkTask: dynamic_fork,
    DynamicTask: dynamic,
    EventTaskInterface: lambda _: Built(
        [EventTaskInterface("tell", "conductor", "built")], {"sink": "conductor:built"}
    ),
    ForEachTask: for_each,
    ForkTask: fork,
    GenerateAudio: unavailable(GenerateAudio("speak", "openai", "tts-1", "hello")),
    GenerateImage: unavailable(GenerateImage("draw", "openai", "image-1", "a cat")),
    GetDocument: unavailable(GetDocument("get", "get", "http://127.0.0.1/", "text/html")),
    HttpPollTask: http_poll,
    HttpTask: http,
    HumanTask: human,
    InlineSubWorkflowTask: inline_sub_workflow,
    InlineTask: lambda _: Built([InlineTask("add", "$.a + 1", {"a": 2})], {"result": 3}),
    JavascriptTask: lambda _: Built([JavascriptTask("add", "$.a + 1", {"a": 2})], {"result": 3}),
    JoinTask: join,
    JsonJQTask: jq,
    KafkaPublishTask: kafka,
    ListMcpTools: lambda out: Built([ListMcpTools("list", out.web.url)], status="FAILED", reason="MCP"),
    LlmChatComplete: chat_complete,
    LlmGenerateEmbeddings: store_embeddings,
    LlmIndexDocument: lambda _: Built(
        [LlmIndexDocument("store", "default", "n", FIRST, "docs", "http://127.0.0.1/", "text/plain")],
        status="refused",
        reason="docId field is required",
    ),
    LlmIndexText: search_index,
    LlmQueryEmbeddings: query_embeddings,
    LlmSearchEmbeddings: store_embeddings,
    LlmSearchIndex: search_index,
    LlmStoreEmbeddings: store_embeddings,
    LlmTextComplete: text_complete,
    LoopTask: loop,
    PullWorkflowMessagesTask: messages,
    SetVariableTask: set_variable,
    SimpleTask: simple,
    SqsEventTask: lambda _: Built([SqsEventTask("tell", "built")], status="FAILED", reason="sqs"),
    StartWorkflowTask: start_workflow,
    SubWorkflowTask: sub_workflow,
    SwitchTask: switch,
    TerminateTask: lambda _: Built(
        [TerminateTask("end", WorkflowStatus.TERMINATED, "enough")], status="TERMINATED", reason="enough"
    ),
    WaitForDurationTask: lambda _: Built([WaitForDurationTask("pause", 1), echo("after", value=1)], {"result": 1}),
    WaitForWebHookTask: webhook,
    WaitTask: lambda _: Built([WaitTask("pause", wait_until=PAST), echo("after", value=1)], {"result": 1}),
    WaitUntilTask: lambda _: Built([WaitUntilTask("pause", PAST), echo("after", value=1)], {"result": 1}),
}


@pytest.fixture
def outside(settings, executor):
    """Yield servers of models, embeddings and pages that steps may reach."""
    with running_model_server(settings) as web, running_embedding_server() as embeddings:
        Integration.objects.create(
            name="local", category="AI_MODEL", kind="openai", configuration={"base_url": embeddings.url}
        )
        yield Outside(web, executor)


@pytest.mark.parametrize("builder", CASES, ids=lambda builder: builder.__name__)
def test_a_builder_writes_steps_that_run_to_their_end(shop: Shop, outside, builder):
    built = CASES[builder](outside)
    workflow = ConductorWorkflow(outside.executor, "built", version=1).add(built.steps)
    for step in built.steps:
        shop.policy(step.name, retry_count=0)
    if built.status == "refused":
        with pytest.raises(ApiException, match=built.reason):
            workflow.register(overwrite=True)
        return
    workflow.register(overwrite=True)

    run_id = workflow.start_workflow(StartWorkflowRequest(name="built"))
    for ref, output in built.reports.items():
        eventually(lambda ref=ref: any(task.reference_task_name == ref for task in shop.show(run_id).tasks))
        shop.tasks.update_task_by_ref_name(run_id, ref, "COMPLETED", output)

    if built.waits_for:
        assert [(task.reference_task_name, task.status) for task in shop.show(run_id).tasks] == [
            (built.waits_for, "SCHEDULED")
        ]
        return
    run = shop.wait_for_end(run_id)
    assert run.status == built.status, run.reason_for_incompletion
    assert built.reason in (run.reason_for_incompletion or "")
    assert {name: run.output.get(name) for name in built.output or {}} == (built.output or {})


def test_every_builder_class_of_the_sdk_is_run_and_in_the_table():
    for module in pkgutil.walk_packages(builders.__path__, f"{builders.__name__}."):
        importlib.import_module(module.name)

    offered = {each for each in subclasses(TaskInterface) if each.__module__.startswith("conductor.")}
    results = sdk_table.read_results("python")["builders"]

    assert {each.__name__ for each in offered} == {each.__name__ for each in CASES} == set(results)


def subclasses(base: type) -> set[type]:
    """Return the direct and indirect subclasses of a class."""
    return {found for each in base.__subclasses__() for found in (each, *subclasses(each))}
