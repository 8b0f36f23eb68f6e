"""Logits of a model with an adapter that PEFT loads: prints {"logits", "without"} for argv: FOLDER and the token ids as JSON.

    pip install torch transformers peft
    python test/golden/adapter-logits.py DIR '[1, 2, 3]'

The adapter's configuration names the model. Exits with 3 where a package is missing.
"""

import json
import sys

try:
    import torch
    from peft import AutoPeftModelForCausalLM
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

model = AutoPeftModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32, attn_implementation="eager").eval()
ids = torch.tensor([json.loads(sys.argv[2])])
with torch.no_grad():
    logits = model(ids).logits[0].tolist()
    with model.disable_adapter():
        without = model(ids).logits[0].tolist()
print(json.dumps({"logits": logits, "without": without}))
