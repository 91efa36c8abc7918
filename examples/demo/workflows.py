"""Workflows, task definitions and orders of the demo: process an order, deliver a parcel, compensate a failed order."""

from dataclasses import dataclass
from typing import Any, TypeVar

from conductor.client.http.models.task_def import TaskDef
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.executor.workflow_executor import WorkflowExecutor
from conductor.client.workflow.task.do_while_task import DoWhileTask
from conductor.client.workflow.task.dynamic_fork_task import DynamicForkTask
from conductor.client.workflow.task.fork_task import ForkTask
from conductor.client.workflow.task.http_task import HttpTask
from conductor.client.workflow.task.human_task import HumanTask
from conductor.client.workflow.task.javascript_task import JavascriptTask
from conductor.client.workflow.task.join_task import JoinTask
from conductor.client.workflow.task.set_variable_task import SetVariableTask
from conductor.client.workflow.task.simple_task import SimpleTask, simple_task
from conductor.client.workflow.task.sub_workflow_task import SubWorkflowTask
from conductor.client.workflow.task.switch_task import SwitchTask
from conductor.client.workflow.task.task import TaskInterface
from conductor.client.workflow.task.terminate_task import TerminateTask, WorkflowStatus
from conductor.client.workflow.task.timeout_policy import TimeoutPolicy
from conductor.client.workflow.task.wait_task import WaitForDurationTask

from .workers import REFUSED_CARD

OWNER = "warehouse@example.com"


def task_definitions() -> list[TaskDef]:
    """Return the definitions of all tasks of workers. Registering them again replaces them."""
    return [
        task_definition("screen_for_fraud", "Ask the fraud service for a score."),
        task_definition("pick_item", "Pick one line of an order.", limit=8),
        task_definition("pack_parcel", "Pack a parcel.", seconds=600),
        task_definition("charge_card", "Charge the customer's card."),
        task_definition("book_courier", "Book a courier, whose server is sometimes down.", retries=5, delays="growing"),
        task_definition("track_parcel", "Ask the courier where the parcel is."),
        task_definition("put_back_stock", "Restore the stock of a failed order."),
        task_definition("notify_customer", "Notify the customer."),
    ]


def task_definition(
    name: str, purpose: str, *, seconds: int = 60, retries: int = 3, delays: str = "equal", limit: int | None = None
) -> TaskDef:
    """Return a task that is retried after 1 s, or after 1, 2, 4 … s, with a response timeout of 10 s."""
    return TaskDef(
        name=name,
        description=purpose,
        owner_email=OWNER,
        retry_count=retries,
        retry_logic="EXPONENTIAL_BACKOFF" if delays == "growing" else "FIXED",
        retry_delay_seconds=1,
        timeout_seconds=seconds,
        timeout_policy="TIME_OUT_WF",
        response_timeout_seconds=10,
        concurrent_exec_limit=limit,
    )


TaskT = TypeVar("TaskT", bound=TaskInterface)

ORDER, PARCEL, COMPENSATION = "order_fulfilment", "parcel_delivery", "order_compensation"
APPROVAL = "approve_order"
WEEK_SECONDS = 7 * 24 * 3600

PRICE = """
(function () {
    const total = $.lines.reduce((sum, line) => sum + line.quantity * line.price, 0);
    return {total: Math.round(total * 100) / 100, approval: total > $.limit ? 'needed' : 'not needed'};
})()
"""
IS_UNDERWAY = "$.track_parcel.place !== 'delivered'"


def workflow_definitions(executor: WorkflowExecutor) -> list[ConductorWorkflow]:
    """Return the three definitions. A definition follows those that it calls."""
    return [parcel_delivery(executor), order_compensation(executor), order_fulfilment(executor)]


def order_fulfilment(executor: WorkflowExecutor) -> ConductorWorkflow:
    """Return the workflow of an order, from its price to the delivery."""
    order = new_workflow(executor, ORDER, "Processes one order, from its price to the delivery.")
    order.input_parameters(["order_id", "customer", "lines", "card", "delivery", "courier", "limit", "server"])
    order.failure_workflow(COMPENSATION)
    order >> price_order() >> remember_price() >> approval_if_needed()
    order >> parallel_checks() >> picking_fork() >> charge_card_task() >> handover_switch() >> customer_notification()
    return order.output_parameters(
        {
            "total": "${workflow.variables.total}",
            "receipt": "${charge_card.output.receipt}",
            "courier_attempts": "${deliver.output.attempts}",
        }
    )


