"""Orders, and what tasks have done for them."""

from django.db import models

from conductor_app import start_workflow


class Order(models.Model):
    customer = models.CharField(max_length=100)
    run_id = models.CharField(max_length=64, blank=True)

    def begin(self, by="shop"):
        """Start the workflow of the order, and store its id."""
        self.run_id = start_workflow("order", {"order_id": self.pk}, by=by)
        self.save()


class Effect(models.Model):
    """One row for each time that a task has had its effect."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE)
    task = models.CharField(max_length=100)
