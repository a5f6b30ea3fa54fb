"""The snapshot of a published page: what of released results everybody may see, as one JSON document.

Guarantee:
    A snapshot is a function of documents of released results (`result_document`), of the catalog, which is public, and
    of what its publisher typed. That is titles, texts, and choices for charts. So publishing it is
    post-processing and costs nothing. Every part is copied by name (`_SHOWN`): what a later version adds to an answer's
    document is not in it. It has no budget, no text of a query unless the publisher wants that, and nobody's name but
    the author that the publisher typed.

The ε of a result is computed of what was charged for it. A ledger adds up losses of its measure. Each
implies (ε, δ) at the δ that the catalog has beside the δ for private keys. The δ of a page is the δ of the catalog: all
private keys together take no more than their part of that.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from typing import Any, Final, final

from lapwing.answer.truncated_times import TRUNCATED
from lapwing.catalog.model import Catalog
from lapwing.catalog.protection import bound_of, noun_of, units_of
from lapwing.errors import Fault, InvalidParameter
from lapwing.guarantee.meaning import odds_change_up
from lapwing.privacy import figures
from lapwing.privacy.additive import Loss
from lapwing.privacy.additive_loss import from_record

FORMAT: Final = 3
"""From 2 on a page has `parts`: its results and texts in their order. An older one has only results. From 3 on it has
`datasets`. An older one has one data set, in `dataset`, `protects` and `together`."""
MOST_ROWS: Final = 5_000
"""Rows of all results of a page."""
_WONDERED: Final = {
    "add_remove": "Someone may try to learn whether one {noun} is in the data.",
    "replace_one": "Someone may try to learn which of two sets of rows one {noun} has.",
}
"""Pages are stored with these texts, so they stay as they are."""
_SHOWN: Final = ("columns", "rows", "types", "keys", "confidence", "intervals")
"""The parts of an answer's document that a page shows."""
_PUBLIC: Final = ("title", "licence", "contact")
"""The texts of the data set that a page shows."""
_NAMES: Final = {"measured together": "several noises, added up"}
"""Names of mechanisms that mean nothing to readers of a page."""
_AXES: Final = ("x", "colour")
FULL: Final = "full"
_ENORMOUS: Final = 1e6
"""A factor from which on its figure says nothing."""
_PLAIN: Final = 99
"""An ε up to which its figure is a plain decimal. A factor of a larger one is enormous."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResultToShow:
    """A result of a page.

    Args:
        dataset: Its name among the catalogs of the page.
        document: That of the result, with what is public about its columns (`result_document`).
        released: The date, as ISO 8601 has it.
        query: Its text; None if the page does not show it.
        cost: The record of all that was charged for it.
        title: Given by people; never the text of the query.
        column: That is drawn, the first unless given.
        chart: The choices of its chart, as `ChartOptions.texts` has them.
        width: Of the page that it takes, as on a dashboard.
        about: A sentence of a monitor, which is no query; empty of a result.
        id: Of the result. A result that a page shows twice is one release, so its loss is counted once.
    """

    dataset: str
    document: Mapping[str, Any]
    released: str
    cost: Mapping[str, str]
    title: str
    query: str | None = None
    column: str | None = None
    chart: Mapping[str, str] = field(default_factory=dict)
    width: str = FULL
    about: str = ""
    id: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextToShow:
    """A text of a page, as lines without characters that nobody sees."""

    title: str
    lines: Sequence[str]
    width: str = FULL


def snapshot_of(
    catalogs: Mapping[str, Catalog],
    shown: Sequence[ResultToShow | TextToShow],
    *,
    title: str,
    author: str | None,
    now: datetime | None = None,
) -> dict[str, Any]:
    """Return what a page shows of released results.

    Args:
        catalogs: Of the data sets of the results, by name, in the order in which the page describes them.

    Raises:
        InvalidParameter: If they have too many rows.
    """
    results = [one for one in shown if isinstance(one, ResultToShow)]
    rows = sum(len(one.document["rows"]) for one in results)
    if rows > MOST_ROWS:
        raise InvalidParameter(f"The results have {rows:,} rows. A page shows at most {MOST_ROWS:,}.")
    return {
        "format": FORMAT,
        "title": title,
        "author": author,
        "published": (now or datetime.now(UTC)).date().isoformat(),
        "datasets": [
            _dataset(catalogs[name], name, results, "this page" if len(catalogs) == 1 else "this data set")
            for name in catalogs
        ],
        "results": [_result(catalogs[one.dataset], one) for one in results],
        "parts": _parts(shown),
    }


def read(content: str) -> dict[str, Any]:
    """Return a stored snapshot. The page of a method report has no number of a format.

    Raises:
        Fault: If a later release wrote it: then this one would leave out what it does not know.
    """
    page: dict[str, Any] = json.loads(content)
    number = page.get("format", FORMAT)
    if number not in range(1, FORMAT + 1):
        raise Fault(
            f"The published page has format {number}, and this Lapwing knows formats up to {FORMAT}. The page stays as "
            f"it is. Use the release that published it, or a newer one."
        )
    return page


def _dataset(catalog: Catalog, name: str, shown: Sequence[ResultToShow], of: str) -> dict[str, Any]:
    """Return what a page says of a data set: its texts, whom the noise protects, and what its results say together.

    Losses of one data set alone are added up. Its ledger charged them for the same people, by one measure.
    """
    facts = catalog.dictionary.dataset.facts
    own = [one for one in shown if one.dataset == name]
    losses = [from_record(one.cost) for one in {one.id or str(place): one for place, one in enumerate(own)}.values()]
    return {
        "name": catalog.name,
        **{key: facts[key] for key in _PUBLIC if key in facts},
        "protects": _protection(catalog),
        "count": len(losses),
        "together": meaning(catalog, sum(losses[1:], losses[0]), len(losses), of),
    }


def _parts(shown: Sequence[ResultToShow | TextToShow]) -> list[dict[str, Any]]:
    """Return the order of results, each by its number, and of texts."""
    number, parts = count(), []
    for one in shown:
        if isinstance(one, ResultToShow):
            parts.append({"result": next(number), "width": one.width})
        else:
            parts.append({"title": one.title, "text": "\n".join(one.lines), "width": one.width})
    return parts


def _result(catalog: Catalog, one: ResultToShow) -> dict[str, Any]:
    document = one.document
    return {
        "dataset": catalog.name,
        "title": one.title,
        "released": one.released,
        **{name: document[name] for name in _SHOWN},
        "facts": _facts(document),
        "labels": _labels(catalog, document),
        "texts": _axis_texts(catalog, document),
        "column": one.column if one.column in document["intervals"] else None,
        "chart": {name: text for name, text in one.chart.items() if name not in _AXES or text in document["keys"]},
        "noise": _noise(document),
        "meaning": meaning(catalog, from_record(one.cost), 1),
        "query": one.query,
        **({"about": one.about} if one.about else {}),
        **({TRUNCATED: document[TRUNCATED]} if TRUNCATED in document else {}),
    }


def _labels(catalog: Catalog, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels of listed values, by the names of keys."""
    found = {}
    for name, place in (document.get("key_columns") or {}).items():
        labels = catalog.dictionary.column(place["table"], place["column"]).document.get("labels")
        if labels:
            found[name] = labels
    return found


