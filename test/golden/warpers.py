"""What transformers' warpers leave of small distributions, in the order in which `generate` applies them.

Writes warpers.json beside this file. Run: python test/golden/warpers.py
"""

import json
from pathlib import Path

import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.utils import GenerationMixin

torch.manual_seed(1)


class Model(GenerationMixin):
    """Enough of a model to be asked for its processors."""

    def __init__(self):
        self.config = None


def processors(temperature, top_k, top_p, min_p):
    config = GenerationConfig(
        do_sample=True, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p or None
    )
    config._pad_token_tensor = config._eos_token_tensor = None
    found = Model()._get_logits_processor(config, logits_processor=LogitsProcessorList())
    return found


cases = []
for size in (7, 40):
    logits = (torch.randn(size, dtype=torch.float32) * 2.5).double().mul(1000).round().div(1000)
    for options in (
        (1.0, 0, 1.0, 0.1),
        (1.0, 0, 1.0, 0.02),
        (0.6, 0, 1.0, 0.02),
        (2.0, 0, 1.0, 0.3),
        (1.0, 3, 1.0, 0.0),
        (1.0, 5, 0.8, 0.0),
        (0.7, 0, 0.9, 0.0),
        (1.0, 0, 0.9, 0.2),
        (1.3, 6, 0.95, 0.05),
        (1.0, 5, 1.0, 0.4),
        (1.0, 0, 1.0, 1.0),
    ):
        scores = processors(*options)(torch.zeros(1, 1, dtype=torch.long), logits[None].clone())
        cases.append(
            {
                **dict(zip(("temperature", "topK", "topP", "minP"), options)),
                "logits": logits.tolist(),
                "probabilities": [float(f"{p:.9g}") for p in scores.softmax(-1)[0].tolist()],
            }
        )
lines = ",\n".join(json.dumps(case) for case in cases)
Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
