"""Triton's interpreter for tests of kernels on a machine without a GPU; import this before any kernel.

Interpreted kernels run on numpy. Two conversions of Triton 3.6's interpreter are replaced: bounds of loops,
since an array of one element is no integer any more from numpy 2.4 on; and operands of a product, since
numpy has no bfloat16 and multiplies the bits of such numbers as if they were integers.
"""

from __future__ import annotations

import os

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read where kernels are defined
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    tl = pytest.importorskip("triton.language")
    patch_tensors = interpreter._patch_lang_tensor
    multiply = interpreter.InterpreterBuilder.create_dot

    def patched(tensor, scope):  # type: ignore[no-untyped-def]
        patch_tensors(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def widened(self, a, b, *rest):  # type: ignore[no-untyped-def]
        if a.dtype.scalar == tl.bfloat16:
            a, b = (self.cast_impl(x, tl.float32) for x in (a, b))
        return multiply(self, a, b, *rest)

    interpreter._patch_lang_tensor = patched
    interpreter.InterpreterBuilder.create_dot = widened
else:
    pytest.importorskip("triton")
