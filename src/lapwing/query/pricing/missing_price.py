"""What is said of a question without a price, or with two."""

from lapwing.errors import InvalidParameter


def no_single_price(*, both: bool) -> InvalidParameter:
    """Return the refusal of a question that has a price and a wanted error, or neither."""
    if both:
        return InvalidParameter("Give either epsilon (a price) or error (a wanted half-width); both were given.")
    return InvalidParameter(
        "The question says no price. Give epsilon, for example 0.5 (--epsilon 0.5 in a terminal, .epsilon 0.5 in its "
        "shell), or error, the half-width that its 95 % intervals may have (--error 50). `explain` shows for free what "
        "a price buys."
    )
