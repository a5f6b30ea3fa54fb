"""Read SQL back into the choices of the query builder: all of it, or nothing.

The grammar is the language of `choices.written`, in any layout. A text counts as read only if the grammar derives its
last token too. So the builder never replaces a query by one that means something else. Texts go to no parser here: the
grammar has no nesting, and reading takes one pass.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar, final

from lapwing.catalog.suggestions import WORDS_OF_SQL
from lapwing.server.console.ask.choices import (
    COMPARISONS,
    EMPTY,
    MEASURES,
    PERIODS,
    Choices,
    GroupingColumn,
    Measure,
    RowCondition,
    complete,
    names_of,
)
from lapwing.server.console.data.columns import NUMBERS, ColumnText, TableText

LONGEST: Final = 10_000
"""Characters of a query that is read back."""
PIECES: Final = re.compile(
    r"""\s*(?:(?P<foreign>--|/\*)|(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>[0-9]+(?:\.[0-9]+)?)(?![\w.])|(?P<word>[^\W\d]\w*)|(?P<sign><>|!=|==|<=|>=|[-=<>*/(),]))""",
    re.VERBOSE,
)
SAME: Final = {"!=": "<>", "==": "="}
_T = TypeVar("_T")


class _Unread(Exception):
    """The text is not one that choices mean."""


@final
@dataclass(frozen=True, slots=True)
class Token:
    """A name, number, text or sign; `text` without its quotes."""

    kind: Literal["word", "quoted", "number", "text", "sign"]
    text: str


def tokens_of(sql: str) -> list[Token] | None:
    """Return the tokens of a text, without a semicolon at its end; None if it has something else."""
    text = sql.strip().removesuffix(";").rstrip()
    found, place = list[Token](), 0
    while place < len(text):
        piece = PIECES.match(text, place)
        kind = piece and piece.lastgroup
        if piece is None or kind in (None, "foreign"):
            return None
        said, place = piece[str(kind)], piece.end()
        if kind in ("text", "quoted"):
            said = said[1:-1].replace(said[0] * 2, said[0])
        found.append(Token(kind, SAME.get(said, said) if kind == "sign" else said))  # type: ignore[arg-type]
    return found


def choices_of(sql: str, tables: Sequence[TableText]) -> Choices | None:
    """Return the choices that a query means, None if the builder cannot show it."""
    tokens = tokens_of(sql) if len(sql) <= LONGEST else None
    if not tokens:
        return None
    words = [token.text.upper() if token.kind == "word" else "" for token in tokens]
    try:
        place = words.index("FROM") + 1
        table = _table(tokens[place], tables)
        return _Reader(tokens, table).query()
    except (_Unread, ValueError, IndexError):
        return None


def _table(token: Token, tables: Sequence[TableText]) -> TableText:
    return _one([table for table in tables if _is_name(token, table.name)])


def _is_name(token: Token, name: str) -> bool:
    if token.kind == "quoted":
        return token.text == name
    return token.kind == "word" and token.text.casefold() == name.casefold() and not _is_reserved(token)


def _is_reserved(token: Token) -> bool:
    return token.kind == "word" and token.text.casefold() in WORDS_OF_SQL


def _one(found: Sequence[_T]) -> _T:
    if len(found) != 1:
        raise _Unread
    return found[0]


@final
class _Reader:
    """Reads one query of a table, from left to right; raises `_Unread` where it is none that choices mean."""

    def __init__(self, tokens: Sequence[Token], table: TableText) -> None:
        self._tokens, self._table, self._place = tokens, table, 0

    def query(self) -> Choices:
        self._take("SELECT")
        keys, measures = list[GroupingColumn](), list[Measure]()
        for one in self._listed(self._shown):
            if isinstance(one, GroupingColumn):
                if measures:  # the builder shows keys first
                    raise _Unread
                keys.append(one)
            else:
                measures.append(one)
        self._take("FROM")
        self._next()
        choices = Choices(table=self._table.name, measures=tuple(measures), keys=tuple(keys))
        names = names_of(choices, self._table)
        if len({name.casefold() for name in names}) != len(names):  # the builder writes no two of one name
            raise _Unread
        conditions = self._listed(self._condition, "AND") if self._has("WHERE") else []
        if self._has("GROUP", "BY"):
            self._groups(keys, names)
        elif keys:
            raise _Unread
        sort, falling = self._order(len(keys), names) if self._has("ORDER", "BY") else ("", False)
        top = self._number() if self._has("LIMIT") else ""
        if self._place != len(self._tokens) or not measures:
            raise _Unread
        read = replace(choices, conditions=tuple(conditions), sort=sort, falling=falling, top=top)
        chosen = complete(read, self._table)
        if _unnamed(chosen) != _unnamed(read):  # something of it cannot be chosen
            raise _Unread
        return chosen

    # ---- clauses ----

    def _shown(self) -> GroupingColumn | Measure:
        one = self._measure() if self._is_measure() else self._key()
        return replace(one, name=self._name()) if self._has("AS") else one

    def _groups(self, keys: Sequence[GroupingColumn], names: Sequence[str]) -> None:
        if self._has("ALL"):
            return
        grouped = self._listed(lambda: self._group(keys, names))
        if grouped != [replace(key, name="") for key in keys]:
            raise _Unread

    def _group(self, keys: Sequence[GroupingColumn], names: Sequence[str]) -> GroupingColumn:
        if self._ahead().kind == "number":
            place = int(self._next().text)
            if not 1 <= place <= len(keys):
                raise _Unread
            return replace(keys[place - 1], name="")
        columns = [column.name for column in self._table.columns]
        if not _named(self._ahead(), columns) and len(found := _named(self._ahead(), names[: len(keys)])) == 1:
            self._next()
            return replace(keys[names.index(found[0])], name="")
        return self._key()

    def _order(self, keys: int, names: Sequence[str]) -> tuple[str, bool]:
        token = self._next()
        place = int(token.text) - 1 if token.kind == "number" else names.index(_one(_named(token, names)))
        if not 0 <= place < len(names):
            raise _Unread
        falling = self._has("DESC")
        if not falling:
            self._has("ASC")
        return (f"k{place}" if place < keys else f"m{place - keys}"), falling

    def _condition(self) -> RowCondition:
        column = self._column()
        for comparison, words in EMPTY.items():
            if self._has(*words.split()):
                return RowCondition(column=column.name, comparison=comparison)
        comparison = self._sign(*COMPARISONS)
        return RowCondition(column=column.name, comparison=comparison, value=self._value(column))

    # ---- what is shown ----

    def _is_measure(self) -> bool:
        words = ("COUNT", "SUM", "AVG", "MEDIAN")
        return self._ahead().kind == "word" and self._ahead().text.upper() in words and self._ahead(1).text == "("

    def _measure(self) -> Measure:
        call = self._next().text.upper()
        self._sign("(")
        if call == "COUNT":
            measure = self._count()
        elif call == "AVG" and self._has("CASE", "WHEN"):
            measure = self._share()
        else:
            what = next(what for what, (form, _) in MEASURES.items() if form == f"{call}({{}})")
            measure = Measure(what=what, column=self._column().name)
        self._sign(")")
        return measure

    def _count(self) -> Measure:
        if not self._has("DISTINCT"):
            self._sign("*")
            return Measure(what="rows")
        column = self._column()
        return Measure(what="people" if column.is_unit else "distinct", column=column.name)

    def _share(self) -> Measure:
        column = self._column()
        self._sign("=")
        value = self._value(column)
        self._take("THEN")
        self._exactly("1")
        self._take("ELSE")
        self._exactly("0")
        self._take("END")
        return Measure(what="share", column=column.name, value=value)

    def _key(self) -> GroupingColumn:
        call = self._ahead().text.upper() if self._ahead().kind == "word" and self._ahead(1).text == "(" else ""
        if not call:
            column = self._column()
            return GroupingColumn(column=column.name, step="day" if column.type == "date" else "")
        self._next()
        self._sign("(")
        if call == "FLOOR":
            return self._range()
        if call == "CAST":
            column = self._column()
            self._take("AS", "DATE")
            self._sign(")")
            if column.type != "timestamp":
                raise _Unread
            return GroupingColumn(column=column.name, step="day")
        if call != "DATE_TRUNC":
            raise _Unread
        period = self._next()
        self._sign(",")
        column = self._column()
        self._sign(")")
        if period.kind != "text" or period.text not in PERIODS[1:]:
            raise _Unread
        return GroupingColumn(column=column.name, step=period.text)

    def _range(self) -> GroupingColumn:
        column = self._column()
        self._sign("/")
        width = self._number()
        self._sign(")")
        self._sign("*")
        self._exactly(width)
        if column.type not in NUMBERS:
            raise _Unread
        return GroupingColumn(column=column.name, step=width)

    # ---- tokens ----

    def _ahead(self, further: int = 0) -> Token:
        place = self._place + further
        return self._tokens[place] if place < len(self._tokens) else Token("sign", "")

    def _next(self) -> Token:
        token = self._ahead()
        if not token.text and token.kind == "sign":
            raise _Unread
        self._place += 1
        return token

    def _has(self, *words: str) -> bool:
        """Take words if they come next."""
        ahead = [self._ahead(place) for place in range(len(words))]
        if [token.text.upper() if token.kind == "word" else "" for token in ahead] != list(words):
            return False
        self._place += len(words)
        return True

    def _take(self, *words: str) -> None:
        if not self._has(*words):
            raise _Unread

    def _sign(self, *signs: str) -> str:
        token = self._next()
        if token.kind != "sign" or token.text not in signs:
            raise _Unread
        return token.text

    def _listed(self, each: Callable[[], _T], between: str = ",") -> list[_T]:
        found = [each()]
        while self._has("AND") if between == "AND" else self._comma():
            found.append(each())
        return found

    def _comma(self) -> bool:
        token = self._ahead()
        if token.kind != "sign" or token.text != ",":
            return False
        self._place += 1
        return True

    def _number(self) -> str:
        token = self._next()
        if token.kind != "number":
            raise _Unread
        return token.text

    def _exactly(self, number: str) -> None:
        if self._number() != number:
            raise _Unread

    def _name(self) -> str:
        token = self._next()
        if token.kind not in ("word", "quoted") or _is_reserved(token):
            raise _Unread
        return token.text

    def _column(self) -> ColumnText:
        token = self._next()
        return _one([column for column in self._table.columns if _is_name(token, column.name)])

    def _value(self, column: ColumnText) -> str:
        if column.type in NUMBERS:
            minus = "-" if self._ahead() == Token("sign", "-") else ""
            self._place += len(minus)
            return minus + self._number()
        if column.type == "boolean":
            token = self._next()
            if token.kind != "word" or token.text.lower() not in ("true", "false"):
                raise _Unread
            return token.text.lower()
        if column.type in ("date", "timestamp"):
            self._take(column.type.upper())
        token = self._next()
        if token.kind != "text":
            raise _Unread
        return token.text


def _named(token: Token, names: Sequence[str]) -> list[str]:
    return [name for name in names if _is_name(token, name)]


def _unnamed(choices: Choices) -> Choices:
    keys, measures = (tuple(replace(one, name="") for one in some) for some in (choices.keys, choices.measures))
    return replace(choices, keys=keys, measures=measures)  # type: ignore[arg-type]
