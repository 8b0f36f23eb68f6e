"""Values of GGML's quantised blocks by the gguf package's own dequantisation.

    pip install gguf numpy [llama-cpp-python]
    python test/golden/gguf-blocks.py

writes gguf-blocks.json beside itself: for each tensor type some blocks of random bytes, whose f16 scales are finite,
and their f32 values, both in base64. Where llama-cpp-python is installed, its C code is held against them as well.
"""

import base64
import ctypes
import json
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

BLOCKS = 4
# Where a block has f16 scales.
SCALES = {
    T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2],
    T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
}
PLAIN = [T.F32, T.F16, T.BF16]

random = np.random.default_rng(11)


def scales(n):
    """Like those of real models, and some that are negative, subnormal, zero or large."""
    usual = random.normal(0, 0.02, n).astype(np.float16)
    odd = np.array([0, 3e-6, -1.5, 1234, 6e-5], dtype=np.float16)
    return np.where(random.random(n) < 0.4, random.choice(odd, n), usual).view(np.uint8).reshape(n, 2)


def blocks(kind):
    block, size = GGML_QUANT_SIZES[kind]
    if kind in PLAIN:
        values = np.concatenate([random.normal(0, 1, 60), [0, -0.0, 1e-7, 65504]]).astype(np.float32)
        if kind == T.F32:
            return values.view(np.uint8)
        if kind == T.F16:
            return values.astype(np.float16).view(np.uint8)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    raw = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in SCALES[kind]:
        raw[:, at:at + 2] = scales(BLOCKS)
    return raw.ravel()


def by_llama_cpp(kind, raw, count):
    try:
        import llama_cpp
    except ImportError:
        return None
    folder = Path(llama_cpp.__file__).parent / "lib"
    library = ctypes.CDLL(str(next(folder.glob("libggml-base.so*"))))
    function = getattr(library, f"dequantize_row_{kind.name.lower().replace('_k', '_K')}", None)
    if function is None:
        return None
    out = np.zeros(count, dtype=np.float32)
    function(raw.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(count))
    return out


golden = {}
for kind in [*PLAIN, *SCALES]:
    raw = np.ascontiguousarray(blocks(kind))
    values = np.ascontiguousarray(dequantize(raw, kind), dtype=np.float32).ravel()
    assert np.isfinite(values).all(), kind
    other = by_llama_cpp(kind, raw, values.size) if kind not in PLAIN else None
    if other is not None:
        assert (other.view(np.uint32) == values.view(np.uint32)).all(), f"{kind.name}: llama.cpp gives other values"
    print(kind.name, values.size, "also llama.cpp" if other is not None else "")
    encode = lambda array: base64.b64encode(array.tobytes()).decode()
    golden[kind.name] = {"type": int(kind), "bytes": encode(raw), "values": encode(values)}
path = Path(__file__).with_name("gguf-blocks.json")
path.write_text(json.dumps(golden, indent=1) + "\n")
