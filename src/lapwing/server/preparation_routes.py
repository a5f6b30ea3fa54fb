"""Routes of curators before a data set is registered: files, columns, a draft of a catalog, and what data are like."""

from typing import Annotated, Any, Final, Literal

from fastapi import Response
from pydantic import Field, StrictBool, StrictFloat, StrictInt

from lapwing.catalog.codebook_texts import ColumnTexts
from lapwing.catalog.dictionary import LONGEST, MOST_LABELS, OF_COLUMN
from lapwing.documents.preparation_document import CatalogDraft, CheckDocument, DataFileDocument, FileColumnsDocument
from lapwing.errors import CatalogError, DataFault, InvalidParameter, TooManyRequests
from lapwing.server.bodies import Amount, Body, Text, number
from lapwing.server.dataset_routes import DatasetBody
from lapwing.server.people import Caller
from lapwing.server.preparation import Stated
from lapwing.server.problems import may_raise
from lapwing.server.responses import described_by, json_response
from lapwing.server.routing import CURATOR, OfService, new_router

Path = Annotated[Text, Field(max_length=4096)]
Word = Annotated[Text, Field(max_length=1000)]


Ends = Annotated[list[Word], Field(min_length=2, max_length=2)]


class FileBody(Body):
    """A file, by its path in a folder of the service; which one, if there are several."""

    file: Path
    folder: Path | None = None


Code = Word | StrictInt | StrictFloat
"""A stored value; in a column of numbers, a text that is a number is that number."""
Mark = Annotated[Text, Field(max_length=20)]


class ReadingBody(Body):
    """How the stored values of a column are read, as in a catalog."""

    missing: Annotated[list[Code], Field(default_factory=list, max_length=1000)]
    recode: Annotated[dict[Word, Code | StrictBool], Field(max_length=1000)] | None = None
    format: Word | None = None
    decimal_mark: Mark | None = None
    thousands_mark: Mark | None = None
    currency: Mark | None = None

    def options(self) -> dict[str, object]:
        """Return what is said, by the names of `catalog.reading`."""
        return {name: said for name, said in self.model_dump().items() if said not in (None, [])}


class ColumnTextsBody(Body):
    """Texts of the data dictionary for a column, and labels by the listed value."""

    title: Word | None = None
    description: Annotated[Text, Field(max_length=LONGEST["description"])] | None = None
    unit: Word | None = None
    provenance: Annotated[Text, Field(max_length=LONGEST["provenance"])] | None = None
    labels: Annotated[dict[Word, Word], Field(default_factory=dict, max_length=MOST_LABELS)]

    def said(self) -> ColumnTexts:
        """Return the texts in the form of a codebook."""
        texts = {key: text for key in OF_COLUMN if (text := getattr(self, key)) is not None}
        return ColumnTexts(texts=texts, labels=self.labels)


class DraftBody(FileBody):
    """A file, and what the curator says of it in public, as `lapwing init` takes it."""

    name: Word | None = None
    privacy_unit: Word
    unit_title: Annotated[Text, Field(max_length=LONGEST["unit_title"])] | None = None
    epsilon: Amount
    delta: Amount = 0
    max_rows_per_unit: StrictInt | None = None
    people: StrictInt | None = None
    types: Annotated[dict[Word, Word], Field(default_factory=dict)]
    bounds: Annotated[dict[Word, Ends], Field(default_factory=dict)]
    values: Annotated[dict[Word, list[Word]], Field(default_factory=dict)]
    other: Annotated[dict[Word, Word], Field(default_factory=dict)]
    reading: Annotated[dict[Word, ReadingBody], Field(default_factory=dict)]
    texts: Annotated[dict[Word, ColumnTextsBody], Field(default_factory=dict)]
    left_out: Annotated[list[Word], Field(default_factory=list)]
    unreadable: Literal["null"] | None = None
    unreadable_columns: Annotated[dict[Word, Literal["null", "refuse"]], Field(default_factory=dict)]


FAULTS: Final = may_raise(InvalidParameter, CatalogError, DataFault)
router: Final = new_router(prefix="/v1", tags=["admin"])


@router.get("/files")
def files(service: OfService, caller: Caller = CURATOR) -> list[DataFileDocument]:
    """List the files in the folders of the service, of which a data set can be registered."""
    return service.preparation.files()


@router.post("/files/columns", openapi_extra=FAULTS)
def columns(service: OfService, body: FileBody, caller: Caller = CURATOR) -> FileColumnsDocument:
    """List the columns of a file, with their types as it declares them, or as its first rows look."""
    return service.preparation.columns(body.folder, body.file)


@router.post("/catalogs/draft", openapi_extra=FAULTS)
def draft(service: OfService, body: DraftBody, caller: Caller = CURATOR) -> CatalogDraft:
    """Draft a catalog of one file from the names and types in it, and what the curator says."""
    stated = Stated(
        name=body.name,
        privacy_unit=body.privacy_unit,
        unit_title=body.unit_title,
        epsilon=number(body.epsilon, "epsilon"),
        delta=number(body.delta, "delta"),
        max_rows_per_unit=body.max_rows_per_unit,
        people=body.people,
        types=body.types,
        bounds={name: (ends[0], ends[1]) for name, ends in body.bounds.items()},
        values=body.values,
        others=body.other,
        reading={name: reading.options() for name, reading in body.reading.items()},
        texts={name: texts.said() for name, texts in body.texts.items()},
        left_out=body.left_out,
        unreadable=body.unreadable,
        unreadable_columns=dict(body.unreadable_columns),
    )
    return service.preparation.drafted(body.folder, body.file, stated)


@router.post(
    "/catalogs/check",
    responses=described_by(CheckDocument),
    openapi_extra=may_raise(InvalidParameter, CatalogError, DataFault, TooManyRequests),
)
def check(service: OfService, body: DatasetBody, caller: Caller = CURATOR) -> Response:
    """Read all data that a catalog describes, and say what they are like: exact figures, private, kept nowhere."""
    found: Any = service.preparation.checked(body.catalog, body.folder, by=caller.name)
    return json_response(found)
