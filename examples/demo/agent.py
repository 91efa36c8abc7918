"""`make demo-agent`: an agent looks up an order, asks a person, and refunds the order.

A model decides what to do next; here a script plays the model, so that the demo costs nothing (`agent_model.py`). The
tools are those of an MCP server in the same module. The loop itself is a workflow, so that it survives the end of any
process.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conductor.client.http.models.integration_api_update import IntegrationApiUpdate
from conductor.client.http.models.integration_update import IntegrationUpdate
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.rest import ApiException
from conductor.client.orkes_clients import OrkesClients
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.do_while_task import DoWhileTask
from conductor.client.workflow.task.human_task import HumanTask
from conductor.client.workflow.task.llm_tasks.call_mcp_tool import CallMcpTool
from conductor.client.workflow.task.llm_tasks.chat_message import ChatMessage
from conductor.client.workflow.task.llm_tasks.llm_chat_complete import LlmChatComplete
from conductor.client.workflow.task.llm_tasks.tool_spec import ToolSpec
from conductor.client.workflow.task.switch_task import SwitchTask
from conductor.client.workflow.task.task import TaskInterface

from .agent_model import running_model, running_tools
from .server import (
    ServerUnavailable,
    add_url_option,
    admin_page,
    base_address,
    configuration_for,
    explain_refusal,
    require_server,
)
from .workflows import OWNER

AGENT, INTEGRATION, MODEL = "refund_agent", "demo_model", "script"
APPROVAL = "approve_refund"
ORDER, GOAL = "A-1004", "The customer of order {order} asks for a refund. Look the order up and refund it."
LIMIT_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.3
TOOLS = [
    ToolSpec(
        name="look_up_order",
        description="Returns the total of an order.",
        input_schema={"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    ),
    ToolSpec(
        name="refund_order",
        description="Pays an amount back.",
        input_schema={
            "type": "object",
            "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["order", "amount"],
        },
    ),
]


@dataclass(frozen=True)
class AgentResult:
    """The end of the agent's run. `requests`: the number of requests that the model has received."""

    run_id: str
    answer: str
    requests: int


def run_agent(url: str, say: Callable[[str], object], approve: Callable[[str], bool]) -> AgentResult:
    """Run the agent on the server at this address. `approve`: answers the question before the refund.

    Raises:
        ServerUnavailable: when the server refuses a request, or the run of the agent does not end in time.
    """
    require_server(url)
    clients = OrkesClients(configuration_for(url))
    with running_model() as model, running_tools() as tools:
        try:
            register_integration(clients, model.url)
            agent_workflow(clients, INTEGRATION).register(overwrite=True)
            run_id = start_agent(clients, tools.url)
            say(f"The agent works on order {ORDER}: {admin_page(url, run_id)}")
            answer = watch_agent(clients, run_id, say, approve)
        except ApiException as error:
            raise ServerUnavailable(explain_refusal(error, url)) from error
        return AgentResult(run_id, answer, len(model.requests))


def register_integration(clients: OrkesClients, model_url: str) -> None:
    """Save the integration with the scripted model, and its prices. A real model needs the same two calls."""
    integrations = clients.get_integration_client()
    settings = {"api_key": "none", "endpoint": model_url}
    integrations.save_integration(
        INTEGRATION,
        IntegrationUpdate(
            type="litellm", category="AI_MODEL", description="The demo's model", enabled=True, configuration=settings
        ),
    )
    model = IntegrationApiUpdate(description="A script", enabled=True, configuration={})
    integrations.save_integration_api(INTEGRATION, MODEL, model)


def agent_workflow(clients: OrkesClients, integration: str) -> ConductorWorkflow:
    """Return the workflow of the agent: plan, call a tool, and repeat until the model answers."""
    purpose = "Refunds an order: plans, calls tools, and asks a person before it acts."
    agent = ConductorWorkflow(clients.get_workflow_executor(), AGENT, version=1, description=purpose)
    agent.owner_email(OWNER).input_parameters(["goal", "tools"])
    steps: list[TaskInterface] = [plan_step(integration), act_step()]
    agent >> DoWhileTask("rounds", "$.plan.finishReason == 'TOOL_CALLS' && $.rounds.iteration < 10", steps)
    return agent.output_parameters({"answer": "${plan.output.result}"})


