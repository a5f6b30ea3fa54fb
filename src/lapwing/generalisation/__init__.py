"""What differential privacy promises of a population: answers that hold beyond the sample, however they were asked for.

Throughout, a sample is n persons drawn independently from one population, one value each; a question is a function of
one person with values in [0, 1], chosen in any way after the answers before it; a loss is for `replace_one` neighbours
(`lapwing.privacy.replaced` makes it of one for `add_remove`), and of *everything* that was released of the sample.

Each function's docstring has the theorem, where it is from, and its proof if it is ours; what is returned is rounded
so that it promises no more than was proven.
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
