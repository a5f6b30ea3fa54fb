"""How numbers and dates are written is recognised from examples, and only as a catalog can say it."""

from pathlib import Path

import pytest

from lapwing.catalog.guessed_writing import guessed_writing
from lapwing.catalog.text_files import first_line_says
from lapwing.catalog.ways_of_writing import ways


@pytest.mark.parametrize(
    ("texts", "kind", "entries"),
    [
        (["19.02.2025", "1.3.2025"], "date", {"format": "%d.%m.%Y"}),
        (["19.02.25", "31.12.99"], "date", {"format": "%d.%m.%y"}),
        (["2/13/2025", "12/1/2025"], "date", {"format": "%m/%d/%Y"}),
        (["13/2/2025", "1/12/2025"], "date", {"format": "%d/%m/%Y"}),
        (["19.02.2025 08:15", "1.3.2025 23:59"], "timestamp", {"format": "%d.%m.%Y %H:%M"}),
        (["1.017,68 €", "-8,5 €"], "decimal:0.01", {"decimal_mark": ",", "thousands_mark": ".", "currency": "€"}),
        (["3,5", "12"], "decimal:0.1", {"decimal_mark": ","}),
        (["1,017", "12"], "integer", {"thousands_mark": ","}),
        (["1 017,5", "12"], "decimal:0.1", {"decimal_mark": ",", "thousands_mark": " "}),
        (["CHF 1'017.50"], "decimal:0.01", {"thousands_mark": "'", "currency": "CHF"}),
        (["$7", "$12.50"], "decimal:0.01", {"currency": "$"}),
    ],
)
def test_the_likeliest_way(texts: list[str], kind: str, entries: dict[str, str]) -> None:
    first = ways(texts)[0]
    assert (first.type, dict(first.entries)) == (kind, entries)


@pytest.mark.parametrize(
    "texts", [[], ["32.13.2025"], ["19.02.2025", "2025-02-19"], ["€5", "$5"], ["1,2,3"], ["Bonn"], ["12", "1.5"]]
)
def test_what_no_catalog_can_say_is_no_way(texts: list[str]) -> None:
    assert ways(texts) == ()


def test_what_examples_do_not_tell_apart() -> None:
    assert [way.reading.format for way in ways(["3/5/2024"])] == ["%m/%d/%Y", "%d/%m/%Y"]
    assert [way.type for way in ways(["1,017"])] == ["integer", "decimal:0.001"]


def test_a_file_is_recognised_with_its_codes(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("k;n;d;b;t;z\n1;NA;19.02.2025;1.017,68 €;Bonn;01234\n2;5;NA;8,00 €;k.A.;22222\n", encoding="utf-8")
    guess = guessed_writing(file, first_line_says(file))
    assert guess.types == {
        "k": "integer",
        "n": "integer",
        "d": "date",
        "b": "decimal:0.01",
        "t": "string",
        "z": "string",
    }
    assert (set(guess.ways), set(guess.missing)) == ({"d", "b"}, {"NA", "k.A."})


def test_one_word_among_many_numbers_may_mean_missing(tmp_path: Path) -> None:
    """Only in its own column, as it may be a value in others; and among few numbers it is a value like them."""
    file = tmp_path / "a.csv"
    lines = [f"{n};{n},5;{n};{n if n < 5 else 'x'};unknown" for n in range(1, 10)]
    file.write_text("\n".join(["k;cost;age;few;place", *lines, "10;unknown;NA;3;there"]), encoding="utf-8")
    guess = guessed_writing(file, first_line_says(file))
    assert guess.types == {"k": "integer", "cost": "decimal:0.1", "age": "integer", "few": "string", "place": "string"}
    assert (guess.words, guess.missing) == ({"cost": ("unknown",)}, ("NA",))
    assert guess.codes == {"cost": ("unknown",), "age": ("NA",)}