def plan_step(integration: str) -> LlmChatComplete:
    """LLM_CHAT_COMPLETE: the model answers, or names the tool to call next.

    The results of the tools and the decision of the person are part of the conversation.
    """
    return LlmChatComplete(
        "plan",
        integration,
        MODEL,
        messages=[ChatMessage(role="user", message="${workflow.input.goal}")],
        instructions_template="You handle refunds. Call one tool at a time.",
        tools=TOOLS,
        participants={"look_up": "tool", APPROVAL: "user", "refund": "tool"},
    )


def act_step() -> SwitchTask:
    """SWITCH: the call that the model wants. A person approves a refund before it is paid."""
    approved = SwitchTask("decision", f"${{{APPROVAL}.output.result}}").switch_case("Yes", tool_step("refund"))
    question = HumanTask(APPROVAL, display_name="Approve a refund")
    question.input_parameter("call", "${plan.output.toolCalls[0].inputParameters}")
    return (
        SwitchTask("act", "${plan.output.toolCalls[0].name}")
        .switch_case("look_up_order", tool_step("look_up"))
        .switch_case("refund_order", [question, approved])
    )


def tool_step(reference: str) -> CallMcpTool:
    """CALL_MCP_TOOL: calls the tool that the model named, with its arguments."""
    return CallMcpTool(
        reference,
        "${workflow.input.tools}",
        "${plan.output.toolCalls[0].name}",
        arguments={
            "order": "${plan.output.toolCalls[0].inputParameters.order}",
            "amount": "${plan.output.toolCalls[0].inputParameters.amount}",
        },
    )


def start_agent(clients: OrkesClients, tools_url: str) -> str:
    """Start the agent and return the id of its run."""
    inputs = {"goal": GOAL.format(order=ORDER), "tools": tools_url}
    return clients.get_workflow_client().start_workflow(StartWorkflowRequest(name=AGENT, version=1, input=inputs))


def watch_agent(
    clients: OrkesClients, run_id: str, say: Callable[[str], object], approve: Callable[[str], bool]
) -> str:
    """Report what the agent does, and answer its question. Returns its answer.

    Raises:
        ServerUnavailable: when the run fails or does not end in time.
    """
    ends_at, shown = time.monotonic() + LIMIT_SECONDS, set[str]()
    while time.monotonic() < ends_at:
        run = clients.get_workflow_client().get_workflow(run_id, include_tasks=True)
        for task in run.tasks or ():
            if task.task_id in shown or task.task_type in ("DO_WHILE", "SWITCH"):
                continue
            if task.task_type == "HUMAN" and task.status == "IN_PROGRESS":
                shown.add(task.task_id)
                amount = task.input_data["call"].get("amount")
                answer = "Yes" if approve(f"Refund {amount} for order {ORDER}?") else "No"
                say(f"  A person decides: {answer}.")
                clients.get_task_client().update_task_by_ref_name(run_id, task.reference_task_name, "COMPLETED", answer)
            elif task.status == "COMPLETED":
                shown.add(task.task_id)
                say(f"  {describe(task.task_type, task.output_data or {})}")
        if run.status == "COMPLETED":
            return str(run.output["answer"])
        if run.status not in ("RUNNING", "PAUSED"):
            raise ServerUnavailable(f"The agent ended as {run.status}: {run.reason_for_incompletion}")
        time.sleep(LOOK_EVERY_SECONDS)
    raise ServerUnavailable(f"The agent did not end within {LIMIT_SECONDS:g} s. Its run is {run_id}.")


def describe(task_type: str, output: dict) -> str:
    """Return what a task of the agent has done."""
    if task_type == "LLM_CHAT_COMPLETE":
        calls = [call["name"] for call in output.get("toolCalls") or ()]
        what = f"calls {calls[0]}" if calls else "answers"
        return f"The model {what} ({output.get('tokenUsed', 0)} tokens)."
    if task_type == "CALL_MCP_TOOL":
        return f"The tool returns {output.get('structuredContent')}."
    return f"{task_type} is done."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent: this process is the model and its tools, and the person at this terminal decides."""
    parser = ArgumentParser(prog="make demo-agent", description="Run an agent on a running server, without an API key.")
    add_url_option(parser)
    parser.add_argument("--yes", action="store_true", help="approve the refund without a question")
    options = parser.parse_args(arguments)

    def approve(question: str) -> bool:
        if options.yes or not sys.stdin.isatty():
            return options.yes
        return input(f"  {question} [y/N] ").strip().lower() in ("y", "yes")

    try:
        result = run_agent(base_address(options.url), lambda text: print(text, flush=True), approve)
    except ServerUnavailable as reason:
        sys.exit(str(reason))
    print(f"\nThe agent answers: {result.answer}\nThe model received {result.requests} requests.")


if __name__ == "__main__":
    main()
