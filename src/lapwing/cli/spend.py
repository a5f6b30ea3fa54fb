"""`lapwing budget spend`: charge what is released outside of questions. For the curator."""

from fractions import Fraction
from typing import Annotated, Final

import typer

from lapwing.cli.console import print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile, above_zero, amount, open_session
from lapwing.errors import InvalidParameter

EXAMPLE: Final = """\b
Example:
  lapwing budget spend "the most common diagnosis" --pure 0.2"""
Why = Annotated[str, typer.Argument(help="The reason, in one line for the history.", show_default=False)]


def command(
    why: Why,
    pure: Annotated[
        Fraction | None,
        amount(above_zero("--pure"), "The loss: the ε of pure differential privacy.", show_default=False),
    ] = None,
    mu: Annotated[
        Fraction | None,
        amount(above_zero("--mu"), "The loss: the μ of Gaussian differential privacy.", show_default=False),
    ] = None,
    rho: Annotated[
        Fraction | None,
        amount(above_zero("--rho"), "The loss: the ρ of zero-concentrated differential privacy.", show_default=False),
    ] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Charge the privacy loss of a release that another program makes, or a mechanism of the library (for the curator).

    Make the release afterwards: the charge is in the ledger when this command ends. Lapwing cannot
    check that the release loses no more.
    """
    from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP  # so that --help is quick
    from lapwing.session import Session

    kinds = ((pure, PureDP), (mu, GaussianDP), (rho, ZeroConcentratedDP))
    losses: list[Loss] = [kind(given) for given, kind in kinds if given is not None]
    if len(losses) != 1:
        raise InvalidParameter("Give the loss by one of --pure, --mu and --rho. Nothing was charged.")
    with open_session(catalog, None, None) as session:
        if not isinstance(session, Session):
            raise InvalidParameter(
                "A server charges only its own queries. Run this command on the machine of the catalog."
            )
        charged = session.spend(losses[0], why)
        total = session.budget(history=False).total
    print_text(f"Charged {charged} of {total}. You can release it now.\n")
