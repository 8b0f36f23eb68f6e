"""Logits of models that transformers loads: prints one JSON object for each directory of the JSON array in argv[1].

    pip install torch transformers
    python test/golden/logits.py '[{"path": "DIR", "ids": [1, 2, 3]}]'

Exits with 3 where a package is missing.
"""

import json
import sys

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

for case in json.loads(sys.argv[1]):
    stored = AutoModelForCausalLM.from_pretrained(case["path"], dtype="auto").dtype
    model, info = AutoModelForCausalLM.from_pretrained(
        case["path"], dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
    )
    with torch.no_grad():
        logits = model.eval()(torch.tensor([case["ids"]])).logits[0]
    print(json.dumps({
        "dtype": str(stored),
        "missing": sorted(info["missing_keys"]),
        "unexpected": sorted(info["unexpected_keys"]),
        "mismatched": sorted(str(key) for key in info["mismatched_keys"]),
        "tokens": len(AutoTokenizer.from_pretrained(case["path"])),
        "logits": logits.tolist(),
    }))