def price_order() -> JavascriptTask:
    """INLINE: a few lines of JavaScript that the server evaluates."""
    return JavascriptTask(
        "price_order", PRICE, {"lines": "${workflow.input.lines}", "limit": "${workflow.input.limit}"}
    )


def remember_price() -> SetVariableTask:
    """SET_VARIABLE: a value for the whole workflow, available as ${workflow.variables.…}."""
    return with_inputs(SetVariableTask("remember_price"), total="${price_order.output.result.total}")


def approval_if_needed() -> SwitchTask:
    """SWITCH and HUMAN: expensive orders wait for a user, who completes the task through the API or on its page."""
    question = with_inputs(
        HumanTask(APPROVAL, display_name="Approve a large order"),
        customer="${workflow.input.customer.name}",
        total="${workflow.variables.total}",
    )
    refused = TerminateTask("refuse_order", WorkflowStatus.TERMINATED, "The order was not approved.")
    verdict = SwitchTask("verdict", f"${{{APPROVAL}.output.approved}}").switch_case("false", refused)
    return SwitchTask("approval", "${price_order.output.result.approval}").switch_case("needed", [question, verdict])


def parallel_checks() -> ForkTask:
    """FORK_JOIN and JOIN: two parallel branches, one of which is an HTTP call of the server."""
    fraud = simple_task(
        "screen_for_fraud",
        "screen_for_fraud",
        {"customer": "${workflow.input.customer}", "total": "${workflow.variables.total}"},
    )
    health = HttpTask("warehouse_is_open", {"uri": "${workflow.input.server}/health", "method": "GET"})
    return ForkTask("checks", [[fraud], [health]], join_on=["screen_for_fraud", "warehouse_is_open"])


def picking_fork() -> DynamicForkTask:
    """FORK_JOIN_DYNAMIC: one branch per line of the order."""
    fork = DynamicForkTask("pick_lines", None, None, join_task=JoinTask("all_picked"))
    return with_inputs(fork, forkTaskName="pick_item", forkTaskInputs="${workflow.input.lines}")


def charge_card_task() -> SimpleTask:
    """SIMPLE: a task for a worker, which can fail with a terminal error."""
    return simple_task(
        "charge_card",
        "charge_card",
        {
            "order_id": "${workflow.input.order_id}",
            "card": "${workflow.input.card}",
            "amount": "${workflow.variables.total}",
        },
    )


def handover_switch() -> SwitchTask:
    """SWITCH and SUB_WORKFLOW: the delivery is a separate workflow, unless the customer collects the order."""
    parcel = with_inputs(
        SubWorkflowTask("deliver", PARCEL, version=1),
        order_id="${workflow.input.order_id}",
        courier="${workflow.input.courier}",
        items="${all_picked.output}",
    )
    ready = notification_task("tell_ready", "Order ${workflow.input.order_id} is ready at the counter")
    return SwitchTask("handing_over", "${workflow.input.delivery}").switch_case("counter", ready).default_case(parcel)


def customer_notification() -> SimpleTask:
    return notification_task("say_thanks", "Thank you for order ${workflow.input.order_id}")


def parcel_delivery(executor: WorkflowExecutor) -> ConductorWorkflow:
    """The delivery of a parcel: an unreliable courier, a WAIT of 2 s, and a DO_WHILE."""
    parcel = new_workflow(executor, PARCEL, "Packs a parcel and tracks it until it is delivered.")
    parcel.input_parameters(["order_id", "courier", "items"])
    pack = simple_task("pack_parcel", "pack_parcel", {"items": "${workflow.input.items}"})
    book = simple_task(
        "book_courier",
        "book_courier",
        {"order_id": "${workflow.input.order_id}", "courier": "${workflow.input.courier}"},
    )
    look = simple_task(
        "track_parcel",
        "track_parcel",
        {"booking": "${book_courier.output.booking}", "look": "${follow_parcel.output.iteration}"},
    )
    parcel >> pack >> book >> WaitForDurationTask("await_collection", 2)
    parcel >> DoWhileTask("follow_parcel", IS_UNDERWAY, [look])
    return parcel.output_parameters(
        {"booking": "${book_courier.output.booking}", "attempts": "${book_courier.output.attempt}"}
    )


def order_compensation(executor: WorkflowExecutor) -> ConductorWorkflow:
    """The compensation of a failed order, started by the server with the order's input and the reason."""
    compensation = new_workflow(
        executor, COMPENSATION, "Restores the stock of a failed order and notifies the customer."
    )
    compensation.input_parameters(["order_id", "customer", "lines", "reason", "workflowId"])
    put_back = simple_task(
        "put_back_stock",
        "put_back_stock",
        {"order_id": "${workflow.input.order_id}", "lines": "${workflow.input.lines}"},
    )
    compensation >> put_back >> notification_task("tell_why", "We cannot send order ${workflow.input.order_id}")
    return compensation.output_parameters(
        {"put_back": "${put_back_stock.output.put_back}", "reason": "${workflow.input.reason}"}
    )


