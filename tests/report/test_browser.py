"""A browser opens a report without a word of complaint."""

import shutil
import subprocess
from pathlib import Path

import pytest

from splade.report.demo import demo_page
from tests.report.samples import RUNS

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_QUIETLY = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--dump-dom",
]
pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")]


def opened(page: str, tmp_path: Path) -> tuple[str, list[str]]:
    """The document as the browser has it, and what stands in its console."""
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    where = [f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "page.html").as_uri()]
    command = [str(BROWSER), *_QUIETLY, *where]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("run", ["classification", "hostile"])
def test_a_browser_shows_the_demonstration_without_complaint(run: str, tmp_path: Path) -> None:
    document, console = opened(demo_page(RUNS[run]), tmp_path)
    assert console == []
    assert "Predictions that are sums of words" in document


def test_a_page_that_breaks_its_own_policy_is_noticed(tmp_path: Path) -> None:
    broken = demo_page(RUNS["classification"]).replace("</main>", '<p style="color:red">x</p></main>')
    assert opened(broken, tmp_path)[1] != []
