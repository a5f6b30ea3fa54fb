"""The promise of differential privacy about a population: answers hold beyond the sample, for any choice of questions.

Throughout, a sample is n persons drawn independently from one population, one value each. A question is a function of
one person with values in [0, 1]; you may choose it by the answers before it. A loss is for `replace_one` neighbours,
and of *everything* that was released of the sample. `lapwing.privacy.replaced` turns a loss for `add_remove` into one.

Each function's docstring has the theorem, its source, and its proof if it is ours. Returned values are rounded so that
they promise no more than was proven.
"""

from lapwing.generalisation.description import description_bits, description_half_width
from lapwing.generalisation.expected import expected_gap, expected_gap_of_description, expected_gap_of_information
from lapwing.generalisation.gaussian_answers import GaussianAnswers
from lapwing.generalisation.max_information import (
    MaxInformation,
    max_information,
    max_information_of_description,
)
from lapwing.generalisation.posterior import posterior_gap
from lapwing.generalisation.sampling import hoeffding_half_width
from lapwing.generalisation.transfer import Transferred, transfer

__all__ = [
    "GaussianAnswers",
    "MaxInformation",
    "Transferred",
    "description_bits",
    "description_half_width",
    "expected_gap",
    "expected_gap_of_description",
    "expected_gap_of_information",
    "hoeffding_half_width",
    "max_information",
    "max_information_of_description",
    "posterior_gap",
    "transfer",
]
