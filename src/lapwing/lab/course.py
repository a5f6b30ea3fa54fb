"""The course's data set on the real engine: protected in a folder that lasts as long as the experiment."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.lab.students import EDITORS, GENDERS, LARGEST_SCHOLARSHIP, students
from lapwing.opening import protect
from lapwing.privacy.amounts import Number
from lapwing.session import Session

BOUNDS: Final = {"scholarship": (0, LARGEST_SCHOLARSHIP)}
DOMAINS: Final = {"editor": EDITORS, "gender": GENDERS}


@contextmanager
def protected_students(epsilon: Number, table: pa.Table | None = None, **named: Any) -> Iterator[Session]:
    """Give a session of the students, or of others like them, with a budget of its own; all is gone at the end.

    Args: named: what else `lapwing.protect` takes, such as `delta`; a budget of pure ε unless said otherwise.
    """
    with TemporaryDirectory(prefix="lapwing-lab-") as folder:
        file = Path(folder) / "students.parquet"
        pq.write_table(students() if table is None else table, file)
        given = {"bounds": BOUNDS, "domains": DOMAINS, "max_rows_per_unit": 1, **named}
        with protect(file, privacy_unit="id", epsilon=epsilon, **given) as session:
            yield session
