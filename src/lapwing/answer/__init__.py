"""What an analyst holds: noisy values with their intervals, price and provenance."""

from lapwing.answer.answer import CONFIDENCE, Answer
from lapwing.answer.column_facts import ColumnFacts, DrawnNoise, MeasureFacts
from lapwing.answer.presentation import show
from lapwing.answer.python_values import Cell, Note

__all__ = ["CONFIDENCE", "Answer", "Cell", "ColumnFacts", "DrawnNoise", "MeasureFacts", "Note", "show"]
