"""All ticks as one table in a file."""

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.monitors.monitor import Monitor

FORMS: Final = (".parquet", ".arrow", ".csv")


def require_form(file: Path) -> None:
    """Refuse a file whose name says no form.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    if file.suffix.lower() not in FORMS:
        raise InvalidParameter(f"The file is {file.name!r:.60}; its name must end in .parquet, .arrow or .csv.")


def export_ticks(monitor: "Monitor", file: Path, confidence: Fraction) -> int:
    """Write the ticks that were released, tick by tick, whole or not at all; return how many."""
    import pyarrow as pa  # here: few monitors are exported
    import pyarrow.csv as as_csv
    import pyarrow.parquet as pq

    makers: dict[str, Any] = {
        ".parquet": pq.ParquetWriter,
        ".arrow": pa.ipc.new_stream,
        ".csv": as_csv.CSVWriter,
    }
    draft, writer, number = file.with_name(f".{file.name}.{os.getpid()}"), None, 0
    try:
        for tick in monitor.ticks():
            table = tick.to_arrow(confidence)
            if writer is None:
                writer = makers[file.suffix.lower()](str(draft), table.schema)
            writer.write_table(table.cast(writer.schema if hasattr(writer, "schema") else table.schema))
            number += 1
        if writer is None:
            raise InvalidParameter(f"The monitor {monitor.name} has released nothing yet.")
        writer.close()
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return number
