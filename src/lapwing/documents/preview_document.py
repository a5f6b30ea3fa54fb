"""Previews as JSON documents, and read back."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NotRequired

from typing_extensions import TypedDict

from lapwing.documents.answer_document import Record, codes_of, notes_in
from lapwing.preview import ColumnPreview, LedgerPreview, MeasurePreview, PartPreview, Preview, SelectionPreview
from lapwing.privacy.amounts import exact, read, written
from lapwing.privacy.measures import from_record


class PartCostDocument(TypedDict):
    """A part of the data that a question is charged to: what it has spent, and what is left for it."""

    part: str
    spent: Record
    remaining: Record


class OtherLedgerDocument(TypedDict):
    """What the other kind of ledger would give, while nothing was charged."""

    measure: str
    delta: float
    half_widths: list[float]
    fits: int


class PreviewDocument(TypedDict):
    """A price, and what is left for the caller. `refusal` is what a query would be refused with now.

    `deadline` is there where answers leave at one: the seconds from a question's turn until then. `times_of_100` is how
    often a guess about one privacy unit can be right with this result, and 50 is how often without it.
    """

    cost: Record
    price: Record
    epsilon: float
    epsilon_means: str
    stored: bool
    share_of_remaining: float | None
    share_of_budget: NotRequired[float | None]
    remaining: Record
    fits: int
    refusal: str | None
    refusal_code: str | None
    larger_limit: NotRequired[str | None]
    cells: int | None
    delta: float
    unit: str
    bound: str
    neighbouring: str
    assuming_count: int | None
    sharpens: bool
    epsilon_before: NotRequired[float | None]
    epsilon_in_all: NotRequired[float | None]
    times_of_100: NotRequired[int | None]
    selection: dict[str, Any] | None
    columns: list[dict[str, Any]]
    measures: list[dict[str, Any]]
    notes: list[str]
    note_codes: list[str]
    parts: list[PartCostDocument] | None
    elsewhere: OtherLedgerDocument | None
    deadline: NotRequired[float]


def preview_document(preview: Preview, neighbouring: str) -> PreviewDocument:
    """Return a preview."""
    part = preview.share_of_remaining
    return {
        "cost": preview.cost.to_record(),
        "price": preview.price.to_record(),
        "epsilon": preview.epsilon,
        "epsilon_means": "the cost of this query by itself",
        "stored": preview.stored,
        "share_of_remaining": part if math.isfinite(part) else None,
        "share_of_budget": preview.share_of_budget,
        "remaining": preview.remaining.to_record(),
        "fits": preview.fits,
        "refusal": preview.refusal,
        "refusal_code": preview.refusal_code,
        "larger_limit": None if preview.larger_limit is None else written(preview.larger_limit),
        "cells": preview.cells,
        "delta": float(preview.delta),
        "unit": preview.unit,
        "bound": preview.bound,
        "neighbouring": neighbouring,
        "assuming_count": preview.assuming_count,
        "sharpens": preview.sharpens,
        "epsilon_before": preview.epsilon_before,
        "epsilon_in_all": preview.epsilon_in_all,
        "times_of_100": preview.times_of_100,
        "selection": None if preview.selection is None else asdict(preview.selection),
        "columns": [asdict(column) for column in preview.columns],
        "measures": [asdict(measure) for measure in preview.measures],
        "notes": list(preview.notes),
        "note_codes": codes_of(preview.notes),
        "parts": None
        if preview.parts is None
        else [
            {"part": one.part, "spent": one.spent.to_record(), "remaining": one.remaining.to_record()}
            for one in preview.parts
        ],
        "elsewhere": None if preview.elsewhere is None else _other_ledger(preview.elsewhere),
    }


def _other_ledger(other: LedgerPreview) -> OtherLedgerDocument:
    return {
        "measure": other.measure,
        "delta": float(other.delta),
        "half_widths": list(other.half_widths),
        "fits": other.fits,
    }


def preview_of(document: Mapping[str, Any]) -> Preview:
    """Read what `preview_document` wrote."""
    share, selection, parts = (document[name] for name in ("share_of_remaining", "selection", "parts"))
    other, limit = document.get("elsewhere"), document.get("larger_limit")
    return Preview(
        cost=from_record(document["cost"]),
        price=from_record(document["price"]),
        epsilon=document["epsilon"],
        share_of_remaining=math.inf if share is None else share,
        remaining=from_record(document["remaining"]),
        fits=document["fits"],
        refusal=document["refusal"],
        refusal_code=document.get("refusal_code"),  # which earlier services do not send
        larger_limit=None if limit is None else read(limit, "larger_limit"),
        cells=document["cells"],
        unit=document["unit"],
        bound=document["bound"],
        measures=tuple(
            MeasurePreview(
                **{**measure, "half_width": math.inf if measure["half_width"] is None else measure["half_width"]}
            )
            for measure in document["measures"]
        ),
        columns=tuple(
            ColumnPreview(**{**column, "rests_on": tuple(column["rests_on"])}) for column in document["columns"]
        ),
        notes=notes_in(document),
        delta=exact(document["delta"], "delta"),
        sharpens=document["sharpens"],
        assuming_count=document["assuming_count"],
        parts=None
        if parts is None
        else tuple(
            PartPreview(part=part["part"], spent=from_record(part["spent"]), remaining=from_record(part["remaining"]))
            for part in parts
        ),
        selection=None if selection is None else SelectionPreview(**{**selection, "keys": tuple(selection["keys"])}),
        elsewhere=None
        if other is None
        else LedgerPreview(
            measure=other["measure"],
            delta=exact(other["delta"], "delta"),
            half_widths=tuple(other["half_widths"]),
            fits=other["fits"],
        ),
        share_of_budget=document.get("share_of_budget"),  # nor these
        epsilon_before=document.get("epsilon_before"),
        epsilon_in_all=document.get("epsilon_in_all"),
    )
