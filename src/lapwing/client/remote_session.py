"""A session on a data set that a server holds: what a local session does, over HTTP; and how one is registered."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final
from urllib.parse import quote

from lapwing.budget import BudgetView
from lapwing.catalog.model import Budget
from lapwing.client.encoding import amounts, batch_body, catalog_body, new_key, question_body
from lapwing.client.remote_answer import Pending, RemoteAnswer
from lapwing.client.remote_holdouts import RemoteHoldouts
from lapwing.client.transport import PAGE, ServerConnection, chosen_dataset, dataset_path
from lapwing.documents.budget_document import account_of, faults_of, history_of
from lapwing.documents.preview_document import preview_of
from lapwing.errors import CatalogError
from lapwing.guarantee import Page
from lapwing.guarantee.raise_preview import Raise, raise_of
from lapwing.guarantee.rendering import page_from
from lapwing.ledger import exporting
from lapwing.ledger.entries import Entry
from lapwing.ledger.reading import FaultRow, History, HistoryRow
from lapwing.preview import Preview
from lapwing.privacy import figures
from lapwing.privacy.amounts import Number, read
from lapwing.privacy.measures import Loss
from lapwing.query.pricing.quote import request
from lapwing.query.text.parameters import Parameters
from lapwing.tables import Tables, tables_of
from lapwing.tables.ibis_questions import Question, text_of, texts_of

if TYPE_CHECKING:
    import ibis
    from typing_extensions import Unpack

    from lapwing.client.remote_synthesis import RemoteSyntheticTable
    from lapwing.documents.dbapi.cursor import Cursor
    from lapwing.documents.dbapi.options import Options
    from lapwing.synthesis import SynthesisOptions

WRITTEN: Final = "written"
"""What a server says of its catalog when it has the new budget."""


@final
class RemoteSession:
    """Ask questions of one data set that a server holds. Thread-safe.

    Made by `lapwing.connect` with an address and a token.
    """

    def __init__(self, connection: ServerConnection, dataset: str | None = None) -> None:
        self._connection = connection
        self.dataset = chosen_dataset(connection, dataset)
        self._path = dataset_path(self.dataset)
        self.schema: Mapping[str, Any] = self._connection.get(self._path)
        budget = self.schema["budget"]
        self._delta = Fraction(budget["delta"]) - Fraction(budget["delta_keys"])  # at which costs are read as epsilons

    @property
    def tables(self) -> Tables:
        """The tables that a question may name: columns, types, bounds, values, units, links; all of it is public."""
        return tables_of(self.schema)

    def __repr__(self) -> str:
        return f"<RemoteSession: {self._head}; see .tables and .budget()>"

    def _repr_html_(self) -> str:
        return figures.html_heading(self._head) + self.tables._repr_html_()

    @property
    def _head(self) -> str:
        whom = [one["protects"] for one in self.schema["tables"] if "protects" in one]
        return f"{self.dataset} of {self._connection.address} protects {' and '.join(dict.fromkeys(whom))}"

    def sql(
        self,
        question: Question,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        label: str | None = None,
        assuming_count: int | None = None,
        **options: object,
    ) -> RemoteAnswer:
        """Answer a question and charge it, as `Session.sql` does; the same question again is free.

        Raises:
            LapwingError: As `Session.sql`.
            AllowanceExhausted: If the limits of who asks do not bear it. Nothing is charged.
            NotAuthorised: If who asks may not do this.
            TooManyRequests: If there are too many requests.
            ServiceFault: If the server or the way to it fails.
        """
        text = text_of(question, **options)
        body = question_body(text, parameters, epsilon, error, delta, label, assuming_count)
        return self._answer(self._connection.post(f"{self._path}/query", body, new_key()))

    def batch(
        self,
        questions: "Sequence[Question | tuple[str, Parameters]]",
        *,
        epsilon: Number,
        delta: Number | None = None,
        label: str | None = None,
    ) -> tuple[RemoteAnswer, ...]:
        """Answer several questions at one price, as `Session.batch` does: all are charged, or none.

        Raises:
            LapwingError: As `sql`.
        """
        body = batch_body(texts_of(questions), epsilon, delta, label)
        answered = self._connection.post(f"{self._path}/batch", body, new_key())
        return tuple(map(self._answer, answered["answers"]))

    def cursor(self, **options: "Unpack[Options]") -> "Cursor":
        """Return a cursor of PEP 249, as `Session.cursor` does."""
        from lapwing.documents.dbapi.connection import Connection  # here: few sessions need it

        return Connection(self).cursor(**options)

    def synthesize(
        self, columns: Sequence[str], *, epsilon: Number, **options: "Unpack[SynthesisOptions]"
    ) -> "RemoteSyntheticTable":
        """Return rows that nobody has, drawn by the server; as `Session.synthesize`.

        If the connection breaks, ask the same again: what was paid is served for nothing.

        Raises:
            LapwingError: As `Session.synthesize`.
            QueryRefused: For people who are not trusted with time; and as `sql`.
        """
        from lapwing.client.remote_synthesis import synthesized  # here: few sessions need it

        return synthesized(self._connection, self._path, columns, epsilon, options)

    def submit(
        self,
        question: Question,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        label: str | None = None,
        assuming_count: int | None = None,
        **options: object,
    ) -> Pending:
        """Let a question wait in the server's queue, and return at once; it is charged when its turn comes.

        `sql` has the same arguments.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
            InvalidParameter: If a value is not allowed.
            TooManyRequests: If too many questions wait.
            NotAuthorised: If who asks may not do this.
            ServiceFault: If the server or the way to it fails. `Pending.wait` raises the errors of the question itself.
        """
        text = text_of(question, **options)
        body = question_body(text, parameters, epsilon, error, delta, label, assuming_count)
        return self._waiting(self._connection.post(f"{self._path}/queries", body, new_key()))

    def pending(self, id: str) -> Pending:
        """Return a question that was submitted, by its id; also in another program, or after an end of the server.

        Raises:
            NotFound: If there is none of this id, or none that one may see.
        """
        return self._waiting(self._connection.get(f"/v1/queries/{quote(id, safe='')}"))

    def table(self, name: str) -> "ibis.Table":
        """Begin a question with a table or view, as `tables.table` does; free."""
        return self.tables.table(name)

    def explain(
        self,
        question: Question,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
        **options: object,
    ) -> Preview:
        """Return price, mechanisms and promised errors, as `Session.explain` does; free."""
        text = text_of(question, **options)
        body = question_body(text, parameters, epsilon, error, delta, assuming_count=assuming_count)
        return preview_of(self._connection.post(f"{self._path}/explain", body))

    def budget(self, *, history: bool = True) -> BudgetView:
        """Return what was granted, spent and is left; and one's own charges, read once somebody looks."""
        account = self._connection.get(f"{self._path}/budget")
        return account_of(account, History(self.history) if history else ())

    def history(self, *, after: int = 0, most: int | None = None) -> tuple[HistoryRow, ...]:
        """Return one's own charges, to curators and auditors everybody's, as `Session.history` does; free."""
        if most is not None and most < 0:
            return history_of(self._connection.get(f"{self._path}/history?limit={min(-most, PAGE)}&newest=true"))
        rows: list[HistoryRow] = []
        while most is None or len(rows) < most:
            limit = PAGE if most is None else min(PAGE, most - len(rows))
            page = history_of(self._connection.get(f"{self._path}/history?limit={limit}&after={after}"))
            rows += page
            if len(page) < limit:
                break
            after = page[-1].sequence
        return tuple(rows)

    def price(self, epsilon: Number) -> Loss:
        """Return the loss that a question's `epsilon` is charged."""
        budget = self.schema["budget"]
        exactly = {name: read(budget[name], name) for name in ("epsilon", "delta", "delta_keys")}
        return request(epsilon, Budget(**exactly, measure=budget["measure"], neighbouring=budget["neighbouring"]))

    def guarantee(self, *, sealed: bool = True, language: str | None = None) -> Page:
        """Return the promise of the data set, formatted for printing; free.

        With the right `audit` to see the ledger, it also names who may ask, and the seal of the newest entry.

        Args:
            sealed: Whether the page shows the seal. If you publish the page, leave the seal out.
            language: As of `Session.guarantee`.
        """
        wanted = "" if language is None else f"&language={quote(language, safe='')}"
        return page_from(self._connection.get(f"{self._path}/guarantee?seal={str(sealed).lower()}{wanted}"))

    def answer(self, id: str) -> RemoteAnswer:
        """Open an answer again, for nothing.

        Raises:
            NotFound: If there is none of this id, or none that one may see.
        """
        return self._answer(self._connection.get(f"/v1/answers/{quote(id, safe='')}"))

    @property
    def holdouts(self) -> RemoteHoldouts:
        """One's own holdouts of the data set, as documents; `lapwing.holdout.ReusableHoldout(session, …)` asks them."""
        return RemoteHoldouts(self._connection, self._path)

    def accept_data(self) -> int:
        """Make the data as they are now the current version, and return its number. The curator's act."""
        version: int = self._connection.post(f"{self._path}/accept", {})["version"]
        return version

    def refresh_data(self, *, whole: bool = False) -> int:
        """Let the service fetch what its sources hold now; return the number of the current version then.

        It stays if the rows are the same. The curator's act. On any error the version before goes on answering.

        Args:
            whole: Read all rows, also where a source knows what came since.

        Raises:
            InvalidParameter: If no table comes from a source.
            DataFault: If one does not deliver, or delivers what is not accepted.
        """
        version: int = self._connection.post(f"{self._path}/refresh", {"whole": whole})["version"]
        return version

    def faults(self) -> tuple[FaultRow, ...]:
        """Return the questions that failed after their charge since the curator last looked. For the curator."""
        return faults_of(self._connection.listed(f"{self._path}/faults", "sequence"))

    def resume(self) -> int:
        """Say that the faults were looked at, and return how many they were. The curator's act."""
        faults: int = self._connection.post(f"{self._path}/resume", {})["faults"]
        return faults

    def raised(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> Raise:
        """Return what a larger budget would promise, beside what is promised now; free, and nothing is changed.

        Raises:
            LapwingError: As `raise_budget`.
        """
        return raise_of(self._cap(was, epsilon, delta, confirmed=False))

    def raise_budget(self, *, was: tuple[Number, Number], epsilon: Number, delta: Number) -> None:
        """Make the budget larger, for everybody and for ever, as `Session.raise_budget` does. The curator's act.

        The server writes its catalog too.

        Args:
            was: The (epsilon, delta) as they are expected to be.

        Raises:
            CatalogMismatch: If they are others.
            InvalidParameter: For what is no larger budget (nothing is changed).
            CatalogError: If the budget was raised, and the server could not write its catalog: it says what to write.
        """
        told = self._cap(was, epsilon, delta, confirmed=True)["catalog"]
        self.schema = self._connection.get(self._path)  # prices are of the new budget from now on
        if told != WRITTEN:
            raise CatalogError(told)

    def _answer(self, document: Mapping[str, Any]) -> RemoteAnswer:
        ours = document.get("dataset", self.dataset) == self.dataset  # an id may be of an answer of another data set
        return RemoteAnswer(self._connection, document, self._delta, self.schema if ours else None)

    def _waiting(self, document: Mapping[str, Any]) -> Pending:
        ours = document.get("dataset", self.dataset) == self.dataset
        return Pending(self._connection, document, self._delta, self.schema if ours else None)

    def _cap(self, was: tuple[Number, Number], epsilon: Number, delta: Number, *, confirmed: bool) -> Any:
        before = amounts(epsilon=was[0], delta=was[1])
        body = {"was": before, **amounts(epsilon=epsilon, delta=delta), "confirmed": confirmed}
        return self._connection.put(f"{self._path}/cap", body)

    def close_for_ever(self) -> bool:
        """Close the data set: nothing is charged any more, once this returns. Return whether it was open.

        The curator's act, and not to be undone. Answers that were bought stay free.
        """
        was_open: bool = self._connection.put(f"{self._path}/closed", {"closed": True})["was_open"]
        return was_open

    def ledger_entries(self) -> Iterator[Entry]:
        """Yield all entries of the ledger, for a copy (`lapwing.ledger.exporting`); as secret as the ledger is.

        It takes the right `audit`. The entries are not checked here: `exporting.write` and `verified` do that.
        """
        return exporting.read(self._connection.lines(f"{self._path}/ledger"))

    def close(self) -> None:
        """Do nothing: a remote session holds nothing. So that `with` is as for a `Session`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def register(
    address: str, catalog: Path | str | Mapping[str, object], *, token: str, folder: str | None = None
) -> RemoteSession:
    """Register a data set whose files lie in a folder of a server, and return a session on it. The curator's act.

    It is sent once: if the connection breaks on the way, look whether it is there before you send it again.

    Args:
        catalog: The path of a TOML file, its text, or the same as a mapping.
        folder: Of the server, from which the paths in it start; needed if the server was started with several.

    Raises:
        InvalidParameter: If a value is not allowed.
        CatalogError: If the catalog says what cannot be meant.
        CatalogMismatch: If the catalog contradicts the ledger.
        NotAuthorised: If who asks may not do this.
        ServiceFault: If the server or the way to it fails. Nothing is registered then.
    """
    connection = ServerConnection(address, token)
    registered = connection.post("/v1/datasets", {"catalog": catalog_body(catalog), "folder": folder})
    return RemoteSession(connection, registered["name"])
