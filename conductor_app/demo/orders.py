"""Six different orders with their expected results."""

from dataclasses import dataclass
from typing import Any

from .workers import REFUSED_CARD

GOOD_CARD = "4000 0566 5566 5556"
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
