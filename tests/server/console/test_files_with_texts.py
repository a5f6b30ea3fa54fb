"""Files of a result have the texts of the data dictionary: as metadata of fields, and labels for codes on request."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.answer.key_texts import label_of
from lapwing.documents.tables_with_texts import with_labels_for_codes, with_texts
from tests.server.console.test_asking import priced
from tests.support.server.browsing import Visitor, visitor
from tests.support.server.world import World

HOSTILE: Final = '=1+1","<b>\u00e9'
LABELS: Final = {"1": HOSTILE, "2": "female"}
SEX: Final = {"title": "Sex at birth", "unit": "code", "labels": LABELS}
DOCUMENT: Final[Mapping[str, Any]] = {
    "rows": [{"sex": value, "paid": True, "n": 5} for value in (2, 1, 3, None)],
    "labels": {"sex": LABELS, "paid": {"true": "yes"}},
    "texts": {"sex": SEX, "paid": {"labels": {"true": "yes"}}, "gone": {"title": "no column of it"}},
}
TABLE: Final = pa.table({"sex": [2, 1, 3, None], "paid": [True] * 4, "n": [5] * 4})


def test_fields_have_the_texts_as_metadata() -> None:
    described = with_texts(TABLE, DOCUMENT)
    assert described.equals(TABLE)
    metadata = described.schema.field("sex").metadata
    assert (metadata[b"title"], metadata[b"unit"]) == (b"Sex at birth", b"code")
    assert json.loads(metadata[b"labels"]) == LABELS
    assert described.schema.field("n").metadata is None
    assert with_texts(TABLE, {}).schema.equals(TABLE.schema, check_metadata=True)


def test_labels_stand_for_codes_and_other_values_stay() -> None:
    labelled = with_labels_for_codes(TABLE, DOCUMENT)
    assert labelled.column("sex").to_pylist() == ["female", HOSTILE, "3", None]
    assert labelled.column("paid").to_pylist() == ["yes"] * 4
    assert labelled.column("n").equals(TABLE.column("n"))
    assert [label_of(DOCUMENT, "sex", row["sex"]) for row in DOCUMENT["rows"]] == ["female", HOSTILE, None, None]


@pytest.mark.long
def test_files_of_a_result_have_what_the_catalog_says_now(alice: Visitor) -> None:
    world: World = alice.world
    world.catalog_file()
    answer = alice.submit(priced(alice), "/ask/answer").path.partition("?")[0]
    before = alice.go(f"{answer}/file.csv").content
    assert b"labels=1" not in alice.go(answer).content
    assert f"ID {answer.rpartition('/')[2]}." in alice.go(answer).text
    known = world.ask("GET", "/v1/datasets/open/catalog", "carol").document
    said = f'title = "Plan", values = [{{value = "a", label = {json.dumps(HOSTILE)}}}, "b"]'
    text = known["catalog"].replace('values = ["a", "b"]', said)
    assert text != known["catalog"]
    body = {"catalog": text, "was": known["state"]}
    assert world.ask("PUT", "/v1/datasets/open/catalog", "carol", body).status == 200
    assert b"file.csv?labels=1" in alice.go(answer).content
    assert alice.go(f"{answer}/file.csv").content == before  # codes, unless labels are asked for
    rows = list(csv.DictReader(io.StringIO(alice.go(f"{answer}/file.csv?labels=1").content.decode())))
    assert [row["plan"] for row in rows] == [f"'{HOSTILE}", "b"]  # no formula of a spreadsheet
    tables = (
        pq.read_table(io.BytesIO(alice.go(f"{answer}/file.parquet").content)),
        pa.ipc.open_stream(alice.go(f"{answer}/file.arrow").content).read_all(),
    )
    for table in tables:
        metadata = table.schema.field("plan").metadata
        assert (metadata[b"title"], json.loads(metadata[b"labels"])) == (b"Plan", {"a": HOSTILE})
        assert table.column("plan").to_pylist() == ["a", "b"]
    assert visitor(world, "bob").go(f"{answer}/file.csv?labels=1").status == 404
