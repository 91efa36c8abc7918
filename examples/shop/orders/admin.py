"""Products, and orders that wait for an approval."""

from django.contrib import admin

from .models import Order, Product

admin.site.register(Product)


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["id", "product", "quantity", "total", "status", "reason"]
    readonly_fields = ["status", "reason", "receipt", "run_id"]
    actions = ["approve", "reject"]

    def save_model(self, request, order, form, change):
        if change:
            order.save()
        else:
            order.place(by=request.user)

    @admin.action(description="Approve orders", permissions=["change"])
    def approve(self, request, orders):
        for order in orders.filter(status=Order.Status.WAITING):
            order.approve(by=request.user)

    @admin.action(description="Reject orders", permissions=["change"])
    def reject(self, request, orders):
        for order in orders.filter(status=Order.Status.WAITING):
            order.reject(by=request.user)
