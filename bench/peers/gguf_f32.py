"""Writes a GGUF file with every tensor in f32, for llama.cpp as a peer: python bench/peers/gguf_f32.py IN.gguf OUT.gguf.

Needs the package gguf. Metadata stays as it is.
"""

import sys

from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, GGUFValueType
from gguf.quants import dequantize

source = GGUFReader(sys.argv[1])
architecture = source.fields["general.architecture"].contents()
writer = GGUFWriter(sys.argv[2], architecture)
for name, field in source.fields.items():
    if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
        continue
    kind, *inner = field.types
    writer.add_key_value(name, field.contents(), kind, sub_type=inner[-1] if kind == GGUFValueType.ARRAY else None)
writer.add_file_type(0)
for tensor in source.tensors:
    values = dequantize(tensor.data, tensor.tensor_type).astype("float32")
    shape = [int(size) for size in reversed(tensor.shape)]
    writer.add_tensor(tensor.name, values.reshape(shape), raw_dtype=GGMLQuantizationType.F32)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
