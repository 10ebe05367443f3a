"""The tasks of the sample suite, in the order in which it lists them."""

from __future__ import annotations

from sample.model import SampleTask
from sample.tasks import (
    attendance,
    bookings,
    budget,
    commission,
    contacts,
    invoices,
    item_keys,
    orders,
    overdue,
    plan,
    quote,
    readings,
    staff,
    stock,
)

TASKS: tuple[SampleTask, ...] = tuple(
    module.TASK
    for module in (
        orders,
        plan,
        invoices,
        attendance,
        item_keys,
        quote,
        readings,
        commission,
        contacts,
        staff,
        bookings,
        stock,
        overdue,
        budget,
    )
)
