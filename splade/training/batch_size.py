"""How many texts fit into memory in one training step.

    free · 0.8  >=  workspace + parameters · state  +  texts · length · (layers · hidden · kept + words)

state   bytes of a parameter beside itself: gradient 4, two moments 8, the step's temporary or an average 4
kept    bytes that backward needs of each layer and hidden unit, in 16-bit autocast; twice that in float32
words   vocabulary bytes of a position: half a byte for each of V words scanned, of which few survive,
        or the pairs of its K licensed words, all of which may

`kept` is from 11.6 GiB measured for ModernBERT-base, 32 texts of 512 tokens in bf16, on one H200 (37 bytes);
half a byte a word is an upper bound from 0.38 GiB for the vocabulary head of that step with V = 50368.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

LARGEST = 256
SHARE = 0.8  # of free memory: the rest is lost between blocks
WORKSPACE = 256 << 20  # chunks of logits, the decoder in 16 bit
STATE_BYTES = 16
KEPT_BYTES = 40
SCANNED_BYTES = 0.5
PAIR_BYTES = 100
UNKNOWN_MEMORY = 4 << 30


def automatic_batch_size(
    free_bytes: int,
    vocab_size: int,
    words_per_position: int | None,
    hidden_size: int,
    layers: int,
    length: int,
    parameters: int,
    half_precision: bool = True,
    largest: int = LARGEST,
) -> int:
    """The largest power of two from 1 to `largest` texts of `length` tokens whose step fits in `free_bytes`.

    `words_per_position` is K where words are licensed, None where the whole vocabulary is free. Free memory
    is that beside the weights, before the first step.
    """
    words = vocab_size * SCANNED_BYTES
    if words_per_position is not None:
        words = min(words, words_per_position * PAIR_BYTES)
    kept = KEPT_BYTES if half_precision else 2 * KEPT_BYTES
    text = length * (layers * hidden_size * kept + words)
    room = free_bytes * SHARE - WORKSPACE - parameters * STATE_BYTES
    texts = int(max(1, min(room / text, largest)))
    return 1 << (texts.bit_length() - 1)


def free_memory(device: torch.device) -> int:
    """Bytes that can still be had on a device; torch's own unused blocks count as free."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    return min(_machine_memory(), _container_memory())


def _machine_memory(path: Path = Path("/proc/meminfo")) -> int:
    """What the system says is available; half of what is installed where it does not say."""
    if path.exists():
        fields = dict(line.split(":", 1) for line in path.read_text().splitlines())
        if "MemAvailable" in fields:
            return int(fields["MemAvailable"].split()[0]) << 10
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return UNKNOWN_MEMORY


def _container_memory(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """What a container's limit leaves; without a limit, more than any machine has."""
    try:
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return 1 << 62
    return 1 << 62 if limit == "max" else max(0, int(limit) - int(used))
