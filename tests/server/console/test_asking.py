"""An analyst's first question, without scripts: see what is there, see the price, decide, read, take it along."""

import csv
import io
import json
import math
import re
from fractions import Fraction
from urllib.parse import parse_qs, quote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.server.console.acting import decimal_of, share_of
from lapwing.server.console.answer.files import snippets
from lapwing.server.console.inside import ApiRefusal
from tests.server.console.test_refused_forms import faults
from tests.support.effort import one_in
from tests.support.server.browsing import Shown, Visitor, bars_in, visitor
from tests.support.server.world import World, on_both

SQL = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"


@pytest.fixture(scope="module")
def reader(settled: World) -> Visitor:
    """Alice, at a service that these tests share: what one bought is free for the next."""
    return visitor(settled, "alice")


def priced(alice: Visitor, sql: str = SQL, **typed: str) -> Shown:
    page = alice.go("/console/data/open/ask")
    return alice.submit(page, "/ask", sql=sql, **{"by": "epsilon", "epsilon": "0.5", **typed})


@on_both
def test_a_first_question(alice: Visitor) -> None:
    world = alice.world
    start = alice.go("/console")
    assert "open" in start.text
    assert "closed" not in start.text.replace("closed permanently", "")
    tables = alice.go("/console/data/open")
    assert "0 to 8, in steps of 0.5" in tables.text
    assert "one of a, b" in tables.text
    (link,) = [link for link in tables.page.links if "ask?sql=" in link][:1]
    assert parse_qs(urlsplit(link).query)["sql"] == ["SELECT COUNT(*) AS n FROM visits"]

    price = priced(alice, label="by plan")
    assert "Cost: ε = 0.5" in price.text
    assert "±20" in price.text
    assert world.charges() == 0

    answer = alice.submit(price, "/ask/answer")
    assert answer.status == 200
    assert "Charged ε = 0.5. Opening this result again is free." in answer.text
    assert "by plan" in answer.text
    assert bars_in(answer) == 2
    assert answer.text.count("±20") == 6  # of the table, and of both drawings of the chart
    assert world.charges() == 1

    history = alice.go("/console/data/open/history")
    assert "by plan" in history.text
    again = alice.go(next(link for link in history.page.links if link.startswith("/console/answers/")))
    assert again.page.text.endswith(answer.page.text.rpartition("Opening this result again is free.")[2])
    assert world.charges() == 1


@pytest.mark.long
def test_an_answer_without_rows(alice: Visitor) -> None:
    price = priced(alice, "SELECT plan, STDDEV(cost) AS s FROM visits GROUP BY plan LIMIT 0")
    assert alice.submit(price, "/ask/answer").status == 200
    assert alice.world.charges() == 1


def test_what_was_priced_is_what_is_bought_and_once(alice: Visitor) -> None:
    price = priced(alice)
    first = alice.submit(price, "/ask/answer")
    again = alice.submit(price, "/ask/answer")  # the same form a second time, as a double click sends it
    assert first.path == again.path
    assert alice.world.charges() == 1
    later = priced(alice)
    assert "was bought before" in later.text
    assert "Nothing was charged." in alice.submit(later, "/ask/answer").text
    assert alice.world.charges() == 1


@pytest.mark.long
def test_a_wanted_error_is_bought_at_the_least_price(reader: Visitor) -> None:
    price = priced(reader, by="error", error="10", epsilon="")
    assert "±10" in price.text
    assert price.form("/ask/answer").fields["error"] == "10"
    assert "±10" in reader.submit(price, "/ask/answer").text


@pytest.mark.long
def test_a_wanted_error_of_a_mean_takes_how_many_rows_it_is_of(reader: Visitor) -> None:
    sql = "SELECT plan, AVG(cost) AS cost FROM visits GROUP BY plan"
    refused = priced(reader, sql, by="error", error="2", epsilon="")
    assert "Say how many you assume" in refused.text
    assert "Fill in Rows per group above." in refused.text
    price = reader.submit(refused, "/ask", assuming="1000")
    assert "±2" in price.text
    assert price.form("/ask/answer").fields["assuming"] == "1000"
    assert reader.submit(price, "/ask/answer").status == 200


