"""The whole SQL of a question over sources, as an engine would run it in one pass."""

from collections.abc import Mapping

from lapwing.engines.duckdb.cleaned import WHOLE, Location, Pass, layer
from lapwing.engines.duckdb.leaves import leaves
from lapwing.engines.duckdb.overlaps import shared
from lapwing.engines.duckdb.queries import answer, measured
from lapwing.engines.truncated_rows import weights
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import reads


def render(question: Question, sources: Mapping[str, Location], part: Pass = WHOLE) -> str:
    """Return the DuckDB query whose rows are cells: the keys, then one exact integer a measure.

    Of a question about distributions alone, it is the query for the leaves of the first.

    Args: sources: where the tables that the question stands on are, by name.
    """
    if question.units_of_row > 1:
        last = sets_of_units(question)
    elif question.numbers:
        last = answer(question)
    else:
        last = leaves(question, question.distributions[0])
    read = reads(question.selection.relation)
    layers = [layer(table, sources[table.name], read, part) for table in question.lineage]
    return f"WITH {', '.join(layers)} {last}"


def sets_of_units(question: Question) -> str:
    """Return the query for rows that several units share."""
    return shared(question, [measured(measure, "") for measure in weights(question)])
