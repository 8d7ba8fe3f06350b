"""What a user receives: names, versions, documents and a package that loads quickly."""

import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import splade

ROOT = Path(__file__).parents[1]
SOURCES = {".css", ".html", ".js", ".py", ".sh"}
OPTIONAL = {"captum", "fastapi", "lime", "matplotlib", "ray", "shap", "triton", "uvicorn"}
MODULES = sorted(
    m.name for m in pkgutil.walk_packages(splade.__path__, "splade.") if "__main__" not in m.name
)

# Written in pieces so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/" + r"(?:root|work|home/\w+|opt/pypi\S*|tmp/\w+)/")
REGISTRY_HOST = re.compile(
    r"pypi\." + r"org|python" + r"hosted\.org|download\.py" + r"torch\.org|anaconda\." + r"org"
)


def project_files() -> list[Path]:
    """The files git tracks or would track."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_public_names_are_sorted_and_each_resolves() -> None:
    assert list(splade.__all__) == sorted(set(splade.__all__))
    unresolved = [name for name in splade.__all__ if getattr(splade, name, None) is None]
    assert unresolved == []


def test_installed_version_is_the_package_version() -> None:
    try:
        installed = metadata.version("lexical-sae")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the installed distribution: run make setup")
    assert installed == splade.__version__


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"needs the optional {error.name}")


def test_readme_python_blocks_compile() -> None:
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("needs README.md")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.S)
    for number, block in enumerate(blocks, 1):
        compile(block, f"README.md, python block {number}", "exec")


def test_no_file_names_a_machine_path_or_a_registry() -> None:
    found = []
    for path in project_files():
        if path.suffix in {".safetensors", ".png"} or path.stat().st_size > 1_000_000:
            continue
        text = path.read_text(encoding="utf-8")
        hits = [match.group() for rule in (MACHINE_PATH, REGISTRY_HOST) for match in rule.finditer(text)]
        found += [f"{path.relative_to(ROOT)}: {hit}" for hit in hits]
    assert found == []


def test_no_source_file_exceeds_500_lines() -> None:
    sources = [path for path in project_files() if path.suffix in SOURCES]
    lengths = {str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in sources}
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_importing_the_package_alone_loads_no_torch() -> None:
    assert run_python("import sys, splade; print('torch' in sys.modules)").strip() == "False"


def test_importing_the_model_costs_little_beyond_torch() -> None:
    code = (
        "import torch, time; start = time.perf_counter(); from splade import LexicalSAE; "
        "print(time.perf_counter() - start)"
    )
    assert min(float(run_python(code)) for _ in range(3)) < 0.3
