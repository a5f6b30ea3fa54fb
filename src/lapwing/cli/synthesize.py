"""`lapwing synthesize`: rows that nobody has, written to a file, with a report of how near they are."""

import csv
import io
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures, options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, show, text
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.synthesis import SyntheticTable

EXAMPLE: Final = options.examples(
    "lapwing synthesize age plan ill --epsilon 1 --output rows.parquet",
    "lapwing synthesize age plan ill --epsilon 1 --method mst --output rows.csv --report report.json",
)
SUFFIXES: Final = (".parquet", ".arrow", ".csv")


class MethodOption(StrEnum):
    """How the tables are chosen that are measured."""

    aim = "aim"
    mst = "mst"
    residual = "residual"


def command(
    columns: Annotated[list[str], typer.Argument(metavar="COLUMN", help="Two or more columns.", show_default=False)],
    epsilon: Annotated[
        Fraction,
        options.amount(
            options.above_zero("--epsilon"), "The cost of all tables together, in epsilon (ε).", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="For the rows: .parquet, .arrow or .csv.", show_default=False
        ),
    ],
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table; needed if there are several.", show_default=False)
    ] = None,
    method: Annotated[
        MethodOption,
        typer.Option(help="How to choose tables: one after another, a tree of pairs, or the whole workload."),
    ] = MethodOption.aim,
    workload: Annotated[
        int, typer.Option(metavar="N", min=1, max=4, help="Match the tables of all combinations of N columns.")
    ] = 2,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="The number of rows; default: about as many as the data have.", show_default=False
        ),
    ] = None,
    bins: Annotated[
        int, typer.Option(metavar="N", help="Divide the range of a bounded column into at most N bins.")
    ] = 16,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="A condition on the rows, in SQL.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every measured number next to the synthetic one, with its interval: .csv or .json.",
            show_default=False,
        ),
    ] = None,
    label: options.Label = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Pay for noisy tables of some columns, and write synthetic rows that agree with them.

    Needs the extra: pip install 'lapwing-dp[synthesis]'. Takes seconds to minutes.
    """
    _require(output, SUFFIXES)
    if report is not None:
        _require(report, (".csv", ".json"))
    with lw.connect(catalog) as session:
        synthetic = session.synthesize(
            columns,
            epsilon=epsilon,
            table=table,
            rows=rows,
            method=method.value,
            workload=workload,
            bins=bins,
            where=where,
            label=label or "synthesize rows",
        )
        _write(synthetic, output)
        if report is not None:
            report.write_text(_report(synthetic, report.suffix), encoding="utf-8")
        view = session.budget(history=False)
    facts = [
        ("rows", f"{len(synthetic):,}, in {output}"),
        ("error", f"{synthetic.error}, over {synthetic.error.tables:,} tables"),
    ]
    show(labelled(*facts), Text(), _tables(synthetic))
    note("cost", f"{figures.loss(synthetic.cost)}; {figures.share(1 - view.share_spent)} of the budget left")
    if synthetic.left_out:
        note("note", f"{len(synthetic.left_out):,} tables of the workload have too many cells, and were not checked.")
    note("note", synthetic.warning)


def _tables(synthetic: "SyntheticTable") -> Fitted:
    """Return a line for each measured table, the worst of the small ones first."""
    tables = new_table("measured", "cells", "±", "inside", numbers=("cells", "±", "inside"))
    for one in sorted(synthetic.report, key=lambda one: (len(one.columns), one.inside)):
        inside = f"{100 * one.inside:.0f} %"
        tables.add_row(
            text(" × ".join(one.columns)), text(f"{one.measured.size:,}"), text(f"{one.half_width:,}"), text(inside)
        )
    return Fitted(tables)


def _require(path: Path, suffixes: tuple[str, ...]) -> None:
    if path.suffix not in suffixes or path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidParameter(
            f"{path} cannot be written; choose a file in a folder that exists, whose name ends in "
            f"{', '.join(suffixes[:-1])} or {suffixes[-1]}. Nothing was charged."
        )


def _write(synthetic: "SyntheticTable", output: Path) -> None:
    import pyarrow as pa  # here, so that `lapwing --help` does not load it
    import pyarrow.csv
    import pyarrow.parquet as pq

    rows = synthetic.to_arrow()
    if output.suffix == ".parquet":
        pq.write_table(rows, output)
    elif output.suffix == ".csv":
        pyarrow.csv.write_csv(rows, output)
    else:
        with pa.OSFile(str(output), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)


def _report(synthetic: "SyntheticTable", suffix: str) -> str:
    """Return every measured number beside the synthetic one."""
    if suffix == ".json":
        tables = [
            {"columns": one.columns, "half_width": one.half_width, "cells": list(one.rows())}
            for one in synthetic.report
        ]
        error = {name: getattr(synthetic.error, name) for name in ("estimate", "low", "high", "tables")}
        return to_json({"method": synthetic.method, "error": error, "tables": tables, "warning": synthetic.warning})
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["columns", "cell", "measured", "low", "high", "synthetic"])
    for one in synthetic.report:
        for row in one.rows():
            cell = " × ".join(row[name] for name in one.columns)
            writer.writerow([" × ".join(one.columns), cell, row["measured"], row["low"], row["high"], row["synthetic"]])
    return lines.getvalue()
