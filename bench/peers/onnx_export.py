"""Exports a model to ONNX in f32 for transformers.js as a peer: python bench/peers/onnx_export.py MODEL OUT.

MODEL is a Hugging Face directory. Needs the packages onnxruntime-genai, onnx, onnx-ir, torch and transformers. Attention is
one operator with a cache, the head sees the last token alone. OUT gets config.json, generation_config.json and
onnx/model.onnx with its data.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import onnx

source, out = Path(sys.argv[1]), Path(sys.argv[2])
folder = out / "onnx"
folder.mkdir(parents=True)
builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", folder, "-p", "fp32", "-e", "cpu"]
subprocess.run([*builder, "--extra_options", "prune_lm_head=true"], check=True)
path = folder / "model.onnx"
model = onnx.load(path, load_external_data=False)
attention = next(node for node in model.graph.node if node.op_type == "GroupQueryAttention")
heads = next(attribute.i for attribute in attention.attribute if attribute.name == "num_heads")
projection = next(tensor for tensor in model.graph.initializer if tensor.name.endswith("attn.o_proj.MatMul.weight"))
# transformers.js makes the empty cache from these shapes, which name the width by a symbol.
for given in model.graph.input:
    if given.name.startswith("past_key_values."):
        given.type.tensor_type.shape.dim[3].dim_value = projection.dims[0] // heads
onnx.save(model, path)
for name in ("config.json", "generation_config.json"):
    shutil.copy(source / name, out / name)
