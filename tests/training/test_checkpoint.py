"""A checkpoint comes back bit for bit or is named as damaged; kills and full disks spoil no earlier one."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from splade.errors import TrainingError
from splade.training import checkpoint
from splade.training.checkpoint import Checkpoints, flatten, restore_rng, rng_state, unflatten
from tests.training.nested_values import nested, plain, same


def state(step: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    return {"w": torch.full((64,), float(step)), "n": torch.tensor(step)}, {"best": -math.inf, "step": step}


@pytest.fixture
def saved(tmp_path: Path) -> Checkpoints:
    """Checkpoints of steps 10 and 20."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for step in (10, 20):
        checkpoints.save(step, *state(step))
    return checkpoints


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.folder.iterdir())


def quietly(checkpoints: Checkpoints) -> checkpoint.Saved | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return checkpoints.latest()


@given(nested)
def test_any_nested_state_comes_back_exactly(value: Any) -> None:
    found, values = flatten(value)
    json.dumps(values, allow_nan=False)
    assert same(unflatten(found, json.loads(json.dumps(values))), value)


@given(value=nested)
def test_any_nested_state_survives_the_disk(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("any"))
    checkpoints.save(3, *flatten(value))
    back = quietly(checkpoints)
    assert back is not None
    assert same(unflatten(back.tensors, back.values), value)


@given(st.dictionaries(st.text(max_size=4), plain | st.lists(plain, max_size=3), max_size=4))
def test_plain_values_need_no_flattening(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("plain"))
    checkpoints.save(0, {}, values)
    back = quietly(checkpoints)
    assert back is not None
    assert same(back.values, values)


def test_what_json_and_safetensors_cannot_hold_is_refused(saved: Checkpoints) -> None:
    with pytest.raises(TypeError, match=r"set \(model\.0\)"):
        flatten({"model": [{1, 2}]})
    with pytest.raises(TypeError, match="Tensor"):
        saved.save(30, {}, {"hidden": torch.zeros(2)})
    assert names(saved) == ["step-0000000010", "step-0000000020"]


def test_tensors_that_share_memory_are_kept_apart(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(3, 4)
    given = {"all": base, "again": base, "row": base[1], "turned": base.T, "wide": base[:, :1].expand(3, 5)}
    given["parameter"] = nn.Parameter(base)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(0, given, {})
    back = quietly(checkpoints)
    assert back is not None
    assert same(back.tensors, {name: given[name].detach() for name in back.tensors})
    assert back.tensors.keys() == given.keys()
    back.tensors["all"].zero_()
    assert same(back.tensors["again"], base)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.randn(5, 8)).square().mean().backward()
    optimizer.step()


def test_training_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        groups = [{"params": [p for p in model.parameters() if p.ndim == n], "lr": n / 10} for n in (1, 2)]
        return model, torch.optim.AdamW(groups)

    model, optimizer = fresh()
    for _ in range(3):
        step(model, optimizer)
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": rng_state()}
    Checkpoints(tmp_path).save(3, *flatten(parts))
    for _ in range(3):
        step(model, optimizer)

    resumed, its_optimizer = fresh()
    back = quietly(Checkpoints(tmp_path))
    assert back is not None
    parts = unflatten(back.tensors, back.values)
    resumed.load_state_dict(parts["model"])
    its_optimizer.load_state_dict(parts["optimizer"])
    restore_rng(parts["rng"])
    for _ in range(3):
        step(resumed, its_optimizer)
    assert same(dict(resumed.state_dict()), dict(model.state_dict()))


def test_every_source_of_chance_goes_on_where_it_was(tmp_path: Path) -> None:
    def draws() -> list[Any]:
        own = [torch.rand(3), torch.randn(3), random.random(), random.gauss(0, 1)]
        return [*own, float(np.random.rand()), float(np.random.standard_normal())]

    draws()  # leaves python and numpy with a second normal in hand
    Checkpoints(tmp_path).save(0, *flatten(rng_state()))
    first = draws()
    draws()
    back = quietly(Checkpoints(tmp_path))
    assert back is not None
    restore_rng(unflatten(back.tensors, back.values))
    assert same(draws(), first)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_goes_on_where_it_was() -> None:
    before = unflatten(*flatten(rng_state()))
    first = torch.rand(5, device="cuda")
    restore_rng(before)
    assert torch.equal(torch.rand(5, device="cuda"), first)


def test_states_of_gpus_that_are_not_here_are_left_out() -> None:
    before = rng_state()
    here = len(before["cuda"])
    restore_rng({**before, "cuda": [*before["cuda"], torch.zeros(16, dtype=torch.uint8)]})
    assert len(rng_state()["cuda"]) == here


