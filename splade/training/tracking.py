"""Figures of each epoch to TensorBoard or Weights & Biases, through accelerate, which is optional."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError
from splade.training.history import Epoch
from splade.training.progress import Progress

if TYPE_CHECKING:
    from splade.training.progress import Figures


def require_tracker(tracker: str) -> None:
    """Say what to install where the tracker, or accelerate, is not."""
    missing = [name for name in ("accelerate", tracker) if tracker != "none" and not _installed(name)]
    if missing:
        raise ConfigError(
            f"training.tracker {tracker} needs {' and '.join(missing)}: pip install {' '.join(missing)}"
        )


@contextlib.contextmanager
def tracked(progress: Progress, config: ExperimentConfig, output: Path) -> Iterator[Progress]:
    """A progress that also tells the tracker of the config, if it names one, about every epoch.

    Files go beside `output`, which every better model replaces whole.
    """
    tracker = config.training.tracker
    if tracker == "none":
        yield progress
        return
    require_tracker(tracker)
    place = output.with_name(f"{output.name}.tracker")
    accelerator = import_module("accelerate").Accelerator(log_with=tracker, project_dir=str(place))
    try:
        accelerator.init_trackers(output.name, config=_plain(config.model_dump(mode="json")))
        yield _Tracked(progress, accelerator)
    finally:
        accelerator.end_training()


class _Tracked(Progress):
    """Shows what another progress shows, and logs the epochs."""

    def __init__(self, progress: Progress, accelerator: Any) -> None:
        super().__init__(progress.console)
        self._accelerator = accelerator

    def epoch(self, figures: Figures) -> None:
        """One line, and one step of the tracker."""
        super().epoch(figures)
        if isinstance(figures, Epoch):
            self._accelerator.log(epoch_figures(figures), step=figures.epoch + 1)


def epoch_figures(epoch: Epoch) -> dict[str, float]:
    """Every number of an epoch under a name of its own; what was not measured is left out."""
    validation = {} if epoch.validation is None else asdict(epoch.validation)
    named: dict[str, float | None] = {
        "train/loss": epoch.loss,
        **{f"train/{name}": value for name, value in epoch.terms.items()},
        **{f"validation/{name}": value for name, value in validation.items()},
        **{f"multiplier/{name}": value for name, value in epoch.multipliers.items()},
        "tau": epoch.tau,
        "rate": epoch.rate,
        "seconds": epoch.seconds,
    }
    return {name: value for name, value in named.items() if value is not None}


def _plain(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str | int | float]:
    """Dotted keys; a list or null as text, which TensorBoard asks for."""
    found: dict[str, str | int | float] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= _plain(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value if isinstance(value, str | int | float) else str(value)
    return found


def _installed(name: str) -> bool:
    return find_spec(name) is not None
