"""The method report and the comparison of periods: right about the noise, the same at each run, and without script."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.tabulation import (
    PublishedFigure,
    PublishedNumber,
    PublishedRelease,
    ReleaseTable,
    TableRelease,
    changes_between,
    faults_of,
    method_report,
    run_release,
)
from lapwing.tabulation.declaration import FileFormat, UnreliableCells
from tests.support.browser.chromium import find_chromium, running
from tests.support.release.small import GDP, opened, row

ROWS: Final = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
COUNTS: Final = ReleaseTable.margins(
    "n<b>", select="COUNT(*) AS n", source="visits", by=[[], ["plan"], ["plan", "size"]]
)
MEAN: Final = ReleaseTable(name="mean", query="SELECT plan, SUM(age) AS s, AVG(age) AS m FROM visits GROUP BY plan")
RELEASE: Final = TableRelease(title="Visits & more", epsilon=2, tables=(*COUNTS, MEAN))


def published(
    folder: Path, release: TableRelease = RELEASE, previous: PublishedRelease | None = None, rows: int = len(ROWS)
) -> Path:
    """Run a release on data of its own; return the manifest."""
    folder.mkdir()
    with opened(folder, ROWS[:rows], budget=GDP) as session:
        return run_release(session, release).write(folder / "out", previous=previous)


def test_the_page_has_the_published_numbers_and_no_script(tmp_path: Path) -> None:
    manifest = published(tmp_path / "a")
    release = PublishedRelease.from_file(manifest)
    page = manifest.with_name("method.html").read_text()
    words = [float(y) for y in re.findall(r'<text x="6" y="([0-9]+)"', page)]
    zeros = [float(y) for y in re.findall(r'<line x1="(?:[^"]*)" x2="[^"]*" y1="([0-9]+)" y2="(?!\1")', page)]
    assert words  # a chart
    assert all(zero > word for word, zero in zip(words, zeros, strict=True))  # no upright line crosses words
    assert page == method_report(release)  # read again from CSV, it is the same
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=", page)
    assert "n&lt;b&gt; by plan" in page
    assert "<b>" not in page
    number = next(one for one in release.numbers if one.table == "n<b> by plan, size")
    assert set(number.key_names) == {"plan", "size"}
    for keys, figure in number.figures.items():
        assert f"{number.where(keys)}: {figure.value:,.0f} ±{figure.half_width:,.0f}" in page
    unreliable = sum(figure.is_unreliable for figure in number.figures.values())
    assert f"{unreliable} of {len(number.figures)}" in page
    page_file = manifest.with_name("method.html")
    page_file.write_text(page.replace("95 %", "99 %"))
    assert faults_of(manifest) == ["method.html is not the file that was published"]
    with pytest.raises(InvalidParameter, match="not the file"):
        PublishedRelease.from_file(manifest)


def test_a_result_that_was_bought_before_counts_in_addition(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS, budget=GDP) as session:
        session.sql(COUNTS[0].query, epsilon=20)
        manifest = run_release(session, RELEASE).write(tmp_path / "out")
    page = manifest.with_name("method.html").read_text()
    assert "That cost counts in addition" in page
    assert "That cost counts in addition" not in published(tmp_path / "b").with_name("method.html").read_text()


def test_cells_that_are_left_out_have_no_number(tmp_path: Path) -> None:
    left = replace(RELEASE, unreliable_cells=UnreliableCells.LEAVE_OUT, formats=(FileFormat.PARQUET,), epsilon=0.1)
    release = PublishedRelease.from_file(published(tmp_path / "a", left))
    figures = [figure for number in release.numbers for figure in number.figures.values()]
    assert any(figure.is_unreliable for figure in figures)
    assert all((figure.value is None) == figure.is_unreliable for figure in figures)
    assert "left out" in method_report(release)


def test_adjusted_numbers_and_their_coverage_are_in_the_page(tmp_path: Path) -> None:
    manifest = published(tmp_path / "a", replace(RELEASE, adjusted=True))
    release = PublishedRelease.from_file(manifest)
    page = manifest.with_name("method.html").read_text()
    assert page == method_report(release)
    assert [number.name for number in release.numbers] == ["n", "n", "n", "s", "m"]  # released ones: no other is a key
    assert all("adjusted" not in "".join(number.key_names) for number in release.numbers)
    for table in release.manifest["tables"][:3]:
        effect = table["adjusted"]["columns"]["n_adjusted"]
        shown = f"{table['name']}: n_adjusted".replace("<b>", "&lt;b&gt;")
        (near, error) = re.search(rf">{shown}</td><td[^>]*>(.*?) %</td><td[^>]*>(.*?) %", page).groups()  # type: ignore[union-attr]
        assert float(near) == pytest.approx(100 * effect["average_coverage"], abs=0.6)
        assert float(error) == pytest.approx(100 * effect["error_relative_to_released"], abs=0.6)
    assert "Numbers that add up" in page
    assert "Numbers that add up" not in published(tmp_path / "b").with_name("method.html").read_text()


def test_periods_are_compared(tmp_path: Path) -> None:
    before = PublishedRelease.from_file(published(tmp_path / "a"))
    manifest = published(tmp_path / "b", previous=before, rows=30)
    now = PublishedRelease.from_file(manifest)
    page = manifest.with_name("method.html").read_text()
    assert page == method_report(now, before) != method_report(now)
    compared = changes_between(before, now)
    assert [each.number.name for each in compared] == ["n", "n", "n", "s", "m"]
    assert [each.confidence for each in compared[:3]] == [0.95, 0.95, 0.95]
    assert compared[4].confidence == 0.9  # of an average
    assert not compared[2].is_same
    assert all(each.is_same for each in changes_between(now, now))


def number_with(values: np.ndarray, half_width: float) -> PublishedRelease:
    figures: dict[tuple[object, ...], PublishedFigure] = {
        (str(place),): PublishedFigure(
            value=value, low=value - half_width, high=value + half_width, is_unreliable=False
        )
        for place, value in enumerate(values.tolist())
    }
    number = PublishedNumber(table="t", name="n", key_names=("k",), figures=figures, is_normal=True)
    return PublishedRelease(manifest={}, numbers=(number,))


def share_of_clear(now_half: float) -> float:
    """Return the share of changes beyond their ±, without any change in the data."""
    generator, cells = np.random.default_rng(7), 20_000
    normal = NormalDist().inv_cdf(0.975)
    before = number_with(generator.normal(0, 10, cells), 10 * normal)
    (each,) = changes_between(before, number_with(generator.normal(0, 30, cells), now_half * normal))
    return len(each.clear) / cells


def test_the_interval_of_a_change_knows_both_noises() -> None:
    """The twin: the noise of one release is forgotten."""
    assert share_of_clear(30) == pytest.approx(0.05, abs=0.006)
    assert share_of_clear(0) > 0.3


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_the_page_fits_screens_and_paper(tmp_path: Path) -> None:
    before = PublishedRelease.from_file(published(tmp_path / "a"))
    page = published(tmp_path / "b", previous=before).with_name("method.html")
    with running(find_chromium() or "") as browser:
        shown = browser.page()
        shown.go(page.as_uri())
        for width in (360, 768, 1440):
            shown.size(width, 900)
            assert shown.run("return document.documentElement.scrollWidth") <= width
        assert shown.run("return document.querySelectorAll('circle').length") == 6
        assert not shown.events("Log.entryAdded")  # such as a style that the policy refuses
        assert shown.ask("Page.printToPDF", {"preferCSSPageSize": True})["data"]