def test_the_newest_few_are_kept(tmp_path: Path) -> None:
    for keep in (1, 3):
        checkpoints = Checkpoints(tmp_path / str(keep), keep)
        for number in range(5):
            checkpoints.save(number, *state(number))
        assert names(checkpoints) == [f"step-{number:010d}" for number in range(5 - keep, 5)]
        back = quietly(checkpoints)
        assert back is not None
        assert (back.step, back.values["best"], int(back.tensors["n"])) == (4, -math.inf, 4)


def test_an_empty_or_missing_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert quietly(Checkpoints(tmp_path)) is None
    assert quietly(Checkpoints(tmp_path / "missing")) is None


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for number in (9_999_999_999, 10_000_000_000):
        checkpoints.save(number, *state(1))
    back = quietly(checkpoints)
    assert back is not None
    assert back.step == 10_000_000_000


def test_the_same_step_may_be_saved_again(saved: Checkpoints) -> None:
    saved.save(20, {"w": torch.ones(2)}, {"again": True})
    back = quietly(saved)
    assert back is not None
    assert back.values == {"again": True}
    assert names(saved) == ["step-0000000010", "step-0000000020"]


def test_a_kill_while_a_step_is_saved_again_loses_nothing(saved: Checkpoints) -> None:
    only = saved.folder / "step-0000000020"
    only.rename(only.with_name("step-0000000020.old"))  # the moment before the new one takes its name
    back = quietly(saved)
    assert back is not None
    assert back.step == 20
    saved.save(20, *state(20))
    assert names(saved) == ["step-0000000010", "step-0000000020"]


def test_saving_an_earlier_step_ends_the_later_ones(saved: Checkpoints) -> None:
    saved.save(15, *state(15))
    back = quietly(saved)
    assert back is not None
    assert back.step == 15
    assert names(saved) == ["step-0000000010", "step-0000000015"]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.write_text('["not a record"]', encoding="utf-8")


def from_the_future(path: Path) -> None:
    path.write_text('{"format": 99}', encoding="utf-8")


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00" * 20)


def missing(path: Path) -> None:
    path.unlink()


DAMAGE = [
    (name, damage)
    for name, several in {
        "state.safetensors": [truncated, flipped, emptied, foreign, missing],
        "state.json": [truncated, flipped, emptied, foreign, from_the_future, binary, missing],
    }.items()
    for damage in several
]


@pytest.mark.parametrize(("name", "damage"), DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
    saved: Checkpoints, name: str, damage: Callable[[Path], None]
) -> None:
    damage(saved.folder / "step-0000000020" / name)
    with pytest.warns(UserWarning, match=rf"step-0000000020/{name} .*: step-0000000010 is used") as told:
        back = saved.latest()
    assert len(told) == 1
    assert "\n" not in str(told[0].message)
    assert back is not None
    assert (back.step, int(back.tensors["n"])) == (10, 10)


def test_no_flipped_byte_goes_unnoticed(saved: Checkpoints) -> None:
    for path in sorted((saved.folder / "step-0000000020").iterdir()):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with pytest.warns(UserWarning, match=path.name):
                back = saved.latest()
            assert back is not None
            assert back.step == 10
        path.write_bytes(whole)
    assert quietly(saved) is not None


def test_a_checkpoint_under_another_step_is_not_believed(saved: Checkpoints) -> None:
    shutil.copytree(saved.folder / "step-0000000010", saved.folder / "step-0000000030")
    with pytest.warns(UserWarning, match="step-0000000030"):
        back = saved.latest()
    assert back is not None
    assert back.step == 20


def test_when_all_are_damaged_the_error_says_what_to_do(saved: Checkpoints) -> None:
    for folder in saved.folder.iterdir():
        truncated(folder / "state.safetensors")
    with pytest.raises(TrainingError, match=r"0020/.*; .*0010/.*remove .* and train from the start"):
        saved.latest()


def test_an_unfinished_checkpoint_is_named_and_swept(saved: Checkpoints) -> None:
    left = saved.folder / ".unfinished-step-0000000030-x"
    shutil.copytree(saved.folder / "step-0000000020", left)
    (left / "state.json").unlink()
    with pytest.warns(UserWarning, match=r"0030-x was never finished: step-0000000020 is used"):
        back = saved.latest()
    assert back is not None
    assert back.step == 20
    assert not left.exists()


def test_what_a_kill_left_is_swept_by_the_next_save(saved: Checkpoints) -> None:
    for name in (".unfinished-step-0000000030-x", ".discarded-step-0000000005"):
        (saved.folder / name).mkdir()
    saved.save(30, *state(30))
    assert names(saved) == ["step-0000000020", "step-0000000030"]


