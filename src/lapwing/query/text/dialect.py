"""What GoogleSQL says about privacy, taken out of the tokens before the parser sees them.

`SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)` and the named arguments of an aggregate, `SUM(x, epsilon => 0.1)`, are no
SQL to the parser. They are cut out of the list of tokens and remembered; what stays keeps its place in the text, so
that every refusal still points at the right character. The parser is neither subclassed nor patched: its compiled build
does not allow it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.positions import position_at, refused_at
from lapwing.query.text.privacy_options import NamedArguments, PrivacyOptions, read_named_arguments, read_options

WORDS: Final = frozenset({"DIFFERENTIAL_PRIVACY", "OPTIONS"})
"""Those without which, and without `=>`, nothing is said about privacy."""
_NOT_RELEASED: Final = "Options or named arguments stand in a part of the query, where nothing is released"
_WORD: Final = "DIFFERENTIAL_PRIVACY"
_CLAUSE: Final = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…) once, at the SELECT that is released."
_CALL: Final = "Named arguments come last in an aggregate: SUM(x, contribution_bounds_per_group => (0, 5))."


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCall:
    """A function call with named arguments: the token of its name, and the offset where they end."""

    name: Token
    end: int
    arguments: NamedArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A statement's tokens without what is said about privacy, and that."""

    tokens: list[Token]
    options: PrivacyOptions
    calls: tuple[NamedCall, ...]


def cut(tokens: Sequence[Token], text: str) -> Cut:
    """Take options and named arguments out of a statement.

    Raises:
        QueryRefused: At the position of what is misspelled, not allowed, or in the wrong place.
    """
    script = _read(tokens, text)
    clause, options = _options(script)
    dropped = set(clause)
    calls = []
    for opening in _called(script, clause):
        named, call = _call(script, opening)
        dropped.update(named)
        calls.append(call)
    kept = [token for i, token in enumerate(tokens) if i not in dropped]
    return Cut(tokens=kept, options=options, calls=tuple(calls))


# ---- parentheses ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """Tokens with their parentheses: `scopes` says in which each token stands, `closings` where each ends."""

    text: str
    tokens: Sequence[Token]
    scopes: Sequence[int | None]
    closings: Mapping[int, int]

    def kind(self, i: int) -> TokenType | None:
        return self.tokens[i].token_type if 0 <= i < len(self.tokens) else None

    def is_word(self, i: int, word: str) -> bool:
        return self.kind(i) == TokenType.VAR and self.tokens[i].text.upper() == word

    def refused(self, i: int, cause: RefusalCause, reason: str, remedy: str) -> QueryRefused:
        return refused_at(self.tokens[i], self.text, cause, reason, remedy)

    def items(self, opening: int) -> list[range]:
        """Return what stands between the commas of a parenthesis: none of them empty, or no item at all."""
        closing = self.closings.get(opening)
        if closing is None:
            raise self.refused(
                opening, RefusalCause.SYNTAX_ERROR, "A parenthesis is not closed", "Write ) where it ends."
            )
        inside = range(opening + 1, closing)
        commas = [i for i in inside if self.kind(i) == TokenType.COMMA and self.scopes[i] == opening]
        starts, ends = [opening + 1, *(i + 1 for i in commas)], [*commas, closing]
        items = [range(start, end) for start, end in zip(starts, ends, strict=True)]
        if commas and not all(items):
            raise self.refused(commas[0], RefusalCause.SYNTAX_ERROR, "A comma has nothing on one side", "Leave it out.")
        return items if inside else []

    def read(self, items: Sequence[range]) -> list[Sequence[Token]]:
        return [self.tokens[item.start : item.stop] for item in items]


def _read(tokens: Sequence[Token], text: str) -> _Script:
    scopes: list[int | None] = []
    closings: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.R_PAREN and opened:
            closings[opened.pop()] = i
        scopes.append(opened[-1] if opened else None)
        if token.token_type == TokenType.L_PAREN:
            opened.append(i)
    return _Script(text=text, tokens=tokens, scopes=scopes, closings=closings)