def new_workflow(executor: WorkflowExecutor, name: str, purpose: str) -> ConductorWorkflow:
    """Return a workflow without steps. Its timeout is one week, because it may wait for an approval."""
    workflow = ConductorWorkflow(executor, name, version=1, description=purpose)
    return workflow.owner_email(OWNER).timeout_policy(TimeoutPolicy.TIME_OUT_WORKFLOW).timeout_seconds(WEEK_SECONDS)


def notification_task(ref: str, subject: str) -> SimpleTask:
    """Return a task that notifies the customer."""
    return simple_task("notify_customer", ref, {"email": "${workflow.input.customer.email}", "subject": subject})


def with_inputs(task: TaskT, **inputs: Any) -> TaskT:
    """Return the task with additional inputs."""
    for name, value in inputs.items():
        task.input_parameter(name, value)
    return task


GOOD_CARD = "token-of-5556"
APPROVAL_LIMIT = 1000
TENT = {"sku": "TENT-2P", "name": "Two-person tent", "price": 289.0}
STOVE = {"sku": "STOVE-GAS", "name": "Gas stove", "price": 64.9}
MAT = {"sku": "MAT-180", "name": "Sleeping mat", "price": 79.5}
MUG = {"sku": "MUG-TI", "name": "Titanium mug", "price": 24.0}
BOOTS = {"sku": "BOOTS-43", "name": "Hiking boots, size 43", "price": 219.0}
LAMP = {"sku": "LAMP-LED", "name": "Head lamp", "price": 45.5}


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order with the expected results of its run: its status, and the number of attempts of the courier."""

    number: str
    kind: str
    customer: dict[str, Any]
    lines: tuple[dict[str, Any], ...]
    status: str = "COMPLETED"
    delivery: str = "home"
    courier: str = "Nordpost"
    courier_attempts: int | None = 1
    card: str = GOOD_CARD

    def to_input(self, server: str) -> dict[str, Any]:
        """Return the input of the order's workflow. The address of the server is used as that of the warehouse."""
        return {
            "order_id": self.number,
            "customer": self.customer,
            "lines": list(self.lines),
            "card": self.card,
            "delivery": self.delivery,
            "courier": self.courier,
            "limit": APPROVAL_LIMIT,
            "server": server,
        }


def order_line(quantity: int, item: dict[str, Any]) -> dict[str, Any]:
    """Return an order line with a quantity of an item."""
    return {**item, "quantity": quantity}


def customer(name: str, email: str, known_since: int | None = None) -> dict[str, Any]:
    """Return a customer."""
    return {"name": name, "email": email, "known_since": known_since}


ORDERS = (
    Order(
        number="A-1001",
        kind="two lines, delivered",
        customer=customer("Ida Solberg", "ida@example.com", 2019),
        lines=(order_line(1, TENT), order_line(2, MAT)),
    ),
    Order(
        number="A-1002",
        kind="five lines, picked in parallel",
        customer=customer("Marek Nowak", "marek@example.com", 2022),
        lines=(order_line(1, BOOTS), order_line(1, STOVE), order_line(4, MUG), order_line(2, LAMP), order_line(1, MAT)),
    ),
    Order(
        number="A-1003",
        kind="collected at the counter",
        customer=customer("Chloé Laurent", "chloe@example.com"),
        lines=(order_line(2, MUG),),
        delivery="counter",
        courier_attempts=None,
    ),
    Order(
        number="A-1004",
        kind="a courier whose server is down at first",
        customer=customer("Tomás Silva", "tomas@example.com", 2024),
        lines=(order_line(1, BOOTS), order_line(1, LAMP)),
        courier="Fjell Express",
        courier_attempts=3,
    ),
    Order(
        number="A-1005",
        kind="a card that the bank refuses",
        customer=customer("Jonas Weber", "jonas@example.com"),
        lines=(order_line(1, STOVE), order_line(3, LAMP)),
        card=REFUSED_CARD,
        status="FAILED",
        courier_attempts=None,
    ),
    Order(
        number="A-1006",
        kind="expensive, requires an approval",
        customer=customer("Alpine Club Graz", "kontor@example.com", 2015),
        lines=(order_line(4, TENT), order_line(8, MAT)),
        status="RUNNING",
        courier_attempts=None,
    ),
)
