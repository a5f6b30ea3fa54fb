"""Where statements end, what they are, and that no text breaks the one who looks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.server.pgwire.settings import options_of
from lapwing.server.pgwire.statements import SqlStatement, copy_of, parameter_types, split


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" ; -- nothing;\n ; /* a; /* b; */ c; */ ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\" , E'\\';', $$;$$, $a$;$$;$a$; x", ["SELECT ';', \";\" , E'\\';', $$;$$, $a$;$$;$a$", "x"]),
        ("SELECT 'it''s;'; x", ["SELECT 'it''s;'", "x"]),
        ("SELECT a -- b; c\n, d; x", ["SELECT a -- b; c\n, d", "x"]),
        ("SELECT 'open; x", ["SELECT 'open; x"]),
        ("SELECT $$open; x", ["SELECT $$open; x"]),
        ("SELECT /* open; x", ["SELECT"]),
    ],
)
def test_a_text_is_split_where_its_statements_end(text: str, parts: list[str]) -> None:
    statements = split(text)
    assert [one.text for one in statements] == parts
    assert all(text[one.start :].startswith(one.text) for one in statements)


def one(text: str) -> SqlStatement:
    (statement,) = split(text)
    return statement


def test_copies_of_queries() -> None:
    text = "COPY (SELECT ')' AS x, COUNT(*) FROM t) TO STDOUT"
    for options, form, header in (
        ("", "text", False),
        (" WITH (FORMAT csv, HEADER)", "csv", True),
        (" (FORMAT csv, HEADER false)", "csv", False),
        (" CSV HEADER", "csv", True),
        (" WITH (FORMAT 'binary')", "binary", False),
    ):
        copy = copy_of(one(text + options))
        assert copy is not None
        assert (copy.query.text, copy.form, copy.header) == ("SELECT ')' AS x, COUNT(*) FROM t", form, header)
        assert text[copy.query.start :].startswith(copy.query.text)
    for refused in (
        "COPY t TO STDOUT",
        "COPY (SELECT 1) TO '/tmp/x'",
        "COPY (SELECT 1) TO STDOUT (FORMAT parquet)",
        "COPY (SELECT 1) TO STDOUT (FORMAT binary, HEADER)",
        "COPY (SELECT 1) TO STDOUT (DELIMITER '|')",
        "COPY (SELECT 1; SELECT 2) TO STDOUT",
        "COPY (SELECT 1 TO STDOUT",
        "COPY () TO STDOUT",
        "COPY (SELECT 1) FROM STDIN",
    ):
        assert copy_of(one(refused)) is None if ";" not in refused else copy_of(split(refused)[0]) is None


def test_types_of_parameters() -> None:
    assert parameter_types("SELECT 1", ()) == ()
    assert parameter_types("x = $1 AND y = $2::date AND z = $1::int", (20,)) == (20, 1082)
    assert parameter_types("x = $1::int AND y = $3", (0,)) == (23, 0, 0)
    assert parameter_types("x = '$1' AND \"$2\" = $$ $3 $$ -- $4", ()) == ()
    assert parameter_types("a$1 = $ 2", ()) == ()
    assert len(parameter_types("$999999999999", ())) > 1_000


def test_options_of_a_connection() -> None:
    text = r"-c lapwing.epsilon=0.5 --lapwing.label=two\ words -ctimezone=UTC -x nothing"
    assert [*options_of(text)] == [("lapwing.epsilon", "0.5"), ("lapwing.label", "two words"), ("TimeZone", "UTC")]


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.text(st.sampled_from("a1 $'\"E\\;-/*()\n\0é"), max_size=60))
def test_any_text_is_split_into_its_parts(text: str) -> None:
    end = 0
    for statement in split(text):
        assert statement.start >= end
        assert statement.tokens
        end = statement.start + len(statement.text)
        assert text[statement.start : end] == statement.text
        copy_of(statement)
    parameter_types(text, ())
