"""Logits of GGUF models by llama.cpp.

    pip install llama-cpp-python
    python test/golden/llama-cpp.py '[{"path": "model.gguf", "ids": [1, 2]}]'

prints a line of JSON for each: the logits of every position. Ends with 3 where llama-cpp-python is not installed.
"""

import ctypes
import json
import sys

try:
    import llama_cpp
    from llama_cpp import Llama
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

# llama.cpp logs to standard error; only what goes wrong there should be seen.
silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))

for case in json.loads(sys.argv[1]):
    model = Llama(
        case["path"], n_ctx=64, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False, flash_attn=False,
        type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
    )
    model.eval(case["ids"])
    count = len(case["ids"])
    print(json.dumps({"logits": model.scores[:count].tolist()}))
