"""What is said of a question without a price, or with two."""

from lapwing.errors import InvalidParameter


def no_single_price(*, both: bool) -> InvalidParameter:
    """Return the refusal of a question that has a price and a wanted error, or neither."""
    if both:
        return InvalidParameter("Give either epsilon (a cost) or error (a wanted half-width), not both.")
    error = InvalidParameter(
        "The query has no cost yet. Give epsilon, for example 0.5. Or give error, the half-width that its 95 % "
        "intervals may have, for example 50. `explain` shows for free how good a result is at a cost."
    )
    error.missing = "epsilon"  # each door says how it is given there
    return error
