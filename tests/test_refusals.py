"""Every refusal has a code, which is stable and documented; what a reader can do is said by who reads."""

import ast
import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest

from lapwing.cli.streams import COMMAND_LINE, NOTEBOOK, SHELL, Ways, coded, complain_of
from lapwing.client.transport import error_of
from lapwing.errors import DataStopped, QueryRefused, RefusalCause
from lapwing.query.pricing.missing_price import no_single_price
from lapwing.query.text.parse import parse
from lapwing.server.problems import problem_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lapwing"


def without_a_cause(source: str) -> list[str]:
    """Return the refusals of a text that say no cause, or the one that stands for none."""
    tree = ast.parse(source) if "QueryRefused(" in source else ast.Module([], [])  # most files have none
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    refusals = [node for node in calls if ast.unparse(node.func).rpartition(".")[2] == "QueryRefused"]
    causes = [next((word.value for word in node.keywords if word.arg == "cause"), None) for node in refusals]
    return [
        ast.unparse(node)
        for node, cause in zip(refusals, causes, strict=True)
        if cause is None or ast.unparse(cause).endswith("RefusalCause.UNKNOWN")
    ]


def test_every_refusal_has_a_cause() -> None:
    found = {str(path.relative_to(SOURCE)): without_a_cause(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "raise QueryRefused('No')",
        "raise errors.QueryRefused('No', remedy='Leave it out.')",
        "raise QueryRefused('No', cause=RefusalCause.UNKNOWN)",
    ],
)
def test_a_refusal_without_a_cause_is_found(planted: str) -> None:
    assert len(without_a_cause(planted)) == 1
    assert without_a_cause("raise QueryRefused('No', cause=RefusalCause.WRONG_TYPE)") == []


def test_every_cause_is_used() -> None:
    used = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"RefusalCause\.([A-Z_]+)", path.read_text("utf-8"))
    }
    assert {cause.name for cause in RefusalCause} - used == set()


def test_a_cause_is_named_as_it_is_written() -> None:
    assert [cause.value for cause in RefusalCause] == [cause.name.lower() for cause in RefusalCause]


def test_a_cause_that_is_not_known_is_unknown() -> None:
    assert RefusalCause("of_the_future") is RefusalCause.UNKNOWN
    assert RefusalCause(None) is RefusalCause.UNKNOWN
    assert RefusalCause("not_grouped") is RefusalCause.NOT_GROUPED


# ---- who can do what -------------------------------------------------------------------------------------------------

REFUSED = QueryRefused(
    "There are no bounds",
    cause=RefusalCause.UNBOUNDED,
    remedy="Write bounds.",
    curator_remedy="declare bounds in the catalog",
    position=(2, 8),
    suggestion="age",
)


def test_a_remedy_is_said_by_who_reads() -> None:
    first = "There are no bounds (line 2, column 8). Write bounds."
    assert str(REFUSED) == f"{first} The curator can declare bounds in the catalog."
    assert REFUSED.analyst_text == f"{first} Ask the curator to declare bounds in the catalog."
    assert str(QueryRefused("No")) == QueryRefused("No").analyst_text == "No."


def test_a_refusal_is_the_same_in_other_words_and_places() -> None:
    reworded = REFUSED.reworded("None are known", "Write some.")
    assert (reworded.reason, reworded.remedy) == ("None are known", "Write some.")
    assert parts(reworded) == parts(REFUSED)
    moved = REFUSED.pointing_at(None)
    assert (moved.cause, moved.curator_remedy, moved.reason) == (REFUSED.cause, REFUSED.curator_remedy, REFUSED.reason)
    assert (moved.position, moved.suggestion) == (None, None)
    again = pickle.loads(pickle.dumps(REFUSED))
    assert (str(again), parts(again)) == (str(REFUSED), parts(REFUSED))


def parts(refused: QueryRefused) -> tuple[object, ...]:
    return refused.cause, refused.curator_remedy, refused.position, refused.suggestion


def test_a_service_says_all_of_it_and_a_client_reads_it() -> None:
    document = problem_of(REFUSED)
    assert document["detail"] == REFUSED.analyst_text
    assert (document["remedy"], document["curator_remedy"]) == (REFUSED.analyst_remedy, REFUSED.curator_remedy)
    assert (document["cause"], document["position"], document["suggestion"]) == ("unbounded", [2, 8], "age")
    read = error_of(document)
    assert isinstance(read, QueryRefused)
    assert str(read) == REFUSED.analyst_text
    assert parts(read) == parts(REFUSED)


STOPPED = DataStopped("Three queries failed.", curator_remedy="look and resume", command="`lapwing data resume`")


def test_only_those_who_have_a_command_line_read_of_commands() -> None:
    assert str(STOPPED) == "Three queries failed. The curator can look and resume: `lapwing data resume`."
    assert STOPPED.analyst_text == "Three queries failed. Ask the curator to look and resume."
    assert str(DataStopped("No.")) == DataStopped("No.").analyst_text == "No."
    document = problem_of(STOPPED)
    assert (document["detail"], document["curator_remedy"]) == (STOPPED.analyst_text, "look and resume")
    read = error_of(document)
    assert (type(read), str(read), read.curator_remedy) == (DataStopped, STOPPED.analyst_text, "look and resume")


