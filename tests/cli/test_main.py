"""The frame of the command line: help, exit codes, and one line for whatever goes wrong."""

import errno
import io
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import splade
from splade.cli import main, verbs
from splade.cli.parser import EXAMPLES, parse

ROOT = Path(__file__).parents[2]
VERBS = ["demo", "train", "adapt", "predict", "explain", "evaluate", "compare", "edit", "data", "doctor"]


def shell(command: str) -> subprocess.CompletedProcess:
    line = command.replace("lexical-sae", f"{sys.executable} -m splade")
    return subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)


def raising(monkeypatch, problem: BaseException) -> None:
    """Makes the verb `doctor` end in `problem`."""

    def verb(options):
        raise problem

    monkeypatch.setattr(verbs, "doctor", verb)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_shows_an_example(run, verb) -> None:
    found = run(verb, "--help")
    assert found.code == 0
    assert f"lexical-sae {verb}" in found.out.split("examples:")[1]


def test_every_example_is_a_command_line_that_parses() -> None:
    lines = [line.strip() for text in EXAMPLES.values() for line in text.splitlines() if line.strip()]
    for line in lines:
        command = line.split("|")[-1].split(">")[0]
        name, *argv = shlex.split(command)
        assert name == "lexical-sae"
        assert callable(parse(argv).run)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from splade.cli import main; main(['train', '--help']); "
        "heavy = {'torch', 'transformers', 'numpy', 'pydantic', 'rich', 'sklearn'}; "
        "print(*heavy & set(sys.modules), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.split() == []


def test_the_module_runs_as_the_command_does() -> None:
    found = shell("lexical-sae --version")
    assert (found.returncode, found.stdout) == (0, f"lexical-sae {splade.__version__}\n")


@pytest.mark.parametrize("argv", [[], ["sing"], ["predict"], ["explain", "model", "text", "--loud"]])
def test_misuse_ends_with_exit_code_2(run, argv) -> None:
    found = run(*argv)
    assert found.code == 2
    assert "usage:" in found.err
    assert found.out == ""


def test_texts_may_stand_before_and_after_options() -> None:
    options = parse(["explain", "model", "--top", "3", "a", "b"])
    assert (options.model, options.texts, options.top) == ("model", ["a", "b"], 3)
    assert parse(["explain", "model", "a", "--top", "3", "b"]).texts == ["a", "b"]
    assert parse(["predict", "model", "--batch-size", "1", "--", "-a"]).texts == ["-a"]


def test_an_interrupt_is_one_line_and_130(run, monkeypatch) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    found = run("doctor")
    assert (found.code, found.err) == (130, "lexical-sae: interrupted\n")


def test_a_bug_is_one_line_that_says_how_to_see_more(run, monkeypatch) -> None:
    raising(monkeypatch, ZeroDivisionError("by\nzero"))
    monkeypatch.delenv("LEXICAL_SAE_DEBUG", raising=False)
    found = run("doctor")
    assert found.code == 1
    assert found.err.count("\n") == 1
    assert "ZeroDivisionError: by zero" in found.err
    assert "LEXICAL_SAE_DEBUG=1" in found.err
    monkeypatch.setenv("LEXICAL_SAE_DEBUG", "1")
    assert "Traceback" in run("doctor").err


def test_a_full_disk_is_one_line(refused, monkeypatch) -> None:
    raising(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "model"))
    assert "model: No space left on device" in refused("doctor")


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    found = shell("lexical-sae data topics --json > /dev/full")
    assert found.returncode == 2
    assert "No space left on device" in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_error() -> None:
    found = shell("lexical-sae data topics --json | true")
    assert (found.returncode, found.stderr) == (0, "")


def test_only_the_packages_own_warnings_are_shown_once_in_one_line(run, monkeypatch) -> None:
    def verb(options):
        for _ in range(2):
            warnings.warn_explicit("look\nhere", UserWarning, "x.py", 1, module="splade.data", registry=seen)
        warnings.warn_explicit("noise", UserWarning, "y.py", 1, module="elsewhere")
        warnings.warn_explicit("old", DeprecationWarning, "x.py", 2, module="splade.data")
        return 0

    seen: dict = {}
    monkeypatch.setattr(verbs, "doctor", verb)
    assert run("doctor").err == "lexical-sae: warning: look here\n"


def test_control_characters_in_an_error_do_not_reach_the_terminal(refused, tmp_path) -> None:
    line = refused("data", tmp_path / "\x1b[31mred.csv")
    assert "\x1b" not in line
    assert "\\x1b[31mred.csv" in line


def test_stderr_of_another_encoding_takes_every_message(monkeypatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["data", "ö.csv"]) == 2
    stream.flush()
    assert b"\\xf6.csv" in stream.buffer.getvalue()
