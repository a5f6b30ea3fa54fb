"""Sums that no single server sees: people split what they send, and every server adds its own noise.

Guarantee:
    As of `Task`. docs/how-to/secure.md shows how it is used, docs/theory/secure.md has the proofs.
"""

from lapwing.secure.device import Device, answer_on_device, read_device, records_of
from lapwing.secure.estimates import Estimate, estimates, half_width, largest, standard_deviation
from lapwing.secure.field import joined, split
from lapwing.secure.heavy_hitters import first_level, followed_after, frequent, next_task
from lapwing.secure.numbers import Number
from lapwing.secure.organising import Totals, close, new_task, totals
from lapwing.secure.repeating_organiser import Days, close_day, released_days
from lapwing.secure.repetition import TaskDays
from lapwing.secure.sending import send, send_all
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.values import Values
from lapwing.secure.vectors import Vector
from lapwing.secure.words import Words

__all__ = [
    "Days",
    "Device",
    "Estimate",
    "Number",
    "Server",
    "Task",
    "TaskDays",
    "Totals",
    "Values",
    "Vector",
    "Words",
    "answer_on_device",
    "close",
    "close_day",
    "estimates",
    "first_level",
    "followed_after",
    "frequent",
    "half_width",
    "joined",
    "largest",
    "new_task",
    "next_task",
    "read_device",
    "records_of",
    "released_days",
    "send",
    "send_all",
    "split",
    "standard_deviation",
    "totals",
]
