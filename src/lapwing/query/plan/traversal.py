"""All expressions of a question, wherever they stand."""

from lapwing.query.expressions.expression import Expression
from lapwing.query.measures.measures import argument_of
from lapwing.query.plan.plan import Question


def expressions_of(question: Question) -> list[Expression]:
    """Return all expressions of a question, of its subqueries too."""
    expressions = [key.expression for key in question.keys]
    expressions += (argument for measure in question.measures if (argument := argument_of(measure)) is not None)
    expressions += conditions_of(question)
    pending = [question.selection]
    while pending:
        selection = pending.pop()
        pending += selection.relation.sources
        expressions += (value for values in selection.relation.computed for value in values)
    return expressions


def conditions_of(question: Question) -> list[Expression]:
    """Return the conditions on rows, of its subqueries too."""
    pending, conditions = [question.selection], list[Expression]()
    while pending:
        selection = pending.pop()
        pending += selection.relation.sources
        conditions += () if selection.where is None else (selection.where,)
    return conditions
