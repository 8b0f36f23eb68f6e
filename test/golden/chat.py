"""A chat's ids by the tokenizer and template of a model directory, and how its weights load, with transformers.

    pip install torch transformers
    python test/golden/chat.py DIR '[{"role": "user", "content": "Hello"}]'

prints one JSON object. Exits with 3 where a package is missing.
"""

import json
import sys

try:
    import torch  # noqa: F401
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

path, messages = sys.argv[1], json.loads(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(path)
model, info = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
print(json.dumps({
    "ids": list(ids),
    "missing": sorted(info["missing_keys"]),
    "unexpected": sorted(info["unexpected_keys"]),
    "rope": (getattr(model.config, "rope_parameters", None) or model.config.rope_scaling or {}).get("rope_type"),
}))
