"""Measures in which a row has one share in all: together they move as far as one of them, in L1.

For an expression x with values in [l, h], in steps, or NULL, let A be the sum of x − l, B that of h − x, and C the
number of rows where x is NULL. A row with x adds x − l ≥ 0 to A and h − x ≥ 0 to B, h − l together, and nothing to C;
a row where x is NULL adds 1 to C alone. With m = h − l for A and B and m = 1 for C, each row has

    |added to A|/m_A + |added to B|/m_B + |added to C|/m_C = 1,

and a row that is filtered out, or in no cell, has 0. A unit has at most K rows, each in one cell of each grouping set;
so adding or removing a unit moves the vectors of all cells by Σ_i ‖Δ_i‖₁/m_i ≤ K·(grouping sets) = ‖Δ_i‖₁/m_i of any
single one at its bound (`query.stability`, rows).

Claim. Let each get discrete Laplace noise of scale s_i = l1_i/ε, with l1_i its own bound in L1. Then all of them
together are ε-DP under add_remove, and not one ε for each. Proof. Noise is independent, so that the probability of an
outcome changes by a factor of at most e^(Σ ‖Δ_i‖₁/s_i), and Σ ‖Δ_i‖₁/s_i = ε·Σ ‖Δ_i‖₁/l1_i ≤ ε. ∎

Under replace_one a row may move from A to B, and both sides count; there it is not used. The vector (A, B) is that of
Kulesza, Suresh and Wang (arXiv 2312.06658), C what Fitzsimons et al. (arXiv 2408.10438) call a cell of its own.
"""

from collections.abc import Mapping
from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import PureDP
from lapwing.query.measures.centred import parts_of_row
from lapwing.query.measures.measures import Measure, Sum
from lapwing.query.pricing.quote import NoisyMeasure, Quote


def with_one_price(priced: Quote, summed: Sum, *, neighbouring: str) -> Quote:
    """Return a quote whose measures of what is summed, each with noise for one price, lose that price together.

    Args:
        priced: With A and B of it among its measures, and perhaps C, and the same loss for each.

    Raises:
        InvalidParameter: If anything that the proof needs is not so.
    """
    parts = parts_of_row(summed, with_null=True)
    terms: Mapping[Measure, NoisyMeasure] = {term.measure: term for term in priced.terms if term.measure in parts}
    losses = {term.mechanism.loss(term.candidate.sensitivity, priced.loss.kind).amount for term in terms.values()}
    fit = len(losses) == 1 and set(parts[:2]) <= terms.keys() and all(term.among == 1 for term in terms.values())
    if not (fit and isinstance(priced.loss, PureDP) and neighbouring == "add_remove"):
        raise InvalidParameter("a row has more than one share in these measures; this is a bug in Lapwing")
    saved = sum(losses, Fraction(0)) * (len(terms) - 1)
    return Quote(
        question=priced.question,
        terms=tuple(
            NoisyMeasure(measure=term.measure, candidate=term.candidate, mechanism=term.mechanism, among=len(terms))
            if term.measure in terms
            else term
            for term in priced.terms
        ),
        loss=priced.loss.from_amount(priced.loss.amount - saved),
        selecting=priced.selecting,
    )
