"""Published pages: results that anybody may read who has the address, each a snapshot that is taken once.

Guarantee:
    A page says what its snapshot says. The snapshot is made of released results when the page is published
    (`server.snapshots`), and reading a page reads this one row. Nothing that happens later can add to it: no other
    query, refusal or fault, no new title and no new right.

The address of a page has a token of 256 random bits, or a public name that its publisher chooses. The store has only
a hash of it. A page is withdrawn at once and for ever: its snapshot and its address are deleted. Its publisher
and the curators of the data set can withdraw it. If a curator turns publishing off, all pages of the data set are
withdrawn, and turning it on again brings none back.

A page may show results of several data sets, if each allows it. It is a page of each of them. The curators of each see
it and can withdraw it. Turning publishing off for one withdraws it. Only origins that all of them name may frame it.

A page stays if its publisher loses access, or the account is disabled, and if the data set is stopped. Its results were
released before, so it is as safe as on the first day. The curator sees it in the list and can withdraw it.
"""

import json
import re
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.errors import InvalidParameter, NotAuthorised
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import missing
from lapwing.server.store import ServiceStore, StoreConnection

MOST_PAGES: Final = 200
"""Pages of one person and data set that are not withdrawn."""
MOST_BYTES: Final = 4 << 20
"""Bytes of a snapshot."""
MOST_ORIGINS: Final = 20
LONGEST_FILE: Final = 60
"""Characters of the name of a file, without its ending."""
NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,58})[a-z0-9]")
"""A public name. A token has an underscore, so it is no name."""
ORIGIN: Final = re.compile(
    r"(?:http://(?:localhost|127\.0\.0\.1)|https://(?=[^:]{1,253}(?::|$))"
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*)(?::[1-9][0-9]{0,4})?"
)
"""An origin as a browser writes it: no path, no wildcard, and nothing that could end a policy.

A page of this machine needs no TLS: browsers trust it as they trust HTTPS, since nobody is between it and them.
"""
_PAGES: Final = "SELECT page FROM published_datasets WHERE dataset = ?"
_COLUMNS: Final = "id, dataset, person, title, name, created, withdrawn, withdrawn_by"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPage:
    """A published page, without its snapshot and its token.

    Args:
        dataset: Under which its publisher lists it.
        datasets: All of which it shows results, this one first.
        name: Its public name; None of a page at an address that nobody can guess.
        created: In seconds since 1970, as `withdrawn`.
    """

    id: str
    dataset: str
    person: str
    title: str
    name: str | None
    created: float
    withdrawn: float | None
    withdrawn_by: str | None
    datasets: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """The name of the page as a file: its public name, or its title in letters that every system can store."""
        plain = unicodedata.normalize("NFKD", self.title.lower().replace("ß", "ss")).encode("ascii", "ignore").decode()
        words = "-".join(re.findall("[a-z0-9]+", plain.replace("'", "")))[:LONGEST_FILE].strip("-")
        return f"{self.name or words or f'page-{self.id[:8]}'}.html"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadablePage:
    """A page for somebody who has its address.

    Args:
        content: The snapshot, as JSON.
        listed: Whether it is at a public name, so that search engines may list it.
        origins: Origins whose pages may show it in a frame.
    """

    content: str
    listed: bool
    origins: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingRule:
    """Whether results of a data set may be published, and whose pages may show them in a frame."""

    allowed: bool
    origins: tuple[str, ...] = ()