# ---- options --------------------------------------------------------------------------------------------------------


def _options(script: _Script) -> tuple[list[int], PrivacyOptions]:
    """Return the tokens of the clauses after SELECT, if there are any, and what they say.

    Several stand at SELECTs that are released together, as those of a UNION ALL; they say the same, and their prices
    add up.
    """
    main = next((i for i in range(len(script.tokens)) if _is_select(script, i) and script.scopes[i] is None), None)
    clauses: dict[int, tuple[range, PrivacyOptions]] = {}
    for i in range(len(script.tokens)):
        if _is_select(script, i) and script.kind(i + 1) == TokenType.WITH:
            if not script.is_word(i + 2, _WORD):
                raise script.refused(
                    i + 1, RefusalCause.MISPLACED_OPTION, "SELECT WITH … is not supported here", _CLAUSE
                )
            clauses[i] = _clause(script, i + 1)
    dropped = [place for clause, _ in clauses.values() for place in clause]
    for i in range(len(script.tokens)):
        if i not in dropped and _is_stray(script, i):
            raise script.refused(
                i, RefusalCause.MISPLACED_OPTION, "An option clause stands in the wrong place", _CLAUSE
            )
    if not clauses:
        return [], PrivacyOptions()
    _, options = next(iter(clauses.values()))
    for i, (_, other) in clauses.items():
        if replace(other, positions=options.positions) != options:
            raise script.refused(
                i + 1,
                RefusalCause.DUPLICATE_OPTION,
                "Two option clauses do not say the same",
                "Write the same in each of them.",
            )
    inside = tuple(script.tokens[clause[-1]].end for i, (clause, _) in clauses.items() if i != main)
    number = len(clauses)
    epsilon, delta = (None if each is None else number * each for each in (options.epsilon, options.delta))
    return dropped, replace(options, epsilon=epsilon, delta=delta, inside=inside, alone=number == 1)


def _is_select(script: _Script, i: int) -> bool:
    return script.kind(i) == TokenType.SELECT


def _clause(script: _Script, start: int) -> tuple[range, PrivacyOptions]:
    opening = start + 3
    if not (script.is_word(start + 2, "OPTIONS") and script.kind(opening) == TokenType.L_PAREN):
        return range(start, start + 2), PrivacyOptions(written=True)
    items = script.items(opening)
    return range(start, script.closings[opening] + 1), read_options(script.read(items), script.text)


def _is_stray(script: _Script, i: int) -> bool:
    """Tell whether a clause begins here; a table of the same name, WITH differential_privacy AS (…), is none."""
    if script.is_word(i, "OPTIONS"):
        return script.kind(i + 1) == TokenType.L_PAREN and script.kind(i + 3) == TokenType.EQ
    named = script.kind(i + 2) in (TokenType.ALIAS, TokenType.L_PAREN)
    return script.kind(i) == TokenType.WITH and script.is_word(i + 1, _WORD) and not named


# ---- named arguments ------------------------------------------------------------------------------------------------


def _called(script: _Script, clause: Sequence[int]) -> list[int]:
    """Return the opening parentheses of the calls that hold named arguments."""
    openings: dict[int, None] = {}
    for i in range(len(script.tokens)):
        if script.kind(i) == TokenType.FARROW and i not in clause:
            opening = script.scopes[i]
            if opening is None or script.kind(opening - 1) not in (TokenType.VAR, TokenType.IDENTIFIER):
                raise script.refused(
                    max(i - 1, 0), RefusalCause.MISPLACED_OPTION, "A named argument stands outside a function", _CALL
                )
            openings[opening] = None
    return list(openings)


