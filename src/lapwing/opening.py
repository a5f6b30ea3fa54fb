"""How a session is opened: by a catalog, or by protecting a file; and how its data are taken anew."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, overload

from lapwing.catalog.column_checks import default_length
from lapwing.catalog.condition import in_words
from lapwing.catalog.model import Catalog
from lapwing.catalog.reading import ColumnReading
from lapwing.catalog.source_address import is_address, name_of
from lapwing.catalog.source_names import catalog_beside, holds_no_types
from lapwing.catalog.table import Column
from lapwing.catalog.toml import load, write
from lapwing.errors import CatalogError, CatalogMismatch, InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.ledger.parts import Parts
from lapwing.privacy.measures import Number
from lapwing.release.account import open_access, registration
from lapwing.session import Session

if TYPE_CHECKING:
    from lapwing.catalog.draft import Edge, Wanted
    from lapwing.client import RemoteSession


def open_session(
    catalog: Catalog,
    *,
    entropy: Entropy | None = None,
    clock: Callable[[], datetime] | None = None,
    unreadable: str | None = None,
) -> Session:
    """Open a session on a catalog; a new ledger takes the data as they are as version 1, if they can be accepted.

    Args:
        clock: Returns the time in UTC, which queries see that look at the clock.
        unreadable: "null" accepts values that are not of their declared type, if the ledger is new.
    """
    if not catalog.tables:
        names = ", ".join(graph.name for graph in catalog.graphs)
        raise CatalogError(
            f"The catalog protects no people, only edges of {names}; open these with lapwing.graphs.connect."
        )
    access = open_access(
        catalog, registration(catalog), parts=Parts.of_catalog(catalog), entropy=entropy, unreadable=unreadable
    )
    held = (catalog, access.engine, access.ledger, access.entropy, access.principal, access.public)
    return Session(*held, clock=clock)


@overload
def connect(catalog: str | Path = "lapwing.toml", *, unreadable: str | None = None) -> Session: ...


@overload
def connect(catalog: str, *, token: str, dataset: str | None = None) -> "RemoteSession": ...


def connect(
    catalog: str | Path = "lapwing.toml",
    *,
    token: str | None = None,
    dataset: str | None = None,
    unreadable: str | None = None,
) -> "Session | RemoteSession":
    """Open the data set that a catalog describes, or one that a server holds.

    Args:
        catalog: the path of a TOML file, as `lapwing init` writes it; or with a token the address of a server.
        token: by which the server knows who asks.
        dataset: which of its data sets; needed if one may see several.
        unreadable: "null" lets a new ledger accept values that are not of their declared type, which count as NULL or
            are rounded. `Session.accept_data` accepts later data.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
        CatalogMismatch: If the catalog contradicts the ledger.
        DataFault: If the data cannot be read.
        LedgerFault: If the ledger cannot be trusted or written.
        NotAuthorised: Of a server.
        NotFound: Of a server.
        ServiceFault: Of a server.
    """
    remote = isinstance(catalog, str) and catalog.startswith(("http://", "https://"))
    if token is not None and remote:
        # Here: a local session needs neither HTTP nor what a server's answers are read by, a tenth of the start.
        from lapwing.client import RemoteSession
        from lapwing.client.transport import ServerConnection

        return RemoteSession(ServerConnection(str(catalog), token), dataset)
    if remote:
        raise InvalidParameter("A server needs a token; give it with token=.")
    if token is not None or dataset is not None:
        raise InvalidParameter(
            f"{str(catalog)!r:.60} is not the address of a server, which token and dataset need; write one like "
            "https://dp.example.org."
        )
    return open_session(load(Path(catalog)), unreadable=unreadable)


def refresh_data(catalog: str | Path | Catalog = "lapwing.toml", *, unreadable: str | None = None) -> int:
    """Fetch what the sources of a catalog hold now, and make it the current version; return its number.

    The curator's act, which a schedule may run. Only what was delivered whole, and passes the checks of every version,
    becomes the current one. Until then queries are answered from the version before. The number stays as it is if the
    rows are the same, or no protected table comes from a source. Public tables have no versions, and later sessions
    read the new ones. Spending stays with the people.

    Args:
        catalog: The path of a catalog, or one that was read.
        unreadable: "null" accepts values that are not of their declared type, which count as NULL or are rounded.

    Guarantee:
        Nothing is charged; on any error the version before stays the current one, and answers.

    Raises:
        DataFault: For a source that does not deliver, or rows that are not accepted: `lapwing data check` says which
            values they are.
        InvalidParameter: If no table comes from a source.
    """
    from lapwing.sources import fetch  # here: few sessions fetch their data

    described = catalog if isinstance(catalog, Catalog) else load(Path(catalog))
    if described.from_sources or not described.at_addresses:
        fetch(described)
    with open_session(described, unreadable=unreadable) as session:
        if not any(is_address(table.source) for table in described.tables):
            return session.budget(history=False).version
        return session.accept_data(unreadable=unreadable)


def protect(
    source: str | Path,
    *,
    privacy_unit: str,
    epsilon: Number,
    delta: Number = 0,
    max_rows_per_unit: int | None = None,
    types: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple["Edge", "Edge"]] | None = None,
    domains: Mapping[str, Sequence[object]] | None = None,
    measure: str | None = None,
    questions: int | None = None,
    neighbouring: str = "add_remove",
    unreadable: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    where: "Wanted | None" = None,
    cluster: str | None = None,
    missing: Mapping[str, Sequence[object]] | None = None,
    recode: Mapping[str, Mapping[str, object] | Mapping[int, object]] | None = None,
    format: Mapping[str, str] | None = None,
    decimal_mark: Mapping[str, str] | None = None,
    thousands_mark: Mapping[str, str] | None = None,
    currency: Mapping[str, str] | None = None,
    codebook: str | Path | None = None,
) -> Session:
    """Put one file, or several that are one table, behind differential privacy; catalog and ledger stand next to it.

    The curator's call: types, bounds and domains must be public knowledge. If you take them from
    the data, they are outside the guarantee.

    Args:
        source: a file of Parquet, CSV, TSV or JSON lines, a folder of these, or a pattern like `visits-*.csv`; the
            table has its name. Or the address of a table in a database or a lake, like
            `postgresql://reader@db.example.org/clinic#public.visits`. Lapwing fetches it the first time, and
            `refresh_data` from then on. Catalog and ledger are then in the current folder.
        privacy_unit: the column that says whose row it is, or "row".
        epsilon: the budget of everything ever asked; delta = 0 for pure differential privacy.
        delta: As `epsilon`.
        max_rows_per_unit: queries use no further rows of a unit.
        types: of columns of a CSV file, which holds none, or of a source: `integer`, `float`, `boolean`, `string`,
            `date`, `timestamp`, or `decimal:0.01` with its step. A column without one is text: no row is read to guess
            it. JSON lines do not even name columns before their rows: all that are to be seen are given here.
        bounds: public (lower, upper) of numeric columns. For a file that is protected already, omitted values stay as
            in its catalog; so do types.
        domains: public values of columns to group by, as `bounds`.
        measure: what the ledger adds up: "gdp" unless given, "pure" without a delta.
        questions: instead, about how many are planned. This takes the measure in which this many counts are most
            accurate; "pure" then has no delta.
        delimiter: how a CSV file is written, where its name and its first line do not say it right:
            such as ";", "'" and "windows-1252" (`text_files.ENCODINGS`).
        quote: As `delimiter`.
        encoding: As `delimiter`.
        where: public conditions on the rows of a source: column → a list of values, or a pair (least, greatest), of
            which one may be None. The source leaves out all other rows.
        cluster: the master of Spark, like spark://host:7077 or local[*], that answers where Parquet files are. It sees
            them by the same paths. Unless given, DuckDB answers here.
        unreadable: "null" to let values that are not of their type count as NULL, and fractions of integers be rounded.
        missing: column → stored values that stand for none, like [-99, "NA"]; of the column "*", in every column.
        recode: column → stored values, each with the value that it stands for.
        format: column → how its dates are written, like "%m/%d/%Y".
        decimal_mark: column → how its numbers are written. All of these are applied before bounds (`catalog.reading`).
        thousands_mark: As `decimal_mark`.
        currency: As `decimal_mark`.
        codebook: a file that says all of this of columns (`catalog.codebook`); a parameter goes before it.

    Raises:
        DataFault: For a file with such values otherwise: `lapwing data check` says which they are.
        CatalogMismatch: If the file, or another of the same stem, is already protected with another unit, epsilon,
            delta or measure; nothing is changed then. Types, bounds and domains may change: the ledger stays.
    """
    # Here: they load Arrow, which no session needs.
    from lapwing.catalog.codebook import Codebook, combined, read_codebook
    from lapwing.catalog.codebook_texts import with_fitting_labels, with_texts
    from lapwing.catalog.draft import draft
    from lapwing.catalog.file_columns import found_text, spelled
    from lapwing.catalog.several_files import named, partition_keys
    from lapwing.privacy.measures import PureDP
    from lapwing.privacy.plans import cheapest
    from lapwing.sources import fetch_if_never, offered_at

    said = {"missing": missing, "recode": recode, "format": format, "decimal_mark": decimal_mark}
    said |= {"thousands_mark": thousands_mark, "currency": currency}
    reading: dict[str, dict[str, object]] = {}
    for option, columns in said.items():
        for name, content in (columns or {}).items():
            reading.setdefault(name, {})[option] = content
    book = Codebook() if codebook is None else read_codebook(Path(codebook))
    if codebook is not None:
        types, bounds = {**book.types, **(types or {})}, {**book.bounds, **(bounds or {})}
        domains, reading = {**book.values, **(domains or {})}, combined(book.reading, reading)
    if questions is not None:
        if measure is not None:
            raise InvalidParameter("measure and questions are given together; questions chooses the measure.")
        measure = cheapest(questions, max_rows_per_unit or 1, epsilon, delta).kind
        delta = 0 if measure == PureDP.kind else delta
    address = str(source) if is_address(str(source)) else None
    offered = None if address is None else offered_at(address, Path())
    path = named(Path(source)) if address is None else Path(name_of(address))
    beside = catalog_beside(path)
    before = load(beside) if beside.exists() else None
    known = before.tables[0].columns if before is not None else ()
    listed = {c.name: c.values for c in known if c.values is not None and c.type != "boolean"}
    bounded = {c.name: (c.lower, c.upper) for c in known if c.lower is not None and c.upper is not None}
    typed = {c.name: spelled(c) for c in known if address or holds_no_types(path) or c.name in partition_keys(path)}
    given = {"delimiter": delimiter, "quote": quote, "encoding": encoding}
    again = before is not None and not any(given.values())
    text = before.tables[0].text if before is not None and again else found_text(path, **given)
    known_unreadable = before.tables[0].unreadable if before is not None else None
    drafted = draft(
        address or path,
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        delta=delta,
        max_rows_per_unit=max_rows_per_unit,
        types=typed if types is None else types,
        bounds=bounded if bounds is None else bounds,
        values=listed if domains is None else domains,
        measure=measure,
        neighbouring=neighbouring,
        unreadable=known_unreadable if unreadable is None else unreadable,
        text=text,
        offered=offered,
        where=where,
        cluster=cluster if cluster is not None or before is None else before.cluster,
        max_length=book.max_length,
        others=book.others,
        reading=reading,
    ).catalog
    drafted = with_texts(drafted, book.texts)
    if before is not None and where is None and address is not None:
        drafted = drafted.with_table(replace(drafted.tables[0], where=before.tables[0].where))
    if offered is not None:
        fetch_if_never(drafted)
    if before is not None:
        _require_same(before, drafted)
        rows = drafted.tables[0].max_rows_per_unit, drafted.tables[0].unreadable, text
        same = rows == (before.tables[0].max_rows_per_unit, known_unreadable, before.tables[0].text)
        if types is None and bounds is None and domains is None and not reading and not book.texts and same:
            return open_session(before)
        drafted = _updated(before, drafted, types or {}, reading_given=bool(reading))
        drafted = with_texts(with_fitting_labels(drafted), book.texts)
    session = open_session(replace(drafted, file=beside))
    if before != drafted:
        write(drafted, beside, overwrite=True)
    return session


def _updated(before: Catalog, drafted: Catalog, types: Mapping[str, str], *, reading_given: bool) -> Catalog:
    """Return a catalog with the types, bounds, values and rows of a new draft, and all else that it said before."""
    known = {column.name: column for column in before.tables[0].columns}
    columns = tuple(
        _merged(
            known.get(column.name),
            column,
            step_given=":" in types.get(column.name, ""),
            reading=column.reading if reading_given else getattr(known.get(column.name), "reading", None),
        )
        for column in drafted.tables[0].columns
    )
    new = drafted.tables[0]
    table = replace(
        before.tables[0],
        columns=columns,
        max_rows_per_unit=new.max_rows_per_unit,
        unreadable=new.unreadable,
        text=new.text,
    )
    return before.with_table(table)


def _merged(before: Column | None, drafted: Column, *, step_given: bool, reading: ColumnReading | None) -> Column:
    if before is None:
        return drafted
    if before.type != drafted.type:
        return replace(drafted, unreadable=before.unreadable)
    same = (before.lower, before.upper) == (drafted.lower, drafted.upper)
    return replace(
        before,
        lower=drafted.lower,
        upper=drafted.upper,
        step=before.step if same and not step_given else drafted.step,
        values=drafted.values,
        other=drafted.other or (before.other if drafted.values is not None else None),
        max_length=None if before.max_length == default_length(before) else before.max_length,
        reading=reading,
    )


def _require_same(before: Catalog, after: Catalog) -> None:
    """Refuse a second protection of the same file that promises something else."""
    old, new = before.tables[0], after.tables[0]
    pairs = [
        ("source", old.source, new.source),
        ("where", in_words(old.where) or "everything", in_words(new.where) or "everything"),
        ("privacy_unit", old.privacy_unit, new.privacy_unit),
        ("engine", before.engine, after.engine),
        ("epsilon", before.budget.epsilon, after.budget.epsilon),
        ("delta", before.budget.delta, after.budget.delta),
        ("measure", before.budget.measure, after.budget.measure),
        ("neighbouring", before.budget.neighbouring, after.budget.neighbouring),
    ]
    different = [f"{name} was {was} and is now {now}" for name, was, now in pairs if was != now]
    if different:
        raise CatalogMismatch(
            f"{before.tables[0].source} is already protected: {'; '.join(different)}. Nothing was changed. "
            "Open it with lapwing.connect, or protect it as before."
        )
