"""What a model loses when it reads an autoencoder's ĥ in place of h, beside how much of h the ĥ explains.

Measured on rows that the autoencoder was not trained on; variance, features and silence over the positions
the model reads: the text of documents, the labelled positions when tagging.

Legend: N rows, C classes, P positions, H width of h, F features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from splade.circuits.prediction import prediction_loss
from splade.data.encoding import Batch
from splade.inference.rows import decide
from splade.mechanistic.sae import SparseAutoencoder, splice
from splade.models.lexical_sae import LexicalSAE

_POSITIONS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class Spliced:
    """`l0` features fire at a position on average, the share `dead` at none; changes are spliced - plain.

    `agreement` is the share of rows decided alike.
    """

    kind: str
    features: int
    positions: int
    rows: int
    explained_variance: float
    l0: float
    dead: float
    accuracy: float
    accuracy_change: float
    cross_entropy: float
    cross_entropy_change: float
    agreement: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys."""
        return asdict(self)


class SpliceFitter:
    """Compares a model with itself reading ĥ, batch by batch of labelled rows."""

    def __init__(self, model: LexicalSAE, sae: SparseAutoencoder) -> None:
        self.model, self.sae = model, sae
        self._explained = _Explained(sae)
        self._rows = self._same = 0
        self._right, self._loss = [0, 0], [0.0, 0.0]  # plain, spliced

    @torch.no_grad()
    def update(self, batch: Batch) -> None:
        """Count a batch: three passes of the model."""
        model = self.model.eval()
        h_BLH = model.backbone(batch.input_ids, batch.attention_mask)
        read_BL = model.lexicon.valid(batch.input_ids, batch.attention_mask)
        self._explained.update(h_BLH[read_BL if batch.row_mask is None else batch.row_mask])
        plain_NC = decide(model, batch).logits
        with splice(model, self.sae):
            spliced_NC = decide(model, batch).logits
        labels = batch.labels_N
        decided = [_decided(logits_NC, labels) for logits_NC in (plain_NC, spliced_NC)]
        self._rows += len(plain_NC)
        self._same += _equal_rows(*decided)
        for i, logits_NC in enumerate((plain_NC, spliced_NC)):
            self._right[i] += _equal_rows(decided[i], labels)
            self._loss[i] += float(prediction_loss(logits_NC, labels)) * len(logits_NC)

    def result(self) -> Spliced:
        """The figures of everything counted so far; zeros when nothing was."""
        explained, rows = self._explained, max(self._rows, 1)
        return Spliced(
            self.sae.kind,
            self.sae.features,
            explained.positions,
            self._rows,
            explained_variance=explained.variance(),
            l0=explained.fired / max(explained.positions, 1),
            dead=1 - float(explained.ever_F.double().mean()),
            accuracy=self._right[0] / rows,
            accuracy_change=(self._right[1] - self._right[0]) / rows,
            cross_entropy=self._loss[0] / rows,
            cross_entropy_change=(self._loss[1] - self._loss[0]) / rows,
            agreement=self._same / rows,
        )


class _Explained:
    """Sums over positions, in float64."""

    def __init__(self, sae: SparseAutoencoder) -> None:
        self.sae, device = sae, sae.mean_H.device
        self.positions = self.fired = 0
        self.ever_F = torch.zeros(sae.features, dtype=torch.bool, device=device)
        self._sum_H = torch.zeros(len(sae.mean_H), dtype=torch.double, device=device)
        self._square = self._error = 0.0

    def update(self, h_PH: Tensor) -> None:
        """Count positions, a bounded number at a time."""
        for part_PH in torch.split(h_PH, _POSITIONS_AT_ONCE):
            f_PF = self.sae.encode(part_PH)
            # what the training mean explains is no feature's doing, but centring keeps the digits of the sums
            x_PH = part_PH.double() - self.sae.mean_H
            self._error += float((part_PH.double() - self.sae.decode(f_PF)).square().sum())
            self._sum_H += x_PH.sum(0)
            self._square += float(x_PH.square().sum())
            self.ever_F |= (f_PF > 0).any(0)
            self.fired += int((f_PF > 0).sum())
            self.positions += len(part_PH)

    def variance(self) -> float:
        """1 - Σ‖h - ĥ‖² / Σ‖h - mean h‖²; 0 where h does not vary."""
        total = self._square - float(self._sum_H.square().sum()) / max(self.positions, 1)
        return 1 - self._error / total if total > 0 else 0.0


def _decided(logits_NC: Tensor, labels: Tensor) -> Tensor:
    """The most probable class, or every class that is more probable than not where a row has several."""
    return logits_NC.argmax(-1) if labels.ndim == 1 else (logits_NC > 0).to(labels.dtype)


def _equal_rows(one: Tensor, other: Tensor) -> int:
    return int((one == other).flatten(1).all(-1).sum()) if one.ndim > 1 else int((one == other).sum())
