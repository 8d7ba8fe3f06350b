"""Checkpoints that a killed process cannot spoil: safetensors and JSON only, whole or not there at all.

1. A checkpoint is written under a temporary name in its folder, synced, renamed, and the folder synced.
2. Only then older ones go, each by a rename first; a kill at any moment leaves the newest whole one.
3. `state.json` holds the plain values and the checksums of both files; `latest` believes nothing else.
   A damaged checkpoint is named and the one before it used. No path is ever read out of a file.
4. `flatten` turns what an optimiser gives into named tensors and JSON, `unflatten` turns it back.

The folder belongs to one process at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from splade.errors import TrainingError
from splade.training.nested import flatten, pack, unflatten, unpack

__all__ = ["Checkpoints", "Saved", "flatten", "restore_rng", "rng_state", "unflatten"]

FORMAT = 1
TENSORS, VALUES = "state.safetensors", "state.json"
_COMPLETE = re.compile(r"step-(\d{10,})(\.old)?")
_UNFINISHED, _DISCARDED = ".unfinished-", ".discarded-"


@dataclass(frozen=True)
class Saved:
    """What a checkpoint held; the tensors are on the CPU."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    path: Path


class DamagedError(Exception):
    """Which file of a checkpoint cannot be believed, and why."""


class Checkpoints:
    """The newest `keep` states of a run, one folder `step-0000000123` each."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep}: at least one checkpoint has to stay")
        self.folder, self.keep = folder, keep

    @classmethod
    def beside(cls, output: Path) -> Checkpoints:
        """Those of a run that writes the folder `output`, which each better model replaces whole."""
        return cls(output.with_name(f"{output.name}.checkpoints"))

    def save(self, step: int, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Write a checkpoint; then remove what is older than the newest `keep`, or later than `step`."""
        if step < 0:
            raise ValueError(f"step is {step}: steps are counted from zero")
        with self._refusals():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            prefix = f"{_UNFINISHED}{_name(step)}-"
            fresh = Path(tempfile.mkdtemp(dir=self.folder, prefix=prefix))
            try:
                _write(fresh, step, tensors, values)
                self._take_place(fresh, self.folder / _name(step))
                _sync(self.folder)
                _sync(self.folder.parent)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
            self._prune(step)

    def latest(self) -> Saved | None:
        """The newest intact checkpoint, None where none was ever completed; damaged ones are named."""
        with self._refusals():
            problems = [f"{path} was never finished" for path in self._entries(_UNFINISHED)]
            self._sweep()
            complete = self._complete()
        found = None
        for step, path in complete:
            try:
                found = _read(path, step)
                break
            except DamagedError as problem:
                problems.append(str(problem))
        told = "; ".join(problems)
        if found is None and complete:
            raise TrainingError(
                f"no intact checkpoint: {told}; remove {self.folder} and train from the start"
            )
        if problems:
            instead = "there is no earlier one" if found is None else f"{found.path.name} is used"
            warnings.warn(f"{told}: {instead}", stacklevel=2)
        return found

    def clear(self) -> None:
        """Remove every checkpoint, and the folder when nothing else is in it."""
        with self._refusals():
            for _, path in self._complete():
                self._discard(path)
            self._sweep()
        with contextlib.suppress(OSError):  # it holds something else, or was never made
            self.folder.rmdir()

    def _complete(self) -> list[tuple[int, Path]]:
        """(step, folder), newest first; of one step the one that is being replaced comes last."""
        named = [(_COMPLETE.fullmatch(path.name), path) for path in self._entries("step-")]
        found = [(int(match[1]), path) for match, path in named if match]
        return sorted(found, key=lambda one: (-one[0], one[1]))

    def _entries(self, prefix: str) -> list[Path]:
        """Folders, not links to folders, whose name opens so."""
        inside = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [p for p in inside if p.name.startswith(prefix) and p.is_dir() and not p.is_symlink()]

    def _take_place(self, fresh: Path, target: Path) -> None:
        retired = target.with_name(f"{target.name}.old")
        if target.exists():
            if retired.exists():
                self._discard(retired)
            target.rename(retired)
        fresh.rename(target)

    def _prune(self, step: int) -> None:
        """Keep the newest `keep`; whatever is later than `step` belongs to a course that was given up."""
        kept = 0
        for found, path in self._complete():
            current = found <= step and not path.name.endswith(".old")
            kept += current
            if not current or kept > self.keep:
                self._discard(path)

    def _discard(self, path: Path) -> None:
        """Remove a checkpoint so that a kill half-way leaves nothing that looks like one."""
        doomed = path.with_name(f"{_DISCARDED}{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what a killed process left."""
        for path in [*self._entries(_UNFINISHED), *self._entries(_DISCARDED)]:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say in one line why the disk refused."""
        try:
            yield
        except (OSError, SafetensorError) as problem:
            reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())
            raise TrainingError(
                f"cannot keep checkpoints in {self.folder}: {reason}; those already there are kept: "
                "make room or give access, then resume"
            ) from problem


def rng_state() -> dict[str, Any]:
    """The state of every global source of random numbers, as `flatten` takes it."""
    version, words, gauss = random.getstate()
    kind, keys, *rest = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": [version, torch.tensor(words), gauss],
        "numpy": [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
    }


def restore_rng(state: Mapping[str, Any]) -> None:
    """Go on drawing where `rng_state` was taken; states of GPUs that are not here are left out."""
    torch.set_rng_state(state["torch"])
    present = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for device, own in enumerate(state["cuda"][:present]):
        torch.cuda.set_rng_state(own, device)
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))


def _name(step: int) -> str:
    return f"step-{step:010d}"


def _write(folder: Path, step: int, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    save_file(_storable(tensors), folder / TENSORS)
    record = {"format": FORMAT, "step": step, "tensors_sha256": _file_sha256(folder / TENSORS)}
    record["values"] = pack(values)
    record["sha256"] = _sha256(record)
    with (folder / VALUES).open("w", encoding="ascii") as file:
        json.dump(record, file, allow_nan=False)
    for path in (folder / TENSORS, folder / VALUES, folder):
        _sync(path)


def _storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors on the CPU, no two of which share memory, as safetensors asks."""
    seen: set[int] = set()
    stored = {}
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        memory = own.untyped_storage().data_ptr()
        stored[name] = own.clone() if memory in seen else own
        seen.add(memory)
    return stored


def _read(folder: Path, step: int) -> Saved:
    """The checkpoint in `folder`, or `DamagedError` with the file that is wrong."""
    record = _read_record(folder / VALUES, step)
    path = folder / TENSORS
    try:
        if _file_sha256(path) != record["tensors_sha256"]:
            raise DamagedError(f"{path} is damaged (its checksum does not match)")
        # Copies, so that nothing depends on the file or on where in it a tensor stood.
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as problem:
        raise DamagedError(f"{path} {_why(problem)}") from problem
    return Saved(step, tensors, unpack(record["values"]), folder)


def _read_record(path: Path, step: int) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise DamagedError(f"{path} {_why(problem)}") from problem
    if not isinstance(record, dict):
        raise DamagedError(f"{path} is damaged (it holds no record)")
    if record.get("format", FORMAT) != FORMAT:
        raise DamagedError(f"{path} has format {record['format']}, which this version does not read")
    if record.pop("sha256", None) != _sha256(record) or record["step"] != step:
        raise DamagedError(f"{path} is damaged (its checksum does not match)")
    return record


def _why(problem: Exception) -> str:
    if isinstance(problem, FileNotFoundError):
        return "is missing"
    if isinstance(problem, OSError):
        return f"cannot be read ({problem.strerror})"
    return f"is damaged ({' '.join(str(problem).split())[:100]})"


def _sha256(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode("ascii")).hexdigest()


def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