def test_a_kill_while_an_old_one_is_removed_leaves_no_damaged_one(
    saved: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, **_: object) -> None:
        if path.is_dir():
            (path / "state.json").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.shutil, "rmtree", half)
        with pytest.raises(KeyboardInterrupt):
            saved.save(30, *state(30))
    assert [name for name in names(saved) if name.startswith("step")] == [
        "step-0000000020",
        "step-0000000030",
    ]
    back = quietly(saved)
    assert back is not None
    assert back.step == 30


def test_a_first_checkpoint_that_was_never_finished_is_none(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-step-0000000001-x").mkdir()
    with pytest.warns(UserWarning, match="never finished: there is no earlier one"):
        assert Checkpoints(tmp_path).latest() is None


KILLED = """
import os, sys, signal
from pathlib import Path
import torch
from splade.training import checkpoint
countdown = int(sys.argv[2])

def fatal(function):
    def call(*arguments, **options):
        global countdown
        countdown -= 1
        if countdown < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

checkpoint.save_file = fatal(checkpoint.save_file)
checkpoint._sync = fatal(checkpoint._sync)
checkpoint.json.dump = fatal(checkpoint.json.dump)
checkpoint.shutil.rmtree = fatal(checkpoint.shutil.rmtree)
Path.rename = fatal(Path.rename)
Path.mkdir = fatal(Path.mkdir)
checkpoints = checkpoint.Checkpoints(Path(sys.argv[1]), keep=1)
for step in (20, 20, 30):
    checkpoints.save(step, {"n": torch.tensor(step)}, {"step": step})
"""


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    start = Checkpoints(tmp_path / "start", keep=1)
    start.save(10, {"n": torch.tensor(10)}, {"step": 10})
    reached = set()
    for moment in range(60):
        folder = tmp_path / str(moment)
        shutil.copytree(start.folder, folder)
        end = in_a_fork(KILLED, str(folder), str(moment))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            back = Checkpoints(folder, keep=1).latest()
        assert back is not None, moment
        assert back.step == back.values["step"] == int(back.tensors["n"])
        reached.add(back.step)
        if end == 0:
            break
        assert end == -signal.SIGKILL
    assert end == 0
    assert reached == {10, 20, 30}


def in_a_fork(code: str, *arguments: str) -> int:
    """Exit status of code that ran in a child; a fork, for importing torch anew takes seconds."""
    child = os.fork()
    if child == 0:
        sys.argv = ["code", *arguments]
        try:
            exec(code, {"__name__": "code"})
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_full_disk_is_one_line_and_the_previous_one_stays(
    saved: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in ("save_file", "_sync"):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, place, full)
            with pytest.raises(TrainingError, match=r"No space left .* are kept: make room") as told:
                saved.save(30, *state(30))
        assert "\n" not in str(told.value)
        assert names(saved) == ["step-0000000010", "step-0000000020"]
    back = quietly(saved)
    assert back is not None
    assert int(back.tensors["n"]) == 20


def test_a_file_that_may_not_grow_is_a_full_disk(saved: Checkpoints) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(TrainingError, match="cannot keep checkpoints"):
            saved.save(30, {"w": torch.zeros(1 << 16)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(saved) == ["step-0000000010", "step-0000000020"]
    back = quietly(saved)
    assert back is not None
    assert back.step == 20


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(TrainingError, match="cannot keep checkpoints"):
        Checkpoints(tmp_path / "file").save(1, *state(1))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_clearing_removes_checkpoints_and_nothing_else(saved: Checkpoints) -> None:
    (saved.folder / ".unfinished-step-0000000030-x").mkdir()
    (saved.folder / "notes.txt").write_text("mine", encoding="utf-8")
    (saved.folder / "step-by-step").mkdir()
    saved.clear()
    assert names(saved) == ["notes.txt", "step-by-step"]
    assert quietly(saved) is None


def test_clearing_leaves_no_empty_folder(saved: Checkpoints) -> None:
    saved.clear()
    assert not saved.folder.exists()
    saved.clear()


def test_links_are_never_followed_out_of_the_folder(saved: Checkpoints, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(saved.folder / "step-0000000020", elsewhere)
    for name in ("step-0000000090", ".unfinished-x", ".discarded-x"):
        (saved.folder / name).symlink_to(elsewhere)
    back = quietly(saved)
    assert back is not None
    assert back.step == 20
    saved.clear()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["state.json", "state.safetensors"]


@pytest.mark.parametrize(
    "make", [lambda p: Checkpoints(p, keep=0), lambda p: Checkpoints(p).save(-1, {}, {})]
)
def test_senseless_numbers_are_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    with pytest.raises(ValueError, match="is"):
        make(tmp_path)
    assert list(tmp_path.iterdir()) == []
