"""Products, and orders, each with a run of the workflow `order`."""

from django.db import models, transaction

from conductor_app import signal, start_workflow

LARGE = 1000


class Product(models.Model):
    name = models.CharField(max_length=100)
    price = models.PositiveIntegerField()
    stock = models.PositiveIntegerField()

    def __str__(self):
        return self.name


class Order(models.Model):
    class Status(models.TextChoices):
        NEW = "new"
        WAITING = "waiting for approval"
        RESERVED = "reserved"
        PAID = "paid"
        SHIPPED = "shipped"
        CANCELED = "canceled"

    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField(default=1)
    card = models.CharField(max_length=100)
    address = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.NEW)
    reason = models.TextField(blank=True)
    receipt = models.CharField(max_length=100, blank=True)
    run_id = models.CharField(max_length=36, blank=True)

    @property
    def total(self):
        return self.product.price * self.quantity

    @transaction.atomic
    def place(self, by="shop"):
        """Save the order and start its workflow: both, or neither."""
        self.save()
        self.run_id = start_workflow("order", {"order_id": self.pk}, by=by)
        self.save()

    def approve(self, by="shop"):
        signal(self.run_id, step="approval", by=by)

    def reject(self, by="shop"):
        signal(self.run_id, step="approval", fails=True, reason="The order was rejected.", by=by)
