"""The benchmarks run to their end, and write their own section of a file without touching another's."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
MODES = ("grounded", "free", "licensed-static", "licensed-contextual")


def run(script: str, *arguments: str) -> str:
    """What a benchmark prints on one thread with tiny shapes."""
    command = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), "--quick", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    assert "failed:" not in done.stdout
    return done.stdout


def section(text: str, key: str) -> str:
    """What stands between a benchmark's two markers."""
    found = re.findall(f"<!-- {key}: begin -->\n(.*?)<!-- {key}: end -->", text, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def residuals(printed: str) -> list[float]:
    """The last cells of rows that end in a residual."""
    return [float(value) for value in re.findall(r"(\d\.\de[+-]\d+) *$", printed, re.MULTILINE)]


def pairs_of(printed: str, kernel: str) -> int:
    """How many pairs a kernel's row of `head_kernels` counts."""
    found = re.search(rf" {re.escape(kernel)} +reference +([\d,]+) ", printed)
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("table")


@pytest.fixture(scope="module")
def families() -> str:
    return run("families")


def test_every_family_has_residuals_of_rounding_only(families: str) -> None:
    found = re.search(r"Largest relative residual: (\S+) \(", families)
    assert found is not None
    assert float(found[1]) <= 1e-6


def test_every_family_is_measured_for_both_tasks_and_heads(families: str) -> None:
    measured = re.findall(r"^(\S+) .* (classification|tagging) +(\w+)", families, re.MULTILINE)
    assert len({family for family, _, _ in measured}) == 9
    assert len(set(measured)) == len(measured) == 9 * 2 * 2


def test_predictions_of_every_honesty_mode_are_explained_exactly_beside_a_dense_one() -> None:
    printed = run("predict_explain", "--device", "cpu")
    [dense] = re.findall(r" dense +[\d.,]+ +([\d.]+) ", printed)
    assert float(dense) == 1
    explained = re.findall(r"4×16 +(\S+) +predict \+ explain ", printed)
    assert sorted(explained) == sorted(MODES)
    assert len(residuals(printed)) == len(MODES)
    assert max(residuals(printed)) <= 1e-6


def test_kernels_are_timed_on_the_pairs_their_scans_find_and_only_their_section_is_refreshed(
    tmp_path: Path,
) -> None:
    results = tmp_path / "results.md"
    results.write_text(
        "# Title\n\n<!-- head_kernels-cpu: begin -->\nold\n<!-- head_kernels-cpu: end -->\n\n"
        "<!-- families: begin -->\nkept\n<!-- families: end -->\n",
        encoding="utf-8",
    )
    printed = run("head_kernels", "--device", "cpu", "--output", str(results))
    for scan in ("scan_pooled", "scan_positions", "scan_licensed"):
        assert pairs_of(printed, scan) == pairs_of(printed, f"{scan} + pair_logits") > 0
    text = results.read_text(encoding="utf-8")
    assert text.startswith("# Title\n")
    assert "old" not in text
    assert "- Machine: " in section(text, "head_kernels-cpu")
    assert section(text, "families") == "kept\n"


def test_a_row_that_fails_says_why_and_has_all_cells(table: ModuleType) -> None:
    def fail() -> list[object]:
        raise RuntimeError("CUDA out of memory. Tried to allocate 25 GiB")

    columns = ("name", "ms", "×", "MiB")
    assert table.attempt(("a",), columns, fail) == [
        "a", "failed: CUDA out of memory. Tried to allocate 25 GiB", "", "",
    ]  # fmt: skip
    assert table.attempt(("b",), columns, lambda: [1, 2, 3]) == ["b", 1, 2, 3]


@pytest.mark.slow
def test_one_size_of_the_head_varies_at_a_time() -> None:
    printed = run("scaling", "--device", "cpu")
    rows = re.findall(r"^([LVBC]) +(\d+) +(\d+) +(\d+) +(\d+) ", printed, re.MULTILINE)
    assert [row[0] for row in rows] == ["L", "L", "C", "C"]
    assert len({row[1:] for row in rows}) == 4


@pytest.mark.slow
def test_every_recipe_takes_a_step_beside_dense_fine_tuning() -> None:
    printed = run("training_step", "--device", "cpu")
    for name in ("default, grounded", "cis, free", "lexical-sae, free", "cajt, free", "ltt, free"):
        assert re.search(rf"4×16 +{name} +[\d.]", printed)
    assert len(residuals(printed)) == 10
    assert max(residuals(printed)) <= 1e-6


@pytest.mark.slow
def test_other_explainers_stand_beside_ours_or_say_what_they_lack() -> None:
    printed = run("explainers", "--device", "cpu")
    for name in ("integrated_gradients", "shap", "lime"):
        assert re.search(rf"^{name} +(\d|needs )", printed, re.MULTILINE)
        assert re.search(rf"^{name}: its passes alone +\d", printed, re.MULTILINE)
