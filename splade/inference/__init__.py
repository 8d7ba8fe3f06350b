"""Texts in, predictions and exact explanations out."""

from splade.inference.explanation import Explanation, Place, Read, Span, Word
from splade.inference.predictor import (
    Flip,
    MultiLabelPrediction,
    Prediction,
    Predictor,
    explain_model_spans,
)

__all__ = [
    "Explanation",
    "Flip",
    "MultiLabelPrediction",
    "Place",
    "Prediction",
    "Predictor",
    "Read",
    "Span",
    "Word",
    "explain_model_spans",
]
