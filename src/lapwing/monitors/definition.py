"""What a monitor is: all of it is public, fixed when it is made, and kept as JSON."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.monitors.schedule import TickSchedule
from lapwing.privacy import measures
from lapwing.privacy.measures import Loss

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorDefinition:
    """What a monitor asks, of which events, when, and for what loss.

    Args:
        name: small letters, digits, `-` and `_`.
        question: the SQL without the clauses of the schedule.
        time: the column that says when an event happened.
        most: events of a unit that count in the whole horizon, or stays of one that is followed.
        lifetime: whether `most` is for all horizons together, and not for each.
        per_tick: events of a unit that count at one tick; None for no limit of its own.
        source: where events come from, if not from the table's source.
        loss: of the whole horizon, in the ledger's measure; where horizons double, of each, or with `lifetime` of all.
        people: the data set in whose ledger a person was charged for all days, where the unit is a person and a day.
        identity: random, so that no two monitors are ever taken for each other.
    """

    name: str
    question: str
    schedule: TickSchedule
    time: str
    most: int
    per_tick: int | None
    source: str | None
    loss: Loss
    identity: str
    lifetime: bool = False
    people: str | None = None

    def __post_init__(self) -> None:
        require_name(self.name)
        for what, number in (("most", self.most), ("per_tick", self.per_tick)):
            if number is not None and (isinstance(number, bool) or not 1 <= number < 1 << 20):
                raise InvalidParameter(f"{what} is {number!r:.60}; it must be a whole number from 1 to 1,048,575.")

    def key(self, horizon: int = 1) -> str:
        """Return what the charge of a horizon is called in the ledger."""
        number = "" if horizon == 1 else f" {horizon}"
        return sha256(f"MONITOR {self.identity}{number}".encode()).hexdigest()

    @property
    def text(self) -> str:
        """The question with its schedule, as people read it."""
        return f"{' '.join(self.question.split())} {self.schedule}"

    def to_record(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "format": FORMAT,
            "name": self.name,
            "question": self.question,
            "schedule": self.schedule.to_record(),
            "time": self.time,
            "most": self.most,
            "lifetime": self.lifetime,
            "people": self.people,
            "per_tick": self.per_tick,
            "source": self.source,
            "loss": self.loss.to_record(),
            "identity": self.identity,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        names = ("name", "question", "time", "most", "lifetime", "people", "per_tick", "source", "identity")
        fields = {name: record[name] for name in names}
        return cls(
            **fields,
            schedule=TickSchedule.from_record(record["schedule"]),
            loss=measures.from_record(record["loss"]),
        )

    def to_text(self) -> str:
        """Return it as canonical JSON."""
        return json.dumps(self.to_record(), sort_keys=True, separators=(",", ":"))


def require_name(name: str) -> None:
    """Refuse what is no name of a monitor: it becomes the name of a file."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            f"{name!r:.70} is not a valid monitor name; use lower-case letters, digits, - and _, with a letter or "
            f"digit first."
        )