TOWNS = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"


def test_groups_of_values_that_are_not_listed_take_delta(place: World) -> None:
    alice = visitor(place, "alice")
    refused = priced(alice, TOWNS)
    assert refused.page.links.count("#delta") == 1
    assert place.charges() == 0
    price = alice.submit(refused, "/ask", delta="1e-4")
    assert price.form("/ask/answer").fields["delta"] == price.form("/ask").fields["delta"] == "1e-4"
    saved = alice.submit(price, "/saved", title="towns")
    (link,) = [link for link in saved.page.links if "ask?sql=" in link]
    again = alice.go(link)
    assert again.form("/ask").fields["delta"] == "0.0001"
    alice.submit(again, "/ask/answer")
    (charge,) = place.session().budget().history
    assert charge.delta == Fraction("0.0001")
    assert "δ = 0.0001" in alice.go("/console/data/open/saved").text
    assert "was bought before" in priced(alice, TOWNS, delta="0,0001").text
    assert place.charges() == 1


def test_a_delta_that_is_none_is_marked_at_its_field(reader: Visitor) -> None:
    refused = priced(reader, TOWNS, delta="much")
    assert b'data-field="delta"' in refused.content
    assert refused.page.links.count("#delta") == 1


def test_several_queries_share_their_delta(place: World) -> None:
    alice = visitor(place, "alice")
    page = alice.go("/console/data/open/batch")
    price = alice.submit(page, "/batch", sql=f"{TOWNS}; {SQL}", epsilon="0.5", delta="1e-4")
    assert price.form("/batch/answers").fields["delta"] == "1e-4"
    alice.submit(price, "/batch/answers")
    assert sum(charge.delta for charge in place.session().budget().history) == Fraction("0.0001")


def test_the_code_that_repeats_a_query_has_its_delta_and_assumed_rows() -> None:
    request = {"sql": TOWNS, "error": 5, "delta": "1e-8", "assuming_count": 50}
    python, curl, command, _ = (text for _, text in snippets("http://x", "open", request))
    assert "error=5, delta=1e-8, assuming_count=50)" in python
    assert json.loads(curl.rpartition(" -d ")[2].strip("'")) == request
    assert "--error 5 --delta 1e-8 --assuming-count 50 " in command


def test_a_refusal_points_at_the_place_and_can_be_put_right(reader: Visitor) -> None:
    charges = reader.world.charges()
    refused = priced(reader, "SELECT COUNT(*) AS n\nFROM visits WHERE plam = 'a'")
    assert "There is no column 'plam' in visits (line 2, column 19)" in refused.text
    assert "<mark>plam</mark>" in refused.content.decode()
    (form,) = [form for form in refused.page.forms if "WHERE plan" in form.fields.get("sql", "")]
    mended = reader.post(form.action, form.fields)
    assert mended.form("/ask").fields["sql"] == "SELECT COUNT(*) AS n\nFROM visits WHERE plan = 'a'"
    assert b" data-back" in mended.content
    assert b" data-back" not in reader.go("/console/data/open/ask").content
    assert reader.world.charges() == charges


def test_a_listed_text_that_was_meant_is_not_written_in_the_place_of_the_column(reader: Visitor) -> None:
    refused = priced(reader, "SELECT COUNT(*) AS n FROM visits WHERE plan = 'A'")
    assert "Did you mean 'a'?" in refused.text
    assert not [form for form in refused.page.forms if "WHERE a " in form.fields.get("sql", "")]


@pytest.mark.parametrize(
    ("typed", "told"),
    one_in(
        3,
        [
            ({"epsilon": "much"}, "epsilon"),
            ({"epsilon": "-1"}, "epsilon"),
            ({"epsilon": ""}, ""),
            ({"epsilon": "1000"}, "budget"),
            ({"by": "error", "error": "0"}, "error"),
        ],
        many=True,
    ),
)
def test_prices_that_cannot_be_are_told(reader: Visitor, typed: dict[str, str], told: str) -> None:
    shown = priced(reader, **typed)
    assert shown.status == 200
    assert told in shown.text
    assert "/ask/answer" not in [form.action[-11:] for form in shown.page.forms]


