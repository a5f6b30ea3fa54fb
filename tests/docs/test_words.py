"""No folder of the documentation grows: what is added to one page is taken from another, or links to what is there."""

import json

import doc_words

BEFORE = json.loads(doc_words.BASELINE.read_text(encoding="utf-8"))


def test_no_folder_of_the_documentation_grows() -> None:
    assert not doc_words.grown(doc_words.by_folder(doc_words.pages()), BEFORE)


def test_growth_is_noticed() -> None:
    longer = BEFORE | {"how-to": BEFORE["how-to"] + doc_words.ROOM + 1, "new": 10_000}
    assert len(doc_words.grown(longer, BEFORE)) == 1