@pytest.mark.parametrize("word", ["DESCRIBE visits", "SHOW TABLES", "SUMMARIZE visits"])
def test_a_service_names_no_command_to_an_analyst(word: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        parse(word)
    refused = caught.value
    assert refused.cause is RefusalCause.NOT_A_QUERY
    assert refused.command.startswith("`lapwing ")
    assert str(refused) == f"{refused.analyst_text} You can type {refused.command}."
    assert refused.command not in str(problem_of(refused))
    for other in (refused.reworded("No", "Nothing."), refused.pointing_at(None)):
        assert other.command == refused.command


def test_the_command_line_shows_the_code_of_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    complain_of(REFUSED)
    assert capsys.readouterr().err == f"lapwing: {REFUSED} [unbounded]\n"
    complain_of(STOPPED)
    assert capsys.readouterr().err == f"lapwing: {STOPPED}\n"


@pytest.mark.parametrize("ways", [COMMAND_LINE, SHELL, NOTEBOOK])
def test_a_door_names_only_its_own_way(ways: Ways) -> None:
    rows = QueryRefused("No", cause=RefusalCause.ASSUMES_ROWS, remedy="Give assuming_count.")
    assert coded(rows, ways) == f"No. {ways['assuming_count']} [assumes_rows]"
    assert coded(no_single_price(both=False), ways) == f"The query has no cost yet. {ways['epsilon']}"
    assert str(no_single_price(both=False)).startswith("The query has no cost yet. ")
    delta = QueryRefused("No", cause=RefusalCause.NEEDS_DELTA, remedy="Give delta.")
    assert coded(delta, ways) == f"No. Give delta. {ways['delta']} [needs_delta]"
    no_reserve = QueryRefused("No", cause=RefusalCause.NEEDS_DELTA, curator_remedy="reserve a part of delta")
    assert ways["delta"] not in coded(no_reserve, ways)


def test_an_error_stays_itself_in_another_process_and_after_a_search() -> None:
    again = pickle.loads(pickle.dumps(STOPPED))
    assert (str(again), again.analyst_text, again.command) == (str(STOPPED), STOPPED.analyst_text, STOPPED.command)
    later = STOPPED.after("Bounds were found.")
    assert (type(later), str(later), later.charged) == (DataStopped, f"Bounds were found. {STOPPED}", False)
    assert later.analyst_text == f"Bounds were found. {STOPPED.analyst_text}"


def sends_analysts_away(source: str) -> list[str]:
    """Return the remedies of a text that are for the curator and stand where an analyst's stand."""
    return re.findall(r"[Ll]et the curator\b.{,40}|[Aa]sk the curator for a grant", source)


def test_what_only_the_curator_can_do_is_no_remedy_for_an_analyst() -> None:
    paths = (path for path in SOURCE.rglob("*.py") if "cli" not in path.relative_to(SOURCE).parts)
    found = {str(path.relative_to(SOURCE)): sends_analysts_away(path.read_text("utf-8")) for path in paths}
    assert {path: texts for path, texts in found.items() if texts} == {}
    assert sends_analysts_away('remedy="Let the curator declare its values."'), "or nothing would be found"


@pytest.mark.parametrize("cause", [None, "of_the_future"])
def test_a_client_reads_a_refusal_of_another_version(cause: str | None) -> None:
    document = {"code": "query_refused", "detail": "No.", "status": 422, "reason": "No", "remedy": ""}
    read = error_of(document if cause is None else {**document, "cause": cause})
    assert isinstance(read, QueryRefused)
    assert (str(read), read.cause) == ("No.", RefusalCause.UNKNOWN)


# ---- the page --------------------------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "reference" / "refusals.md"


def meanings(body: list[ast.stmt]) -> dict[str, str]:
    """Return what the source says of each code: the text after its assignment."""
    return {
        member.value.value: ast.literal_eval(said.value)
        for member, said in pairwise(body)
        if isinstance(member, ast.Assign | ast.AnnAssign) and isinstance(said, ast.Expr)
        if isinstance(member.value, ast.Constant) and isinstance(member.value.value, str)
    }


def read(file: str) -> list[ast.stmt]:
    return ast.parse((SOURCE / file).read_text("utf-8")).body


def on_the_page(part: int) -> dict[str, str]:
    """Return what the page says of each code: part 0 is of refusals, and part 1 of notes."""
    text = PAGE.read_text("utf-8").split("\n## Notes\n")[part]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|$", text, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_the_page_says_of_each_code_what_it_means() -> None:
    (enum,) = (node for node in read("errors.py") if isinstance(node, ast.ClassDef) and node.name == "RefusalCause")
    assert on_the_page(0) == meanings(enum.body)
    assert len(on_the_page(0)) == len(RefusalCause)


def test_the_page_says_what_each_note_says() -> None:
    assert on_the_page(1) == meanings(read("answer/notes.py"))
    assert len(on_the_page(1)) > 40