@final
class PublishedPages:
    """The published pages of a service.

    Args:
        clock: Returns the seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    # ---- What curators allow ----

    def rule(self, dataset: str) -> PublishingRule:
        """Return what is allowed; publishing is off unless a curator turned it on."""
        rows = self._store.look("SELECT origins FROM publishing WHERE dataset = ?", (dataset,))
        return PublishingRule(allowed=True, origins=tuple(json.loads(rows[0][0]))) if rows else _OFF

    def allow(self, dataset: str, origins: Sequence[str], *, by: str) -> PublishingRule:
        """Let people publish results, and pages of some origins show them in a frame.

        Raises:
            InvalidParameter: If an origin is not one.
        """
        checked = checked_origins(origins)
        with self._store.transaction() as connection:
            connection.execute(
                "INSERT INTO publishing (dataset, origins) VALUES (?, ?)"
                " ON CONFLICT (dataset) DO UPDATE SET origins = excluded.origins",
                (dataset, json.dumps(checked)),
            )
            note(connection, by, "publishing allowed", dataset, origins=list(checked))
        return PublishingRule(allowed=True, origins=checked)

    def forbid(self, dataset: str, *, by: str) -> int:
        """Turn publishing off, and withdraw all pages of the data set; return how many these were."""
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM publishing WHERE dataset = ?", (dataset,))
            count = self._withdraw(connection, f"id IN ({_PAGES})", dataset, by)
            note(connection, by, "publishing forbidden", dataset, withdrawn=count)
        return count

    # ---- Pages ----

    def publish(
        self, datasets: Sequence[str], person: str, title: str, content: Mapping[str, Any], *, name: str | None
    ) -> tuple[str, PublishedPage]:
        """Publish a snapshot; return the last part of its address. It is shown once unless it is a name.

        Args:
            datasets: Of which the snapshot has results; the page is listed under the first.

        Raises:
            NotAuthorised: If the curators of a data set do not allow it.
            InvalidParameter: If the name is not allowed or taken, or there are too many pages.
        """
        if name is not None and not NAME.fullmatch(name):
            text = "A public name has 3 to 60 characters: small letters, digits and hyphens between them."
            raise at_field("name", InvalidParameter(text))
        text = json.dumps(content)
        if len(text.encode()) > MOST_BYTES:
            raise InvalidParameter("The results are too large for one page. Publish fewer results, or smaller ones.")
        last, id_, now = name or credentials.new_token(), credentials.new_name(), self._clock()
        with self._store.transaction() as connection:
            for dataset in datasets:
                if not connection.execute("SELECT 1 FROM publishing WHERE dataset = ?", (dataset,)).fetchone():
                    raise NotAuthorised(NOT_ALLOWED)
            _require_room(connection, datasets[0], person)
            if connection.execute("SELECT 1 FROM published WHERE address = ?", (_address(last),)).fetchone():
                raise at_field("name", InvalidParameter("This public name is taken. Choose another one."))
            row = (id_, datasets[0], person, title, name, now, None, None)
            connection.execute(
                f"INSERT INTO published ({_COLUMNS}, address, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, _address(last), text),
            )
            for dataset in datasets:
                of = "INSERT INTO published_datasets (page, dataset) VALUES (?, ?)"
                connection.execute(of, (id_, dataset))
            others = {"others": list(datasets[1:])} if datasets[1:] else {}
            note(connection, person, "page published", id_, dataset=datasets[0], name=name, **others)
        return last, _page(row, datasets)

    def readable(self, last: str) -> ReadablePage | None:
        """Return the page at an address, by the last part of it; None for every reason."""
        rows = self._store.look(
            "SELECT content, name, origins FROM published JOIN published_datasets ON page = id"
            " LEFT JOIN publishing ON publishing.dataset = published_datasets.dataset"
            " WHERE address = ? ORDER BY published_datasets.dataset",
            (_address(last),),
        )
        if not rows or any(origins is None for _, _, origins in rows):
            return None
        content, name, _ = rows[0]
        first, *others = (json.loads(origins) for _, _, origins in rows)
        everywhere = tuple(origin for origin in first if all(origin in other for other in others))
        return ReadablePage(content=content, listed=name is not None, origins=everywhere)

    def of(self, dataset: str, person: str | None) -> list[PublishedPage]:
        """Return the pages of a data set, the newest first: the pages of one person, or of everybody."""
        rows = self._store.look(
            f"SELECT {_COLUMNS} FROM published WHERE id IN ({_PAGES}) AND person = COALESCE(?, person)"
            " ORDER BY created DESC, id",
            (dataset, person),
        )
        of = f"SELECT page, dataset FROM published_datasets WHERE page IN ({_PAGES}) ORDER BY dataset"
        datasets = self._store.look(of, (dataset,))
        return [_page(row, [one for page, one in datasets if page == row[0]]) for row in rows]

    def find(self, id_: str) -> tuple[PublishedPage, str | None]:
        """Return a page and its snapshot as JSON; None if it is withdrawn.

        Raises:
            NotFound: If there is none.
        """
        rows = self._store.look(f"SELECT {_COLUMNS}, content FROM published WHERE id = ?", (id_,))
        if not rows:
            raise missing(PAGE)
        datasets = self._store.look("SELECT dataset FROM published_datasets WHERE page = ? ORDER BY dataset", (id_,))
        return _page(rows[0][:-1], [one for (one,) in datasets]), rows[0][-1]

    def withdraw(self, id_: str, *, by: str) -> None:
        """Withdraw a page, at once and for ever.

        Raises:
            NotFound: If there is none, or it is withdrawn.
        """
        with self._store.transaction() as connection:
            if not self._withdraw(connection, "id = ?", id_, by):
                raise missing(PAGE)
            note(connection, by, "page withdrawn", id_)

    def _withdraw(self, connection: StoreConnection, which: str, value: str, by: str) -> int:
        """Delete address and snapshot of pages; `which` is a condition of this module."""
        return connection.execute(
            "UPDATE published SET withdrawn = ?, withdrawn_by = ?, address = NULL, content = NULL"
            f" WHERE {which} AND withdrawn IS NULL",
            (self._clock(), by, value),
        ).rowcount


PAGE: Final = "published page"
NOT_ALLOWED: Final = (
    "Results of this data set may not be published. A curator can allow it, on the page Published of the data set."
)
_OFF: Final = PublishingRule(allowed=False)


def checked_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return origins without repetition, as browsers write them.

    Raises:
        InvalidParameter: If one is an origin neither of HTTPS nor of this machine, or there are too many.

    >>> checked_origins(["https://Example.org", "https://example.org", "http://localhost:8443"])
    ('https://example.org', 'http://localhost:8443')
    """
    if len(origins) > MOST_ORIGINS:
        raise at_field("origins", InvalidParameter(f"At most {MOST_ORIGINS} sites are allowed."))
    checked = dict.fromkeys(origin.strip().lower() for origin in origins)
    for origin in checked:
        if not ORIGIN.fullmatch(origin):
            text = (
                "Write each site as https, a host, and perhaps a port, like https://www.example.org. A site on the "
                "machine of a reader may be http://localhost:8000. No path and no *."
            )
            raise at_field("origins", InvalidParameter(text))
    return tuple(checked)


def _address(last: str) -> str:
    """Return what is kept of the last part of an address."""
    return credentials.kept_of(last)


def _require_room(connection: StoreConnection, dataset: str, person: str) -> None:
    count = "SELECT COUNT(*) FROM published WHERE dataset = ? AND person = ? AND withdrawn IS NULL"
    if connection.execute(count, (dataset, person)).fetchone()[0] >= MOST_PAGES:
        raise InvalidParameter(f"You have {MOST_PAGES} published pages of this data set. Withdraw one first.")


def _page(row: Sequence[Any], datasets: Sequence[str]) -> PublishedPage:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    return PublishedPage(**fields, datasets=tuple(dict.fromkeys([fields["dataset"], *datasets])))