@pytest.mark.long
def test_a_question_that_is_refused_when_it_is_bought_is_told_on_the_page(alice: Visitor) -> None:
    price = priced(alice)
    alice.world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True})
    shown = alice.submit(price, "/ask/answer")
    assert shown.status == 409 or shown.status == 403
    assert 'data-charged="False"' in shown.content.decode()
    assert shown.form("/ask").fields["sql"] == SQL
    assert alice.world.charges() == 0


@pytest.mark.long
def test_answers_as_files(reader: Visitor) -> None:
    answer = reader.submit(priced(reader), "/ask/answer").path.partition("?")[0]
    document = reader.world.ask("GET", f"/v1{answer.removeprefix('/console')}", "alice").document
    rows = list(csv.DictReader(io.StringIO(reader.go(f"{answer}/file.csv").content.decode())))
    assert [(row["plan"], int(row["n"])) for row in rows] == [(row["plan"], row["n"]) for row in document["rows"]]
    assert [float(row["n_low"]) for row in rows] == document["intervals"]["n"]["low"]
    table = pq.read_table(io.BytesIO(reader.go(f"{answer}/file.parquet").content))
    assert table.column_names == ["plan", "n", "n_low", "n_high"]
    assert table.equals(pa.ipc.open_stream(reader.go(f"{answer}/file.arrow").content).read_all())
    assert json.loads(reader.go(f"{answer}/file.json").content) == document
    assert reader.go(f"{answer}/file.xlsx").content.startswith(b"PK")
    chart = reader.go(f"{answer}/file.svg")
    assert chart.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in chart.headers["content-security-policy"]
    assert reader.go(f"{answer}/file.exe").status == 404


@pytest.mark.long
def test_an_answer_can_be_looked_at_in_other_ways_for_nothing(reader: Visitor) -> None:
    sql = "SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY plan"
    answer = reader.submit(priced(reader, sql), "/ask/answer").path.partition("?")[0]
    charges = reader.world.charges()
    wider, narrower = (reader.go(f"{answer}?confidence={level}").text for level in ("0.99", "0.8"))
    assert "99 % intervals" in wider
    assert wider != narrower
    assert "Lapwing adjusted these numbers" in reader.go(f"{answer}?view=consistent").text
    falling = reader.go(f"{answer}?sort=plan&order=falling").text
    assert falling.index("b ") < falling.index("a ") or "↓" in falling
    assert "Chart of cost" in reader.go(f"{answer}?chart=cost").content.decode()
    assert reader.go(f"{answer}?confidence=2").status == 422
    assert reader.world.charges() == charges


def test_copies_ask_the_same(reader: Visitor) -> None:
    answer = reader.submit(priced(reader), "/ask/answer").content.decode()
    assert f"lw.connect(&#39;{reader.world.address}&#39;" in answer
    assert "/v1/datasets/open/query" in answer
    assert "--epsilon 0.5" in answer
    assert f"lapwing login alice --server {reader.world.address}" in answer


@pytest.mark.long
def test_many_rows_come_in_pages(reader: Visitor) -> None:
    shown = reader.submit(
        priced(reader, "SELECT plan, size, age, COUNT(*) AS n FROM visits GROUP BY plan, size, age"), "/ask/answer"
    )
    assert shown.status == 200
    assert reader.go(f"{shown.path.partition('?')[0]}?page=99").status == 200
    assert reader.go(f"{shown.path.partition('?')[0]}?page=x").status == 200


def test_an_analyst_sees_of_others_the_total_alone(alice: Visitor) -> None:
    alice.world.query("carol")
    budget = alice.go("/console/data/open/budget")
    assert "carol" not in budget.text
    assert "No charges yet." in budget.text
    assert "> 99.9 % left for you" in alice.go("/console").text
    alice.submit(priced(alice, "SELECT SUM(cost) AS s FROM visits"), "/ask/answer")
    assert "after 3 days with charges" in alice.go("/console/data/open/budget").text
    assert re.search("0[.]0[0-9] % of the budget spent", budget.text)
    assert "carol" not in alice.go("/console/data/open/charges").text