def _axis_texts(catalog: Catalog, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the titles and units that axes of its chart have, by the names of columns."""
    found = {}
    for part, wanted in (("key_columns", ("title", "unit")), ("unit_columns", ("unit",))):
        for name, place in (document.get(part) or {}).items():
            facts = catalog.dictionary.column(place["table"], place["column"]).facts
            found[name] = {key: facts[key] for key in wanted if key in facts}
    return {name: texts for name, texts in found.items() if texts}


def _facts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return of each column what a chart needs to know: whether its numbers add up, as those of counts do."""
    return [
        {
            "name": fact["name"],
            "half_width": fact["half_width"],
            "measures": [{"mechanism": one["mechanism"]} for one in fact["measures"]],
        }
        for fact in document.get("facts", ())
    ]


def _noise(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the mechanisms of each noisy column, with the scale of their noise."""
    return [
        {
            "column": fact["name"],
            "mechanisms": [
                [_NAMES.get(one["mechanism"], one["mechanism"]), figures.size(float(one["scale"]))]
                for one in fact["measures"]
            ],
        }
        for fact in document.get("facts", ())
        if fact["measures"]
    ]


def _protection(catalog: Catalog) -> str:
    """Say whom the noise protects, and how many of their rows queries use."""
    of = (catalog.tables, catalog.dictionary)
    units, bound = units_of(*of, public=True), bound_of(*of, public=True)
    wondered = _WONDERED[catalog.budget.neighbouring].format(noun=noun_of(*of, public=True))
    return (
        f"Lapwing added random noise to these results. The noise protects {units}. "
        f"Queries use {bound}. {wondered} The limits on this page hold even against somebody who knows everything else."
    )


def meaning(catalog: Catalog, loss: Loss, count: int, of: str = "this page") -> dict[str, str]:
    """Say what a loss promises: ε and δ, and how far results change the odds of a guess about whom the noise protects.

    `odds_change_up` has the proof. All figures are rounded up.
    """
    if not loss.amount:
        return {"epsilon": "0", "delta": "0", "words": "This result uses public data only. It says nothing of anybody."}
    delta, noun = catalog.budget.delta, noun_of(catalog.tables, catalog.dictionary, public=True)
    epsilon = loss.to_epsilon(delta=delta - catalog.budget.delta_keys)
    shown = figures.epsilon(epsilon)  # rounded up, so that the factor of what readers see is one of the loss, too
    factor, chance = odds_change_up(Fraction(shown) if epsilon <= _PLAIN else Fraction(epsilon), delta)
    subject = "This result changes" if count == 1 else f"The {count} results of {of} together change"
    if factor > _ENORMOUS:
        words = f"{subject} the odds of a guess about one {noun} by a factor that may be above a million."
    else:
        words = f"{subject} the odds of a guess about one {noun} by a factor of at most {figures.epsilon(factor)}."
    if chance:
        words = f"{words[:-1]}, except with a probability of less than {figures.delta(chance)}."
        words += " These are 2·e^ε and 3·δ."
    elif factor <= _ENORMOUS:
        words += " This is e^ε."
    if catalog.budget.delta_keys:
        words += " Here δ is the limit of the data set; a query may have used less of it."
    return {"epsilon": shown, "delta": figures.delta(delta), "words": words}
