"""The steps of the workflow. What a function writes and its result are one transaction."""

from django.db.models import F

from conductor_app import TaskFailed, worker_task

from . import payments
from .models import LARGE, Order, Product

Status = Order.Status


@worker_task("reserve", atomic=True)
def reserve(order_id: int) -> dict:
    order = Order.objects.get(pk=order_id)
    enough = Product.objects.filter(pk=order.product_id, stock__gte=order.quantity)
    if not enough.update(stock=F("stock") - order.quantity):
        raise TaskFailed(f"Sold out: {order.product}.")
    order.status = Status.WAITING if order.total > LARGE else Status.RESERVED
    order.save()
    return {"status": order.status}


@worker_task("charge", atomic=True, retries=5, retry_seconds=30)
def charge(order_id: int) -> None:
    order = Order.objects.get(pk=order_id)
    try:
        # A repeated call with the same key charges nothing.
        order.receipt = payments.charge(order.card, order.total, key=f"order-{order.pk}")
    except payments.Declined as declined:
        raise TaskFailed(str(declined)) from declined
    order.status = Status.PAID
    order.save()


@worker_task("ship", atomic=True)
def ship(order_id: int) -> None:
    order = Order.objects.get(pk=order_id)
    if not order.address:
        raise TaskFailed("The parcel has no address.")
    order.status = Status.SHIPPED
    order.save()


@worker_task("cancel", atomic=True)
def cancel(order_id: int, reason: str) -> None:
    """Undo what the other steps have done for an order."""
    order = Order.objects.get(pk=order_id)
    if order.receipt:
        payments.refund(order.receipt)
    if order.status != Status.NEW:
        Product.objects.filter(pk=order.product_id).update(stock=F("stock") + order.quantity)
    order.status, order.reason = Status.CANCELED, reason
    order.save()