@pytest.mark.long
def test_every_link_and_form_of_every_page_leads_to_a_page(alice: Visitor) -> None:
    """Follow all links from the first page on, as far as they go, and look at where forms go."""
    alice.submit(priced(alice), "/ask/answer")
    seen, ahead, forms = set[str](), ["/console"], set[str]()
    while ahead:
        path = ahead.pop()
        shown = alice.go(path)
        assert shown.status == 200, path
        seen.add(path)
        if shown.headers["content-type"].startswith("text/html") and path.startswith("/console"):
            page = shown.page
            forms |= {form.action for form in page.forms}
            ahead += [link for link in page.links if link.startswith("/") and link not in seen and link not in ahead]
        assert len(seen) < 200
    answers = [path for path in seen if "confidence=0.99" in path]
    assert len(answers) == 1
    assert {re.sub("[0-9a-f]{32}", "ID", form) for form in forms} == {
        "/console/answers/ID",
        "/console/answers/ID/rearranged",
        "/console/answers/ID/share",
        "/console/data/open/batch",
        "/console/data/open/budget/default-cost",
        "/console/data/open/dashboards/add",
        "/console/data/open/saved",
        "/console/sign-out",
        "/console/data/open/ask",
        "/console/data/open/ask/answer",
        "/console/account/password",
        "/console/account/end-token",
        "/console/account/second-factor",
        "/console/requests",
    }


def test_a_result_says_the_cost_that_its_button_said(alice: Visitor) -> None:
    """The page once said the ε of the request for a refined result, and the ledger's unit for a cost from an error."""
    alice.submit(priced(alice, epsilon="0.25"), "/ask/answer")
    refining = priced(alice, epsilon="0.5")
    by_error = priced(alice, "SELECT COUNT(*) AS n FROM visits", by="error", error="20")
    for price, refined in ((refining, True), (by_error, False)):
        (cost,) = re.findall(r"Run query · (ε = [0-9.]+)", price.text)
        assert cost != "ε = 0.5"
        bought = alice.submit(price, "/ask/answer")
        assert f"Charged {cost}" in bought.text
        assert ("added to the cost of an earlier result" in bought.text) == refined
        assert "μ²" not in bought.text
        assert "may be more exact" not in price.text
    assert "may be more exact" in priced(alice, epsilon="0.25").text


@pytest.mark.long
def test_a_decimal_comma_is_a_point(alice: Visitor) -> None:
    assert "Cost: ε = 0.5" in priced(alice, epsilon="0,5").text
    by_error = priced(alice, by="error", error="20,5")
    assert "±20" in by_error.text
    assert alice.world.charges() == 0
    bought = alice.submit(priced(alice, epsilon=" 0,25 "), "/ask/answer")
    assert "Charged ε = 0.25" in bought.text


@pytest.mark.parametrize("typed", ["1,000", "12,345"])
def test_a_comma_that_may_divide_thousands_is_refused(alice: Visitor, typed: str) -> None:
    whole = typed.replace(",", "")
    refused = priced(alice, by="error", epsilon="0.5", error=typed)
    assert f"{typed} can mean two numbers. Write {whole}, or {typed.replace(',', '.')}" in refused.text
    assert "Nothing was charged." in refused.text


def test_commas_and_shares() -> None:
    assert [decimal_of(text) for text in ("0,125", ",5", "1,5 %", "1.5", "1/3", "1e-6", "a,b", "1,2,3", "")] == [
        *("0.125", ".5", "1.5 %", "1.5", "1/3", "1e-6", "a,b", "1,2,3", "")
    ]
    assert share_of("12,5 %") == "1/8"
    for typed in ("1,000", "-1,000", "999,999", "1,000 %"):
        with pytest.raises(ApiRefusal):
            decimal_of(typed)