def _call(script: _Script, opening: int) -> tuple[range, NamedCall]:
    """Return the tokens to drop from a call, with the comma before them, and what they say."""
    items = script.items(opening)
    named = [item for item in items if script.kind(item.start + 1) == TokenType.FARROW]
    first = len(items) - len(named)
    if items[first:] != named:
        last = next(item for item in reversed(items) if item not in named)
        raise script.refused(
            last.start, RefusalCause.MISPLACED_OPTION, "A plain argument stands after a named one", _CALL
        )
    name = script.tokens[opening - 1]
    arguments = read_named_arguments(script.read(named), script.text, position_at(script.text, name.start))
    end = script.closings[opening]
    start = named[0].start - (first > 0) if named else end
    return range(start, end), NamedCall(name=name, end=script.tokens[end].start, arguments=arguments)


def placed(select: exp.Select, calls: Sequence[NamedCall], text: str) -> dict[int, NamedArguments]:
    """Return the named arguments by the offset of the function's name, having found each call in the tree.

    The parser gives the position of its name to every function but those that it reads in a way of its own, such as
    QUANTILE_CONT; an aggregate of these takes the offset of the innermost call around its arguments that no other
    aggregate has taken, deeper ones first. So `node.meta["start"]` is the key of every aggregate that has any.

    Raises:
        QueryRefused: At a call that is no aggregate.
    """
    if not calls:
        return {}
    waiting = {call.name.start: call for call in calls}
    unplaced = []
    for node in select.walk(bfs=False):
        if not isinstance(node, exp.AggFunc | exp.Anonymous):
            continue
        start = node.meta.get("start")
        if start is None:
            unplaced.append(node)
        elif start in waiting:
            waiting.pop(start)
    for node in reversed(unplaced):
        around = _innermost(waiting.values(), node)
        if around is not None:
            node.update_positions(around.name)
            waiting.pop(around.name.start)
    for call in waiting.values():
        raise refused_at(
            call.name,
            text,
            RefusalCause.INAPPLICABLE_OPTION,
            f"{call.name.text[:40].upper()} takes no named arguments",
            _CALL,
        )
    return {call.name.start: call.arguments for call in calls}


def require_released(select: exp.Select, arguments: Iterable[int], options: PrivacyOptions, text: str) -> None:
    """Refuse named arguments and option clauses of other SELECTs than the one that is released.

    Args:
        arguments: Where the aggregates stand that have any.
    """
    own = {node.meta.get("start") for node in _of(select)}
    others = [start for start in arguments if start not in own]
    others += [end for end in options.inside if not stands_at(end, select, text)]
    if others:
        raise not_released(min(others), text)
    if not options.alone:
        reason = f"WITH {_WORD} stands there more than once, and one result is released"
        raise QueryRefused(reason, cause=RefusalCause.DUPLICATE_OPTION, remedy=_CLAUSE)


def stands_at(end: int, select: exp.Expr, text: str) -> bool:
    """Tell whether a clause is that of a SELECT: its list begins behind it, with no other SELECT between."""
    items = select.args.get("expressions") or [] if isinstance(select, exp.Select) else []
    starts = [part.meta["start"] for item in items for part in item.walk() if "start" in part.meta]
    return bool(starts) and end < min(starts) and "select" not in text[end : min(starts)].lower()


def not_released(start: int, text: str) -> QueryRefused:
    """Return the refusal of what is said about privacy where nothing is released."""
    remedy = "Give them to the SELECT that is released, and to its aggregates."
    return QueryRefused(
        _NOT_RELEASED, remedy=remedy, position=position_at(text, start), cause=RefusalCause.NOTHING_RELEASED
    )


def _of(select: exp.Select) -> list[exp.Expr]:
    """Return the calls of a SELECT itself."""
    calls = select.find_all(exp.AggFunc, exp.Anonymous)
    return [node for node in calls if node.find_ancestor(exp.Select) is select]


def _innermost(calls: Iterable[NamedCall], node: exp.Expr) -> NamedCall | None:
    starts = [part.meta["start"] for part in node.walk(bfs=False) if "start" in part.meta]
    if not starts:
        return None
    first, last = min(starts), max(starts)
    around = [call for call in calls if call.name.end < first and last < call.end]
    return max(around, key=lambda call: call.name.start, default=None)
