from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import TestCase

from conductor_app import get_run, run_due_tasks

from .models import Order, Product


class OrderTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        call_command("conductor_definitions", "--apply", verbosity=0)
        cls.product = Product.objects.create(name="lamp", price=300, stock=10)

    def place(self, **fields):
        """Place an order, and do all that can be done without a person."""
        self.order = Order(**{"product": self.product, "card": "4242", "address": "Main Street 1", **fields})
        self.order.place()
        self.proceed()

    def proceed(self):
        run_due_tasks()
        self.order.refresh_from_db()
        self.product.refresh_from_db()

    def assert_order(self, status, stock, reason=""):
        self.assertEqual((self.order.status, self.product.stock, self.order.reason), (status, stock, reason))

    def test_an_order_is_shipped(self):
        self.place(quantity=2)

        self.assert_order("shipped", stock=8)
        self.assertEqual(self.order.receipt, f"order-{self.order.pk}: 600")
        self.assertTrue(get_run(self.order.run_id).is_completed)

    def test_a_declined_card_returns_the_stock(self):
        self.place(card="expired")

        self.assert_order("canceled", stock=10, reason="The card has expired.")

    def test_an_order_beyond_the_stock_is_canceled(self):
        self.place(quantity=11)

        self.assert_order("canceled", stock=10, reason="Sold out: lamp.")

    def test_a_parcel_without_address_is_refunded(self):
        with self.assertNoLogs("django", level="ERROR"):
            self.place(address="")

        self.assert_order("canceled", stock=10, reason="The parcel has no address.")

    def test_a_large_order_waits_for_a_person(self):
        self.place(quantity=5)
        self.assert_order("waiting for approval", stock=5)

        self.order.approve()
        self.proceed()
        self.assert_order("shipped", stock=5)

    def test_orders_are_placed_and_rejected_in_the_admin(self):
        self.client.force_login(User.objects.create_superuser("ann"))
        values = {"product": self.product.pk, "quantity": 5, "card": "4242", "address": "Main Street 1"}
        self.client.post("/admin/orders/order/add/", values)
        self.order = Order.objects.get()
        self.proceed()
        self.assert_order("waiting for approval", stock=5)

        self.client.post("/admin/orders/order/", {"action": "reject", "_selected_action": self.order.pk})
        self.proceed()
        self.assert_order("canceled", stock=10, reason="The order was rejected.")
        self.assertEqual(get_run(self.order.run_id).started_by, "ann")
