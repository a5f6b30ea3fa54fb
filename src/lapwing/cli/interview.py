"""The questions that `lapwing init` asks on a terminal: each with its reason, and where one can be meant, a default.

Nothing that is asked may be learned from the data, and no row is read to find a default, but for the types of a CSV
file, which are a draft for the curator to judge.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, final

from rich.console import RenderableType
from rich.text import Text

from lapwing.catalog.column_checks import NUMERIC
from lapwing.catalog.dictionary import Texts
from lapwing.catalog.draft import EVERY, drafted_column, retyped, table_name
from lapwing.catalog.file_columns import found_text, guessed_types, read_columns, type_of
from lapwing.catalog.model import ROW
from lapwing.catalog.place import within
from lapwing.catalog.reading import moment_pattern
from lapwing.catalog.several_files import partition_keys
from lapwing.catalog.source_address import name_of
from lapwing.catalog.source_names import holds_no_types, is_json, is_text
from lapwing.catalog.suggestions import meant
from lapwing.catalog.text_files import ENCODINGS, seems_encoded
from lapwing.catalog.ways_of_writing import like
from lapwing.cli.column_options import bounds_of, missing_of, types_line, types_of, values_of
from lapwing.cli.console import Fitted, new_table, rendered, text
from lapwing.cli.figures import delta, size
from lapwing.cli.options import above_zero, part_of_one
from lapwing.cli.streams import complain, complain_of
from lapwing.errors import InvalidParameter, LapwingError

if TYPE_CHECKING:
    from lapwing.catalog.file_columns import FileColumn
    from lapwing.catalog.guessed_writing import Writing
    from lapwing.catalog.text_files import TextFormat
    from lapwing.catalog.ways_of_writing import Notation

Answer = TypeVar("Answer")

LIKE_A_UNIT: Final = re.compile(
    r"(?i:(person|people|patient|customer|client|user|member|student|employee|household|subject|respondent|card|account"
    r"|kunde|nutzer|mitglied|haushalt|konto|cliente?|usuario|utilisateur|paciente|persona|personne)[sn]?"
    r"([_ ]?(id|no|nr|nummer|number|num|key|code))?)|.*[_ ](id|ID|uid)|.*Id|ID|id|uid|ssn",
    re.ASCII,
)
"""Names of columns that say whose row it is, mostly."""
USUAL_ROWS: Final = 10
USUAL_EPSILON: Final = Fraction(3)
USUAL_DELTA: Final = Fraction(1, 10**6)
SKIP_REST: Final = "."
CORRECTIONS: Final = "Press Enter to accept, or correct some, like age=integer,cost=decimal:0.01"
PLAIN: Final = ("string", "boolean")
"""Types whose values have one way of writing."""
WIDTH: Final = 88


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InterviewAnswers:
    """What is said of a file in options, or in answers to questions; texts as the options have them.

    Args:
        further: Options of columns that are not asked for, to be repeated.
        written: How dates and numbers are written, as pairs of an option and its text.
        codes: Texts of the first rows that may stand for missing values: in every column, or `COLUMN=A,B` in one.
    """

    privacy_unit: str | None = None
    max_rows: int | None = None
    types: Sequence[str] | None = None
    bounds: Sequence[str] = ()
    values: Sequence[str] = ()
    rows_at_most: int | None = None
    people: int | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    delta_keys: Fraction | None = None
    measure: str | None = None
    questions: int | None = None
    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    missing: Sequence[str] | None = None
    other: Sequence[str] | None = None
    further: Sequence[tuple[str, str]] = ()
    written: Sequence[tuple[str, str]] = ()
    codes: Sequence[str] = ()
    title: str | None = None
    description: str | None = None

    def text(self, source: Path) -> "TextFormat | None":
        """Return how a CSV file is written, if not as its name says."""
        return found_text(source, delimiter=self.delimiter, quote=self.quote, encoding=self.encoding)


def interview(
    source: Path | str, given: InterviewAnswers, offered: "Sequence[FileColumn] | None" = None
) -> InterviewAnswers:
    """Ask for what was not given, on a terminal.

    Args:
        offered: The columns of what is at an address.

    Raises:
        DataFault: If the file cannot be read.
        InvalidParameter: If the answers end.
    """
    if offered is not None:
        said, source = given, Path(name_of(str(source)))
        columns = [column for column in retyped(offered, types_of(given.types)) if column.type is not None]
        _show(source, columns)
    else:
        said, columns = _of_file(Path(source), given)
        source = Path(source)
    said = _as_stored(_whose(said, columns))
    asked = [column for column in columns if column.name != said.privacy_unit]
    said = _bounds(_stand_for_none(said, columns), asked)
    said = _budget(_sizes(_others(_values(said, asked), asked), table_name(source)))
    listed = values_of(said.values)
    return _title(_keys(said, [c.name for c in asked if c.type == "string" and c.name not in listed]))


def _of_file(source: Path, given: InterviewAnswers) -> "tuple[InterviewAnswers, list[FileColumn]]":
    """Ask how a file is written, as far as it does not say itself, and show the columns that it then has."""
    said = _encoding(source, given) if is_text(source) else given
    typed = holds_no_types(source) or partition_keys(source) != ()
    said = _ask_writing(source, said) if typed else said
    columns = [c for c in read_columns(source, types_of(said.types), said.text(source)) if c.type is not None]
    if not typed:
        _show(source, columns)
    return said, columns


# ---- the questions ---------------------------------------------------------------------------------------------------


def _encoding(source: Path, said: InterviewAnswers) -> InterviewAnswers:
    if said.encoding is not None or (seems := seems_encoded(source)) == "utf-8":
        return said
    encoding = _ask(
        "What is the encoding of the file?",
        f"The file is not in UTF-8. Windows and Excel in Western Europe write windows-1252. Choose one of "
        f"{', '.join(ENCODINGS)}. If names look wrong below, start again with another.",
        seems,
        lambda answer: one_of(answer, ENCODINGS),
    )
    return replace(said, encoding=encoding)


def _ask_writing(source: Path, said: InterviewAnswers) -> InterviewAnswers:
    """Ask for the types of a file that holds none and for the way in which it is written, by a draft of both."""
    from lapwing.catalog.guessed_writing import guessed_writing  # here: few commands read rows for a draft

    if said.types is not None:
        return ask_types(source, said)
    guess = guessed_writing(source, said.text(source))
    types, formats = _ask_types(source, said, guess.types, guess.ways, guess.words)
    stated = [(option, text.partition("=")[0]) for option, text in said.further]
    ways = {name: each[0] for name, each in guess.ways.items() if _is_alike(types[name], guess.types[name])}
    written = [
        (option_of(key), f"{name}={formats.get(name, text) if key == 'format' else text}")
        for name, way in ways.items()
        for key, text in way.entries
        if (option_of(key), name) not in stated
    ]
    return replace(said, types=[types_line(types)], written=written, codes=_codes(guess, types))


def _codes(guess: "Writing", types: Mapping[str, str]) -> Sequence[str]:
    """Return what may stand for missing values, as options say it where words of one column are among it."""
    words = [f"{name}={','.join(some)}" for name, some in guess.words.items() if types[name] not in PLAIN]
    every = ",".join(guess.missing)
    return [*([f"{EVERY}={every}"] if every else []), *words] if words else guess.missing


def _is_alike(kind: str, guessed: str) -> bool:
    """Tell whether a column of one type is written as one of another: both have numbers, or both have dates."""
    return (kind.partition(":")[0] in NUMERIC) == (guessed.partition(":")[0] in NUMERIC) and kind not in PLAIN


def option_of(key: str) -> str:
    """Return the option for a key of a catalog."""
    return f"--{key.replace('_', '-')}"


def ask_types(source: Path, said: InterviewAnswers) -> InterviewAnswers:
    """Ask for the types of a file that holds none, by a draft of them, and show the columns."""
    text = said.text(source)
    if said.types is not None:
        _show(source, read_columns(source, types_of(said.types), text))
        return said
    types, _ = _ask_types(source, said, guessed_types(source, text), {}, {})
    return replace(said, types=[types_line(types)])


def _ask_types(
    source: Path,
    said: InterviewAnswers,
    guessed: Mapping[str, str],
    ways: Mapping[str, Sequence["Notation"]],
    words: Mapping[str, Sequence[str]],
) -> tuple[dict[str, str], dict[str, str]]:
    """Ask whether guessed types are right; return them as they are, and the formats of dates that were corrected."""
    columns = read_columns(source, guessed if is_json(source) else {}, said.text(source))
    _show(source, [replace(column, type=guessed.get(column.name, column.type)) for column in columns], ways)
    formats = {name: [way.reading.format for way in some if way.reading.format] for name, some in ways.items()}
    more = ", or the format of a date, like day=%m/%d/%Y" if any(formats.values()) else ""
    unsure = "".join(
        f" Nothing tells {' from '.join(some[:2])} in {name}." for name, some in formats.items() if len(some) > 1
    )
    unsure += "".join(
        f" Nearly all of {name} is {guessed[name].partition(':')[0]}, but it also has {' and '.join(some)}. If it is "
        f"text, write {name}=string."
        for name, some in words.items()
    )
    types, dates = _ask(
        "Are these types right?",
        "Only Parquet files have types; Lapwing guessed these from the first rows. A single row may decide a guess, "
        f"so judge each type by the meaning of the column.{unsure} {CORRECTIONS}{more}",
        "yes",
        lambda answer: ({}, {}) if answer.casefold() in ("y", "yes") else _checked_types(answer, guessed, ways),
    )
    return {**guessed, **types}, dates


def _checked_types(
    answer: str, known: Mapping[str, str], ways: Mapping[str, Sequence["Notation"]]
) -> tuple[dict[str, str], dict[str, str]]:
    if "=" not in answer:
        raise InvalidParameter(
            f"{answer[:80]!r} corrects no type. Press Enter to accept the types, or write COLUMN=TYPE, like "
            "age=integer."
        )
    said = types_of([answer])
    _require_known(said, [*known])
    formats = {name: text for name, text in said.items() if "%" in text}
    for name, written in formats.items():
        if not any(way.reading.format for way in ways.get(name, ())):
            raise InvalidParameter(f"{name} is not shown as a date; write its type, like {name}=string.")
        try:
            moment_pattern(written)
        except ValueError as error:
            raise InvalidParameter(f"{written[:80]!r} is not a format: {error}.") from None
    types = {name: kind for name, kind in said.items() if name not in formats}
    for kind in types.values():
        type_of(kind)
    return types, formats


def _whose(said: InterviewAnswers, columns: "Sequence[FileColumn]") -> InterviewAnswers:
    names = [column.name for column in columns]
    likely = next((name for name in names if LIKE_A_UNIT.fullmatch(name)), None)

    def unit(answer: str) -> str:
        if answer != ROW:
            _require_known([answer], names)
        return answer

    if said.privacy_unit is None:
        whose = _ask(
            "Whose row is it?",
            "Name the column that says which person (or household, or firm) a row is about. Lapwing protects each of "
            "them with all their rows. Write row if each row is a different person.",
            likely,
            unit,
        )
        said = replace(said, privacy_unit=whose)
    if said.max_rows is None and said.privacy_unit != ROW:
        rows = _ask(
            f"How many rows may one {said.privacy_unit} have?",
            "Queries use at most this many. A larger number means more noise; a smaller one leaves more rows out. "
            "Take it from the meaning of the table, such as visits in a year.",
            str(USUAL_ROWS),
            _whole,
        )
        said = replace(said, max_rows=rows)
    return said


def _as_stored(said: InterviewAnswers) -> InterviewAnswers:
    """Leave out how the privacy unit is written: Lapwing reads it as it is stored, and what has marks as a text."""
    unit, types = said.privacy_unit, types_of(said.types)
    written = [(option, text) for option, text in said.written if text.partition("=")[0] != unit]
    if len(written) == len(said.written):
        return said
    return replace(said, written=written, types=[types_line({**types, str(unit): "string"})])


def _stand_for_none(said: InterviewAnswers, columns: "Sequence[FileColumn]") -> InterviewAnswers:
    if said.missing is not None:
        return said

    def read(answer: str) -> Sequence[str] | None:
        if answer in ("", "none"):
            return None
        texts = [part.strip() for part in answer.split(";")] if "=" in answer else [f"{EVERY}={answer}"]
        _require_known([name for name in missing_of(texts) if name != EVERY], [column.name for column in columns])
        return texts

    found = (";" if any("=" in code for code in said.codes) else ",").join(said.codes)
    enter = f"Press Enter for {found}, which the first rows have, or write none." if found else "Press Enter for none."
    missing = _ask(
        "Which stored values stand for missing ones?",
        "The codebook lists them, such as -99 for no answer, or NA in files from R. Without this they count as "
        "numbers and texts, and -99 as the lower bound. Write NA for every column, or age=-99,999; income=0 for some. "
        f"{enter}",
        found,
        read,
    )
    return replace(said, missing=missing)


def _others(said: InterviewAnswers, columns: "Sequence[FileColumn]") -> InterviewAnswers:
    listed = [c.name for c in columns if c.type == "string" and c.name in values_of(said.values)]
    if said.other is not None or not listed:
        return said
    other = _ask(
        "What to call all other values?",
        f"Rows whose {' or '.join(listed[:3])} is missing or not listed are in no group, so no result that is grouped "
        f"by it has them. With a name, such as other, they form one more group. Press Enter to leave them out.",
        "",
        lambda answer: [f"{name}={answer}" for name in listed] if answer else None,
    )
    return replace(said, other=other)


def _bounds(said: InterviewAnswers, columns: "Sequence[FileColumn]") -> InterviewAnswers:
    known = bounds_of(said.bounds)
    open_ones = [
        c for c in columns if c.type in ("integer", "decimal", "float", "date", "timestamp") and c.name not in known
    ]
    if not open_ones:
        return said
    _explain(
        "Between which bounds?",
        "SUM and AVG need bounds, and so do days between dates. They count a value outside as the nearest bound. Take "
        "bounds from the meaning of the column, such as 0:110 for an age, because bounds from the data would reveal "
        f"somebody. Press Enter for no bounds, or {SKIP_REST} to skip all columns that follow.",
    )
    found = []
    for column in open_ones:
        example = {"date": "2020-01-01:2029-12-31", "timestamp": "2020-01-01:2029-12-31"}.get(str(column.type), "0:100")
        answer = _answer(f"{column.name} ({column.type}), like {example}", None, _pair(column))
        if answer == SKIP_REST:
            break
        found += [f"{column.name}={answer}"] if answer else []
    return replace(said, bounds=[*said.bounds, *found])


def _pair(column: "FileColumn") -> Callable[[str], str]:
    def read(answer: str) -> str:
        if answer not in ("", SKIP_REST):
            pair = bounds_of([f"{column.name}={answer}"])[column.name]
            drafted_column(column, str(column.type), bounds=pair)
        return answer

    return read


def _values(said: InterviewAnswers, columns: "Sequence[FileColumn]") -> InterviewAnswers:
    known = values_of(said.values)
    open_ones = [column for column in columns if column.type == "string" and column.name not in known]
    if not open_ones:
        return said
    _explain(
        "Which values?",
        "GROUP BY needs the values of a column, such as a,b,c. Every result shows all of them, even those that nobody "
        f"has. List only public values. Press Enter for none, or {SKIP_REST} to skip all columns that follow.",
    )
    found = []
    for column in open_ones:
        answer = _answer(column.name, None, _list(column))
        if answer == SKIP_REST:
            break
        found += [f"{column.name}={answer}"] if answer else []
    return replace(said, values=[*said.values, *found])


def _list(column: "FileColumn") -> Callable[[str], str]:
    def read(answer: str) -> str:
        if answer not in ("", SKIP_REST):
            drafted_column(column, str(column.type), values=values_of([f"{column.name}={answer}"])[column.name])
        return answer

    return read


def _sizes(said: InterviewAnswers, table: str) -> InterviewAnswers:
    if said.rows_at_most is None:
        rows = _ask(
            f"What is the most rows that {table} will ever have?",
            "Give a public figure with room to grow. A service sets the time of results by it, so that nobody learns "
            "from the clock. Press Enter to skip.",
            "",
            lambda answer: None if answer == "" else _whole(answer),
        )
        said = replace(said, rows_at_most=rows)
    if said.people is None:
        people = _ask(
            "About how many people are in it?",
            "Answer only if the number is public. Lapwing checks delta against it. Press Enter to skip.",
            "",
            lambda answer: None if answer == "" else _whole(answer),
        )
        said = replace(said, people=people)
    return said


def _budget(said: InterviewAnswers) -> InterviewAnswers:
    if said.epsilon is None:
        epsilon = _ask(
            "How much may all results together reveal? (epsilon)",
            "After all queries, the odds that somebody is in the data change at most by a factor of e to the epsilon. "
            f"With 3 that is {_times(3)} times, with 1 it is {_times(1)} times. If rare exceptions are allowed (delta, "
            f"asked next), it is at most twice that: {_times(3, USUAL_DELTA)} times with 3. An epsilon of 10 hardly "
            "protects. A smaller one is more private and less exact.",
            plain(USUAL_EPSILON),
            above_zero("Epsilon"),
        )
        said = replace(said, epsilon=epsilon)
    if said.delta is None:
        delta = _ask(
            "How often may that limit fail? (delta)",
            "A delta far below one in the number of people makes many queries much more exact. With 0, epsilon holds "
            "without exception.",
            plain(_usual_delta(said.people)),
            part_of_one("Delta"),
        )
        said = replace(said, delta=delta)
    if said.delta and said.measure is None and said.questions is None:
        questions = _ask(
            "About how many queries do you expect?",
            "The number decides how Lapwing adds up what queries reveal. Up to about ten, results are more exact if it "
            "adds up epsilons (pure, without a delta). For more, results are more exact with Gaussian differential "
            "privacy (gdp). You cannot change this later. The number is not a limit. If you do not know, press Enter "
            "for gdp.",
            "",
            lambda answer: None if answer == "" else _whole(answer),
        )
        said = replace(said, questions=questions)
    return said


def _keys(said: InterviewAnswers, unlisted: Sequence[str]) -> InterviewAnswers:
    if said.delta_keys is not None or not said.delta or not unlisted:
        return said
    part = _ask(
        "How much of delta is for finding values that are not listed? (delta_keys)",
        f"With a part of delta, GROUP BY can find the values of {', '.join(unlisted[:5])}"
        f"{' and others' if len(unlisted) > 5 else ''} that many people share. With 0, you cannot group by them.",
        plain(said.delta / 10),
        part_of_one("The part of delta"),
    )
    return replace(said, delta_keys=part)


def _title(said: InterviewAnswers) -> InterviewAnswers:
    if said.title is not None:
        return said

    def read(answer: str) -> str | None:
        with within("dataset"):
            return Texts(title=answer or None).title

    why = "Analysts and readers of results see it, such as Outpatient visits 2024. Press Enter for none."
    return replace(said, title=_ask("What is the title of the data set?", why, "", read))


def _usual_delta(people: int | None) -> Fraction:
    """Return a power of ten that is below a hundredth of one in so many people."""
    return USUAL_DELTA if people is None else min(USUAL_DELTA, Fraction(1, 10 ** (len(str(people)) + 2)))


def plain(number: Fraction) -> str:
    """Return a number as it is typed: 1e-6 rather than 1/1000000."""
    short = delta(number)
    return short if Fraction(short) == number else str(number)


# ---- how they are asked ----------------------------------------------------------------------------------------------


def _show(
    source: Path, columns: "Sequence[FileColumn]", ways: "Mapping[str, Sequence[Notation]] | None" = None
) -> None:
    table = new_table("column", "type", *(["written"] if ways else []))
    for column in columns:
        way = [text(_written(ways[column.name][0]) if column.name in ways else "")] if ways else []
        table.add_row(text(column.name), text(column.type or f"{column.stored_as}: left out"), *way)
    _write(text(f"{source.name} has {len(columns)} columns", "bold"), Text(), Fitted(table))


def _written(way: "Notation") -> str:
    """Return an example of a way of writing, and for a date its format."""
    if way.reading.format is not None:
        return f"{like(way.reading.format)} ({way.reading.format})"
    sign = f" {way.reading.currency}" if way.reading.currency else ""
    decimals = f"{way.reading.decimal_mark or '.'}56" if way.type != "integer" else ""
    return f"1{way.reading.thousands_mark or ''}234{decimals}{sign}"


def _times(epsilon: int, delta: Fraction = Fraction(0)) -> str:
    from lapwing.guarantee.meaning import odds_change_up  # here: only who is asked waits for it

    return size(odds_change_up(Fraction(epsilon), delta)[0])


def _ask(question: str, why: str, default: str | None, read: Callable[[str], Answer]) -> Answer:
    _explain(question, why)
    return _answer("", default, read)


def _explain(question: str, why: str) -> None:
    _write(Text(), text(question, "bold"), text(why, "dim"))


def _answer(label: str, default: str | None, read: Callable[[str], Answer]) -> Answer:
    """Return what is answered, asking again until it can be read."""
    usual = f"[{default}] " if default else ""
    while True:
        sys.stderr.write(f"{label} {usual}> ".lstrip())
        sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            complain("")  # so that what is said of it has a line of its own
            raise
        if not line:
            complain("")
            raise InvalidParameter("The input ended before the last question. Nothing was written.")
        answer = line.strip()
        if not answer and default is None and not label:
            complain("There is no default; please answer.")
            continue
        try:
            return read(answer or default or "")
        except LapwingError as error:
            complain_of(error)
            complain("Please answer again. To leave, press Ctrl-C; then nothing is written.")


def _write(*parts: RenderableType) -> None:
    sys.stderr.write(rendered(sys.stderr, *parts))


def one_of(answer: str, choices: Collection[str]) -> str:
    """Return an answer that is one of a few.

    Raises:
        InvalidParameter: For any other.
    """
    if answer.casefold() not in choices:
        raise InvalidParameter(f"{answer[:40]!r} is not one of {', '.join(choices)}.")
    return answer.casefold()


def _whole(answer: str) -> int:
    digits = re.sub(r"[,_ ]", "", answer)
    if not digits.isascii() or not digits.isdecimal() or int(digits) < 1:
        raise InvalidParameter(f"{answer[:40]!r} is not a whole number of 1 or more; write one like 100000.")
    return int(digits)


def _require_known(names: Sequence[str] | dict[str, str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidParameter(f"There is no column {name[:80]!r}. {meant('Columns', name, known)}")
