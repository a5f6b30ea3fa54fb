"""The form of a question: what was typed, as the body of a request and as a link."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import urlencode

from lapwing.server.console.acting import decimal_of, number_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.templates import stated_delta
from lapwing.server.problems import problem

USUAL_PRICE: Final = "0.1"
WAYS: Final = ("epsilon", "error", "rough", "usable", "sharp")
PIECE: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\W\d]\w*""")
"""A text in quotes, or a name."""
TOKEN: Final = re.compile(r'"(?:[^"]|"")*"|[^\W\d]\w*')


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """A question and how it is priced: by an ε, by a wanted ± at 95 %, or by a level of accuracy.

    Args:
        by: "epsilon", "error", or the name of a level, which becomes one of these before anything is priced.
        delta: The part of the data set's δ that finding groups may take; empty for none.
        typical: A typical result, of which a level is a share.
        tab: Where it is written: "sql" or "build".
    """

    sql: str
    by: str
    epsilon: str
    error: str
    delta: str
    label: str
    assuming: str
    typical: str
    tab: str

    @classmethod
    def read(cls, fields: Mapping[str, str], usual: str = "") -> "QuestionForm":
        """Read what a form or a link says."""
        by = fields.get("by", "error" if fields.get("error") else "")
        return cls(
            sql=fields.get("sql", usual),
            by=by if by in WAYS else "epsilon",
            epsilon=fields.get("epsilon", USUAL_PRICE).strip(),
            error=fields.get("error", "").strip(),
            delta=fields.get("delta", "").strip(),
            label=fields.get("label", "").strip(),
            assuming=fields.get("assuming", "").strip(),
            typical=fields.get("typical", "").strip(),
            tab="build" if fields.get("tab", fields.get("built")) == "build" else "sql",
        )

    @property
    def priced(self) -> dict[str, Any]:
        """The body that asks for the price.

        Raises:
            ApiRefusal: For a number that can mean two, or a number of rows that is none.
        """
        name = "error" if self.by == "error" else "epsilon"
        price = {name: decimal_of(getattr(self, name), name)}
        delta = {"delta": number_of(self.delta, "delta")} if self.delta else {}
        return {"sql": self.sql, **price, **delta, **({} if self.rows is None else {"assuming_count": self.rows})}

    @property
    def rows(self) -> int | None:
        """How many rows a group is assumed to have; None if nobody said it.

        Raises:
            ApiRefusal: For a number of rows that is none.
        """
        if not self.assuming:
            return None
        if not re.fullmatch("0*[1-9][0-9]{0,14}", self.assuming):
            text = "Rows per group is a whole number from 1, such as 500, with at most 15 digits and no separators."
            raise ApiRefusal(problem("invalid_parameter", 422, text, "assuming"))
        return int(self.assuming)

    @property
    def asked(self) -> dict[str, Any]:
        """The body that asks the question.

        Raises:
            ApiRefusal: For a number that can mean two.
        """
        return {**self.priced, **({"label": self.label} if self.label else {})}

    @property
    def link(self) -> str:
        """The query of a link to this question."""
        price = {"error": self.error} if self.by == "error" else {"epsilon": self.epsilon}
        further = {name: getattr(self, name) for name in ("delta", "assuming", "label") if getattr(self, name)}
        return urlencode({"sql": self.sql, **price, **further})


def single(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request as of its own question alone: of several at one price, the one of this answer."""
    if "place" not in request:
        return request
    shared = {name: value for name, value in request.items() if name not in ("questions", "place", "epsilon")}
    return {**shared, **request["questions"][request["place"]], "together": request["epsilon"]}


def question_of(request: Mapping[str, Any]) -> QuestionForm:
    """Return what was asked by a request that bought an answer."""
    fields = {name: str(request[name]) for name in ("sql", "epsilon", "error", "label") if request.get(name)}
    if request.get("delta"):
        fields["delta"] = stated_delta(request["delta"])
    if request.get("assuming_count"):
        fields["assuming"] = str(request["assuming_count"])
    return QuestionForm.read(fields)


def marked(sql: str, position: tuple[int, int]) -> tuple[str, str, str]:
    r"""Return the line that a refusal points at: what is before, the name or sign itself, and what is after.

    >>> marked("SELECT 1,\n plam FROM t", (2, 2))
    (' ', 'plam', ' FROM t')
    """
    lines = sql.split("\n")
    line, column = min(position[0], len(lines)) - 1, position[1] - 1
    text = lines[line]
    found = TOKEN.match(text, column)
    end = found.end() if found else column + 1
    return text[:column], text[column:end], text[end:]


def mended(sql: str, position: tuple[int, int], suggestion: str | None) -> str | None:
    """Return the question with the name that a refusal suggests wherever the wrong one stands, if it suggests one.

    >>> mended("SELECT plam FROM t WHERE x = 'plam' GROUP BY plam", (1, 8), "plan")
    "SELECT plan FROM t WHERE x = 'plam' GROUP BY plan"
    """
    if suggestion is None or position[0] > sql.count("\n") + 1:
        return None
    _, wrong, _ = marked(sql, position)
    if not TOKEN.fullmatch(wrong):
        return None
    return PIECE.sub(lambda piece: suggestion if piece[0] == wrong else piece[0], sql)
