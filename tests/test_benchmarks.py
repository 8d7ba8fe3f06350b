"""The benchmarks run to their end, and write their own section of a file without touching another's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = ("fast_path", "families")
RESIDUAL = re.compile(r"[Ll]argest relative residual[^:\d]*:? (\d\.\d+e[+-]\d+)")


def run(script: str, *arguments: str) -> str:
    """What a benchmark prints on one thread with tiny shapes."""
    command = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), "--quick", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


def section(text: str, key: str) -> str:
    """What stands between a benchmark's two markers."""
    found = re.findall(f"<!-- {key}: begin -->\n(.*?)<!-- {key}: end -->", text, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    return {script: run(script) for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_prints_residuals_of_rounding_only(script: str, printed: dict[str, str]) -> None:
    residuals = [float(value) for value in RESIDUAL.findall(printed[script])]
    assert len(residuals) == {"fast_path": 3, "families": 1}[script]
    assert max(residuals) <= 1e-6


def test_the_fast_path_is_compared_with_its_base(printed: dict[str, str]) -> None:
    lines = printed["fast_path"].splitlines()
    base = next(line.split() for line in lines if "backbone + decoder" in line)
    assert base.count("1.00") == 2
    compared = re.compile(r"(grounded|free|licensed-static) +(fast|tensors)")
    assert sum(compared.match(line) is not None for line in lines) == 3 * 4


def test_both_ways_of_the_fast_path_benchmark_agree(printed: dict[str, str]) -> None:
    apart = re.findall(r"two ways differ by (\S+) of", printed["fast_path"])
    assert len(apart) == 3
    assert max(map(float, apart)) <= 1e-5


def test_every_family_is_measured_for_both_tasks_and_heads(printed: dict[str, str]) -> None:
    measured = re.findall(r"^(\S+) .* (classification|tagging) +(\w+)", printed["families"], re.MULTILINE)
    assert len({family for family, _, _ in measured}) == 9
    assert len(set(measured)) == len(measured) == 9 * 2 * 2


def test_a_section_is_refreshed_alone(tmp_path: Path) -> None:
    results = tmp_path / "results.md"
    results.write_text(
        "# Title\n\n<!-- fast_path: begin -->\nold\n<!-- fast_path: end -->\n\n"
        "<!-- families: begin -->\nkept\n<!-- families: end -->\n",
        encoding="utf-8",
    )
    run("fast_path", "--output", str(results))
    text = results.read_text(encoding="utf-8")
    assert text.startswith("# Title\n")
    assert "old" not in text
    assert "- Machine: " in section(text, "fast_path")
    assert section(text, "families") == "kept\n"