@pytest.mark.parametrize(
    ("typed", "field"),
    one_in(
        4,
        [
            ({"epsilon": "much"}, "epsilon"),
            ({"epsilon": ""}, "epsilon"),
            ({"epsilon": "0"}, "epsilon"),
            ({"epsilon": "1,000"}, "epsilon"),
            ({"by": "error", "error": "0"}, "error"),
            ({"by": "error", "error": "-2"}, "error"),
            ({"by": "error", "error": "<b>"}, "error"),
            ({"assuming": "many"}, "assuming"),
            ({"assuming": "0"}, "assuming"),
            ({"by": "sharp", "assuming": "-3"}, "assuming"),
            ({"typical": "0"}, "typical"),
            ({"by": "rough", "typical": "1,000"}, "typical"),
        ],
        many=True,
    ),
)
def test_an_error_of_a_number_stands_at_its_field(reader: Visitor, typed: dict[str, str], field: str) -> None:
    shown = priced(reader, **typed)
    found = faults(shown)
    (marked,) = found.fields
    assert (marked["name"], marked["action"]) == (field, "/console/data/open/ask")
    assert found.texts[marked["aria-describedby"].split()[0]].strip()
    kept = shown.form("/open/ask").fields
    assert {**typed, "sql": SQL}.items() <= kept.items()
    assert f'data-field="{field}"'.encode() in shown.content
    assert b"<b>" not in shown.content
    assert "/ask/answer" not in [form.action[-11:] for form in shown.page.forms]


def test_an_error_of_the_cost_of_several_stands_at_its_field(reader: Visitor) -> None:
    page = reader.go("/console/data/open/batch")
    shown = reader.submit(page, "/batch", sql="SELECT COUNT(*) AS n FROM visits", epsilon="much", label="kept")
    (marked,) = faults(shown).fields
    assert (marked["name"], marked["action"]) == ("epsilon", "/console/data/open/batch")
    assert shown.form("/batch").fields["label"] == "kept"


def test_only_a_form_of_the_session_makes_a_draft(alice: Visitor) -> None:
    """`data-edited` has the page keep its query among the drafts: a link from elsewhere must not do that."""

    def keeps(shown: Shown) -> bool:
        return b"data-edited" in shown.content

    own = priced(alice)
    assert keeps(own)
    mark = re.search("edited=([0-9a-f]+)", own.path)
    assert mark is not None
    assert keeps(alice.go(own.path))
    assert not keeps(alice.go(own.path.replace("visits", "other")))
    assert not keeps(visitor(alice.world, "alice").go(own.path))
    for made_up in ("1", "", "%C3%A9", mark[1][:-1]):
        assert not keeps(alice.go(f"/console/data/open/ask?sql=SELECT+1&edited={made_up}"))
    assert not keeps(alice.go("/console/data/open/ask?sql=SELECT+1"))


def test_what_is_public_is_free_without_having_been_bought(alice: Visitor) -> None:
    """In one query and in several; what was bought says so."""
    public = "SELECT COUNT(*) AS n FROM codes"
    first = priced(alice, public).text
    assert ("Nothing in this result comes from protected rows" in first, "bought before" in first) == (True, False)
    shown = alice.go(f"/console/data/open/batch?sql={quote(f'{public}; {SQL}')}&epsilon=1").text
    assert ("Nothing in this result comes from protected rows" in shown, "bought before" in shown) == (True, False)
    alice.world.query("alice", {"sql": SQL, "epsilon": 1})
    shown = alice.go(f"/console/data/open/batch?sql={quote(f'{public}; {SQL}')}&epsilon=0.5").text
    assert "This result, or a better one, was bought before" in shown


def test_a_preview_says_how_often_a_guess_is_right(alice: Visitor) -> None:
    shown = priced(alice).text
    document = alice.world.ask("POST", "/v1/datasets/open/explain", "alice", {"sql": SQL, "epsilon": 0.5}).document
    assert 50 < document["times_of_100"] < 100 / (1 + math.exp(-0.5)) + 1
    assert f"can be right at most {document['times_of_100']} times out of 100 with this result" in shown


def test_the_page_of_a_constant_says_that_nothing_was_charged(alice: Visitor) -> None:
    result = alice.submit(priced(alice, sql="SELECT plan, 1 AS one FROM visits GROUP BY plan"), "/ask/answer").text
    assert "Nothing was charged." in result
    assert "Charged ε" not in result
