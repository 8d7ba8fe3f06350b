"""Nested state, such as an optimiser's, as named tensors and a JSON skeleton, and back, exactly.

JSON has no form for a tensor, a tuple, nan and inf, or keys that are not text. Each is a dict whose one key
opens with `$`; of a user's own keys those that open so are given another `$`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor


def flatten(nested: object) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split dicts, lists, tuples, tensors and plain values into named tensors and a JSON skeleton.

    A tensor that stands in two places is kept twice; names are unique within one call.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, {"skeleton": _pack(nested, tensors, ())}


def unflatten(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> Any:
    """What `flatten` took apart; keys, tuples and their order included."""
    return _unpack(values["skeleton"], tensors)


def pack(value: object) -> Any:
    """JSON for plain values; a tensor among them is refused."""
    return _pack(value, None, ())


def unpack(packed: Any) -> Any:
    """What `pack` was given."""
    return _unpack(packed, {})


def _pack(value: object, tensors: dict[str, Tensor] | None, path: tuple[str, ...]) -> Any:
    """JSON for `value`: what JSON has no form for is a dict whose one key opens with `$`."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, Tensor) and tensors is not None:
        name = ".".join([str(len(tensors)), *path])
        tensors[name] = value
        return {"$tensor": name}
    if isinstance(value, (list, tuple)):
        items = [_pack(item, tensors, (*path, str(index))) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        return _pack_mapping(value, tensors, path)
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__} ({'.'.join(path) or 'the whole'})")


def _pack_mapping(
    value: Mapping[Any, object], tensors: dict[str, Tensor] | None, path: tuple[str, ...]
) -> dict[str, Any]:
    pairs = [(key, _pack(item, tensors, (*path, _plain(key)))) for key, item in value.items()]
    if all(isinstance(key, str) for key in value):
        return {f"${key}" if key.startswith("$") else key: item for key, item in pairs}
    return {"$dict": [[_pack(key, None, path), item] for key, item in pairs]}


def _unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(packed, list):
        return [_unpack(item, tensors) for item in packed]
    if not isinstance(packed, dict):
        return packed
    match list(packed.items()):
        case [("$float", text)]:
            return float(text)
        case [("$tensor", name)]:
            return tensors[name]
        case [("$tuple", items)]:
            return tuple(_unpack(items, tensors))
        case [("$dict", pairs)]:
            return {_unpack(key, tensors): _unpack(item, tensors) for key, item in pairs}
    return {key.removeprefix("$"): _unpack(item, tensors) for key, item in packed.items()}


def _plain(key: object) -> str:
    return str(key).encode("ascii", "backslashreplace").decode()
