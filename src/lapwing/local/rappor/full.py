"""RAPPOR for any text: cohorts, Bloom filters, and two layers of noise; `client.rappor` has encoding and proofs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client import rappor as device
from lapwing.local.frequencies.randomizer import Rates, Reports, codes
from lapwing.local.mechanism import Mechanism, loss_of
from lapwing.local.public_draws import EqualDraw, PublicDraw
from lapwing.local.rappor.bit_noise import Noise
from lapwing.local.rappor.bloom_filters import Patterns
from lapwing.local.report_formats import honest_weights, list_of, number_below, read_bits
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number
from lapwing.privacy.measures import PureDP

_AT_ONCE: Final = 1 << 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(Mechanism):
    """Report a cohort, and noisy bits of a text's Bloom filter in that cohort.

    Guarantee:
        PureDP(ln ratio) for the text behind one report. If the device remembers, PureDP(ln ratio_for_ever) for **one
        text that never changes**, over any number of reports. For texts that may change it is only PureDP(ln
        ratio_if_changing(T)) over T reports. This loss grows with each report: the number of different texts does not
        bound it. If the device does not remember, T reports lose T times as much as one, by composition.

    Args:
        bits: k, from 2 times `hashes` to 256.
        hashes: h, to 16.
        cohorts: To 1,024.
        noise: Of a bit.
        remembers: Whether the device keeps its cohort and its permanent responses.

    Source:
        Erlingsson, Pihur and Korolova 2014.
    """

    bits: int
    hashes: int
    cohorts: int
    noise: Noise
    remembers: bool

    def __post_init__(self) -> None:
        whole_number(self.hashes, "hashes", least=1, most=device.MOST_HASHES)
        whole_number(self.bits, "bits", least=2 * self.hashes, most=device.MOST_BITS)
        whole_number(self.cohorts, "cohorts", least=1, most=device.MOST_COHORTS)
        if self.noise.instantaneous and not self.remembers:
            raise InvalidParameter("A device that stores nothing needs one layer of noise; leave zero and one out.")

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, int]) -> Self:
        """Return the one whose integers a task states."""
        shape = {name: parameters[name] for name in ("bits", "hashes", "cohorts")}
        if "threshold_one" not in parameters:
            return cls(**shape, noise=Noise(flip=parameters["threshold_flip"]), remembers=False)
        zero, one = parameters["threshold_zero"], parameters["threshold_one"]
        return cls(**shape, noise=Noise(flip=parameters["threshold_flip"], zero=zero, one=one), remembers=True)

    @classmethod
    def once(cls, epsilon: Number, *, bits: int = 32, hashes: int = 1, cohorts: int = 64) -> Self:
        """Return one-time RAPPOR: a single report, of which the permanent response is all."""
        noise = Noise.once(epsilon, 2 * hashes)
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, noise=noise, remembers=False)

    @classmethod
    def memoised(cls, epsilon: Number, *, bits: int = 32, hashes: int = 1, cohorts: int = 64) -> Self:
        """Return the one whose devices always send their permanent response: ε₁ = ε∞, and it is recognisable."""
        noise = Noise.once(epsilon, 2 * hashes)
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, noise=noise, remembers=True)

    @classmethod
    def full(cls, one: Number, forever: Number, *, bits: int = 32, hashes: int = 1, cohorts: int = 64) -> Self:
        """Return RAPPOR with ε₁ = `one` and ε∞ = `forever`, both rounded down."""
        noise = Noise.twice(one, forever, 2 * hashes)
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, noise=noise, remembers=True)

    @classmethod
    def published(cls, f: Number, p: Number, q: Number, *, bits: int = 32, hashes: int = 2, cohorts: int = 64) -> Self:
        """Return RAPPOR with the parameters of the paper; a device that remembers."""
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, noise=Noise.published(f, p, q), remembers=True)

    @property
    def name(self) -> str:
        """The mechanism's name in a task."""
        return "rappor" if self.remembers else "rappor-once"

    @property
    def parameters(self) -> Mapping[str, int]:
        """The integers that a task states."""
        more = {"threshold_zero": self.noise.zero, "threshold_one": self.noise.one} if self.remembers else {}
        shape = {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts}
        return {**shape, "threshold_flip": self.noise.flip, **more}

    @property
    def ratio(self) -> Fraction:
        """e^ε₁ of one report."""
        return device.ratio(self.hashes, *self.noise.thresholds)

    @property
    def ratio_for_ever(self) -> Fraction:
        """e^ε∞ of all reports of a device that remembers, and has one text that never changes.

        Raises:
            InvalidParameter: For f = 0: T reports lose T times what one does, without end.
        """
        return device.ratio_for_ever(self.hashes, self.noise.kept())

    def ratio_after(self, reports: int) -> Fraction:
        """Return e^ε of this many reports of a device that remembers, and has one text that never changes."""
        return device.ratio_after(whole_number(reports, "reports", least=1), self.hashes, *self.noise.thresholds)

    def ratio_if_changing(self, reports: int) -> Fraction | None:
        """Return a bound on e^ε of this many reports of a device whose texts may change; None if there is none."""
        count = whole_number(reports, "reports", least=1)
        if not self.remembers:
            return self.ratio**count
        return device.ratio_if_changing(count, self.bits, self.hashes, *self.noise.thresholds)

    def loss_for_ever(self) -> PureDP:
        """Return ε∞, rounded up: of one text that never changes.

        Raises:
            LapwingError: As `ratio_for_ever`.
        """
        return loss_of(self.ratio_for_ever)

    @property
    def rates(self) -> Rates:
        """q* and p*: how often a bit is reported as 1 if it is set, and if not."""
        return self.noise.rates

    @property
    def share_variance(self) -> Fraction:
        """The variance of a rare text's share, times n: only from noise, for many cohorts and few candidates.

        It is p*(1 − p*)/((q* − p*)²·k·d(1 − d)). A text sets the share d = 1 − (1 − 1/k)^h of the bits. Least squares
        has Σ (x − d)² = k·d(1 − d) for each report, x being the bits of a random pattern.
        """
        present, absent = self.rates
        density = 1 - (1 - Fraction(1, self.bits)) ** self.hashes
        spread = self.bits * density * (1 - density)
        return absent * (1 - absent) / ((present - absent) ** 2 * spread)

    def patterns(self, texts: Sequence[str]) -> Patterns:
        """Return the bits that each text sets in each cohort."""
        return Patterns.of(texts, bits=self.bits, hashes=self.hashes, cohorts=self.cohorts)

    @property
    def record(self) -> np.dtype[Any]:
        """The stored form of a report: its cohort, and its bits packed as they are sent."""
        return np.dtype([("cohort", "<u2"), ("bits", "u1", (-(-self.bits // 8),))])

    def randomize(self, texts: Sequence[str], values: IntArray, entropy: Entropy = SYSTEM) -> Reports:
        """Return one report of each respondent, with the law of both layers at once: for simulations.

        Args:
            texts: All that occur.
            values: The number of each respondent's text in it.
        """
        own_texts, (present, absent) = codes(values, len(texts)), self.rates
        places = self.patterns(texts).places
        reports = np.zeros(own_texts.size, dtype=self.record)
        reports["cohort"] = samplers.uniform_integers(self.cohorts, own_texts.size, entropy)
        for start in range(0, own_texts.size, _AT_ONCE):
            piece = reports[start : start + _AT_ONCE]
            where = places[piece["cohort"], own_texts[start : start + _AT_ONCE]]
            # The last column is where hashes go that meet an earlier one of the same text.
            bits = samplers.bernoulli(absent, len(piece) * (self.bits + 1), entropy).reshape(len(piece), -1)
            own = samplers.bernoulli(present, where.size, entropy).reshape(where.shape)
            np.put_along_axis(bits, where, own, axis=1)
            piece["bits"] = np.packbits(bits[:, : self.bits], axis=1, bitorder="little")
        return reports

    def unpacked(self, reports: Reports) -> NDArray[np.uint8]:
        """Return the bits of reports as rows of 0 and 1."""
        if reports.dtype != self.record or reports.ndim != 1:
            raise InvalidParameter("The reports must be records of a cohort and packed bits, as `gather` returns them.")
        return np.unpackbits(reports["bits"], axis=1, count=self.bits, bitorder="little")

    @property
    def weights(self) -> range:
        """The numbers of set bits that an honest report has, but for a probability of 1e-9."""
        return honest_weights(self.rates, self.bits, range(1, self.hashes + 1))

    def read(self, said: object) -> bytes:
        """Return cohort and bits, packed; the number of set bits is one that honest devices have."""
        number, digits = list_of(said, 2, "a cohort and bits")
        cohort = number_below(number, self.cohorts, "the cohort of r")
        return cohort.to_bytes(2, "little") + read_bits(digits, self.bits, self.weights)

    def gather(self, said: Sequence[bytes]) -> Reports:
        """Return the reports as records."""
        return np.frombuffer(b"".join(said), dtype=self.record)

    def public_draws(self, reports: Reports) -> list[PublicDraw]:
        """Return the cohort, unless devices keep theirs for many reports."""
        seen = reports["cohort"].astype(np.int64)
        return [] if self.remembers else [EqualDraw(name="cohort", outcomes=self.cohorts, seen=seen)]

    @property
    def report_bytes(self) -> int:
        """Two for the cohort, and the bits."""
        return self.record.itemsize

    def operations(self, reports: int) -> int:
        """Return one step a bit."""
        return reports * self.bits
