"""What a curator looks at before a data set is registered: files, their columns, a draft of a catalog, and the data.

Only files in the folders of the service may be named, as for a registration (`server.registration`). Names and types
are read from files as `lapwing init` reads them. A check reads every row, as `lapwing data check` does: its figures are
exact and private, for curators alone, and nothing keeps them. One check runs at a time in a process, as it may take all
memory and time that a question may; the audit log says who looked at which data.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, final

from lapwing.catalog.checks import ROW
from lapwing.catalog.codebook_texts import ColumnTexts, with_texts, with_unit_title
from lapwing.catalog.draft import draft
from lapwing.catalog.file_columns import FileColumn, found_text, read_columns
from lapwing.catalog.guessed_writing import Writing, guessed_writing
from lapwing.catalog.model import Catalog
from lapwing.catalog.source_names import DATA, ending, holds_no_types, is_text
from lapwing.catalog.text_files import TextFormat, seems_encoded
from lapwing.catalog.toml import dumps
from lapwing.documents.check_document import as_document, code_findings, findings
from lapwing.documents.preparation_document import (
    CatalogDraft,
    CheckDocument,
    ColumnDocument,
    DataFileDocument,
    FileColumnsDocument,
)
from lapwing.engines import open_checking_engine
from lapwing.errors import CatalogError, InvalidParameter, TooManyRequests
from lapwing.server.audit_log import note
from lapwing.server.draft_faults import field_at_fault
from lapwing.server.faulty_field import at_field
from lapwing.server.registration import SUFFIX, DatasetRegistry, path_inside
from lapwing.server.store import ServiceStore

MOST_FILES: Final = 1000
LOOKED_AT: Final = 64
"""Mi characters of a text that are looked at for its encoding."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a curator says of a file in public, as `catalog.draft` takes it; `name` is that of the data set.

    Args:
        unit_title: A word for one of those whom the privacy unit names.
        left_out: Columns that the catalog does not have, so that no query can use them.
    """

    name: str | None
    privacy_unit: str
    epsilon: Fraction
    delta: Fraction
    max_rows_per_unit: int | None
    people: int | None
    types: Mapping[str, str]
    bounds: Mapping[str, tuple[str, str]]
    values: Mapping[str, Sequence[str]]
    others: Mapping[str, str]
    reading: Mapping[str, Mapping[str, object]]
    texts: Mapping[str, ColumnTexts]
    unit_title: str | None = None
    left_out: Sequence[str] = ()
    unreadable: Literal["null"] | None = None
    unreadable_columns: Mapping[str, str] = field(default_factory=dict)


@final
class DatasetPreparation:
    """Looks at files in the folders of a service, for who is about to register one."""

    def __init__(self, registry: DatasetRegistry, store: ServiceStore) -> None:
        self._registry, self._store = registry, store
        self._checking = threading.Lock()

    def files(self) -> list[DataFileDocument]:
        """Return the files of data in the folders, by name; the first so many of them."""
        files: list[DataFileDocument] = [
            {"folder": str(folder), "file": file.relative_to(folder).as_posix()}
            for folder in self._registry.folders
            for file in sorted(folder.rglob("*"))
            if ending(file) and not file.name.startswith(".") and not file.name.endswith(SUFFIX) and file.is_file()
        ]
        return files[:MOST_FILES]

    def columns(self, folder: str | None, file: str) -> FileColumnsDocument:
        """Return the columns of a file as it declares them, and of one without types what its first rows look like.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
            DataFault: If the data cannot be read.
        """
        path = self._path(folder, file)
        untyped = holds_no_types(path)
        encoding = _encoding(path)
        text = found_text(path, encoding=encoding)
        guess = guessed_writing(path, text) if untyped else Writing(types={}, ways={}, codes={}, words={})
        columns = read_columns(path, guess.types, text)
        offered = [_column(column, guess) for column in columns]
        return {"declared": not untyped, "encoding": encoding, "columns": offered}

    def drafted(self, folder: str | None, file: str, stated: Stated) -> CatalogDraft:
        """Return a draft of a catalog, with notes on what to look at.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
            DataFault: If the data cannot be read.
        """
        path, base = self._path(folder, file), self._registry.base(folder)
        untyped, text = holds_no_types(path), found_text(path, encoding=_encoding(path))

        def drafted(stated: Stated) -> CatalogDraft:
            return _drafted(path, base, stated, text, untyped=untyped)

        try:
            return drafted(stated)
        except (InvalidParameter, CatalogError) as error:
            field = field_at_fault(stated, drafted)
            raise error if field is None else at_field(field, error) from None

    def checked(self, document: Mapping[str, object] | str, folder: str | None, *, by: str) -> CheckDocument:
        """Return what the data are like that a catalog describes: exact and private figures, for curators alone.

        Raises:
            InvalidParameter: If a value is not allowed.
            CatalogError: If the catalog says what cannot be meant.
            DataFault: If the data cannot be read.
            TooManyRequests: While another check runs.
        """
        catalog = self._registry.read(document, folder)
        self._registry.require_free(catalog)
        return self.look_at(catalog, by=by)

    def look_at(self, catalog: Catalog, *, by: str) -> CheckDocument:
        """Return what the data of a catalog are like, which may be that of a data set that is served.

        Raises:
            CatalogError: If the catalog says what cannot be meant.
            DataFault: If the data cannot be read.
            TooManyRequests: While another check runs.
        """
        if not self._checking.acquire(blocking=False):
            raise TooManyRequests("Lapwing is checking other data. Nothing was changed. Try again when that has ended.")
        try:
            with self._store.transaction() as connection:
                sources = [table.source for table in catalog.tables]
                note(connection, by, "data looked at", catalog.name, files=sources)
            return _checked(catalog)
        finally:
            self._checking.release()

    def _path(self, folder: str | None, file: str) -> Path:
        return path_inside("file", file, self._registry.base(folder), self._registry.folders, endings=DATA)


def _encoding(path: Path) -> str | None:
    """Return the encoding that a text seems to have, by its beginning: a draft names it, for a curator to judge."""
    with suppress(OSError):  # whoever reads its first line says what is wrong
        return seems_encoded(path, most=LOOKED_AT) if is_text(path) else None
    return None


def _drafted(path: Path, base: Path, stated: Stated, text: TextFormat | None, *, untyped: bool) -> CatalogDraft:
    stated = _without(stated)
    made = draft(
        path,
        privacy_unit=stated.privacy_unit,
        epsilon=stated.epsilon,
        delta=stated.delta,
        max_rows_per_unit=stated.max_rows_per_unit,
        people=stated.people,
        types=stated.types if untyped else None,
        bounds=stated.bounds,
        values=stated.values,
        others=stated.others,
        reading=stated.reading,
        unreadable=stated.unreadable,
        unreadable_columns=stated.unreadable_columns,
        left_out=stated.left_out,
        folder=base,
        text=text,
    )
    catalog, name = with_texts(made.catalog, stated.texts, strict=True), stated.name
    if stated.unit_title is not None and stated.privacy_unit != ROW:
        catalog = with_unit_title(catalog, stated.unit_title)
    if name is not None:
        catalog = replace(catalog, name=name, ledger=f"sqlite:{name}.lapwing.db")
    return {"catalog": dumps(catalog), "notes": list(made.notes)}


def _without(stated: Stated) -> Stated:
    """Return the statements but those about columns that are left out."""

    def rest(said: Mapping[str, Any]) -> dict[str, Any]:
        return {name: one for name, one in said.items() if name not in stated.left_out}

    types, bounds, values = rest(stated.types), rest(stated.bounds), rest(stated.values)
    others, reading, texts = rest(stated.others), rest(stated.reading), rest(stated.texts)
    if stated.privacy_unit in stated.left_out and stated.privacy_unit in stated.types:
        types[stated.privacy_unit] = stated.types[stated.privacy_unit]
    stated = replace(stated, unreadable_columns=rest(stated.unreadable_columns))
    return replace(stated, types=types, bounds=bounds, values=values, others=others, reading=reading, texts=texts)


def _checked(catalog: Catalog) -> CheckDocument:
    with closing(open_checking_engine(catalog)) as engine:
        checks = [engine.check(table) for table in catalog.tables]
    return {
        "private": True,
        "passes": all(check.passes for check in checks),
        "tables": [
            {
                **as_document(check),
                "findings": [
                    {"of": name, "said": said, **({"codes": True} if said in codes else {})}
                    for name, said in findings(check)
                ],
            }
            for check, codes in ((check, set(code_findings(check))) for check in checks)
        ],
    }


def _column(column: FileColumn, guess: Writing) -> ColumnDocument:
    ways, codes = guess.ways.get(column.name, ()), guess.codes.get(column.name, ())
    reading = {**(dict(ways[0].entries) if ways else {}), **({"missing": list(codes)} if codes else {})}
    type_ = guess.types.get(column.name, column.type)  # of a file without types, as a draft takes it: with its step
    return {"name": column.name, "type": type_, "stored_as": column.stored_as, "reading": reading}
