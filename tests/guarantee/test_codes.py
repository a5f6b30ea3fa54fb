"""What the page says as codes and values, which are the same in each language and stay when words change."""

import ast
import json
from pathlib import Path

import pytest

import lapwing
from lapwing.guarantee.page import Page
from lapwing.guarantee.rendering import as_document, page_from
from tests.guarantee.test_sections import GDP, PURE, opened

SAID_IN = ("guarantee/sections.py", "guarantee/plain_words.py", "guarantee/described.py", "server/dataset_routes.py")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "guarantee_codes.txt"


def codes_in_source() -> list[tuple[str, str]]:
    """Return the codes that sentences are given, each with its template."""
    found = []
    for name in SAID_IN:
        tree = ast.parse((Path(lapwing.__file__).parent / name).read_text(encoding="utf-8"))
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
        for call in (call for call in calls if call.func.id in ("say", "say_count")):  # type: ignore[attr-defined]
            texts = [part.value for part in call.args if isinstance(part, ast.Constant)]
            codes = [word.value for word in call.keywords if word.arg == "code"]
            found += [(code.value, str(texts[0])) for code in codes if isinstance(code, ast.Constant)]
    return found  # type: ignore[return-value]


def test_codes_are_only_added() -> None:
    """Programs read them: the fixture gains lines, and loses none."""
    assert {code for code, _ in codes_in_source()} == set(FIXTURE.read_text(encoding="utf-8").split())


def pages(folder: Path) -> list[Page]:
    found = []
    for place, budget in enumerate((GDP, f'{PURE}\nneighbouring = "replace_one"')):
        here = folder / str(place)
        here.mkdir()
        with opened(here, budget) as session:
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
            found.append(session.guarantee(["Everybody."]))
    return found


def test_each_sentence_has_its_code_and_its_values(tmp_path: Path) -> None:
    for page in pages(tmp_path):
        for section in as_document(page)["sections"]:
            assert section["code"], section["title"]
            assert len(section["statements"]) == len(section["paragraphs"])
            assert len(section["row_codes"]) == len(section["rows"])
            for paragraph, statements in zip(section["paragraphs"], section["statements"], strict=True):
                for statement in statements:
                    assert statement["code"], paragraph
                    assert [one for one in statement["values"].values() if one not in paragraph] == []
                    assert statement["code"] != "text" or statement["values"] == {"text": paragraph}


@pytest.mark.parametrize("place", [0, 1])
def test_programs_read_the_promise_without_its_words(tmp_path: Path, place: int) -> None:
    document = json.loads(json.dumps(as_document(pages(tmp_path)[place])))
    promise = document["promise"]
    assert {name: promise[name] for name in ("epsilon", "delta", "measure", "neighbouring", "closed")} == {
        "epsilon": "3",
        "delta": ("0.000001", "0")[place],
        "measure": ("gdp", "pure")[place],
        "neighbouring": ("add_remove", "replace_one")[place],
        "closed": False,
    }
    assert (promise["spent"] == "0.5") is (place == 1)
    by_code = {section["code"]: section for section in document["sections"]}
    said = {
        one["code"]: one["values"] for section in document["sections"] for text in section["statements"] for one in text
    }
    assert said["queries_charged"] == {"count": "1", "version": "1"}
    assert said["guess_without_results"] == {}
    assert ("presence_sought" in said, "contents_sought" in said) == (place == 0, place == 1)
    rows = dict(zip(by_code["promise"]["row_codes"], by_code["promise"]["rows"], strict=True))
    assert rows["promise"][1].startswith("ε = 3")


def test_a_page_that_was_read_again_is_the_same(tmp_path: Path) -> None:
    for page in pages(tmp_path):
        document = as_document(page)
        assert as_document(page_from(json.loads(json.dumps(document)))) == document


def test_a_page_of_a_later_service_is_read_without_what_it_adds(tmp_path: Path) -> None:
    page = pages(tmp_path)[0]
    document = json.loads(json.dumps(as_document(page)))
    document["promise"]["later"] = "1"
    document["sections"][0]["statements"][0][0]["later"] = "1"
    assert as_document(page_from(document)) == as_document(page)


def test_a_page_of_an_older_service_has_no_codes(tmp_path: Path) -> None:
    document = json.loads(json.dumps(as_document(pages(tmp_path)[0])))
    del document["promise"]
    for section in document["sections"]:
        del section["code"], section["statements"], section["row_codes"]
    page = page_from(document)
    assert page.figures is None
    assert as_document(page)["sections"][0]["statements"] == []
