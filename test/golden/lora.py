"""Golden values of LoRA: PEFT's adapters on models of models.py, their gradients and AdamW steps.

    pip install torch transformers safetensors numpy peft
    python test/golden/lora.py

writes lora.json and lora.safetensors beside itself. For each case, `CASE.gradient.*` are gradients of the summed
forward KL at the drawn factors, `CASE.stepped.*` the factors after the AdamW steps, `CASE.merged.*` some of the
weights that they then stand for, all by the names of PEFT's files.
"""

import json
from pathlib import Path

import peft
import torch
from models import MODELS, OPTIONS, draw_items, gradient_norms, losses, make, uniform
from safetensors.torch import save_file

STEPS = 2
CASES = {
    "all": ("qwen2", dict(r=3, lora_alpha=6, target_modules="all-linear")),
    "some": ("llama-untied", dict(r=4, lora_alpha=8, use_rslora=True, target_modules=["q_proj", "down_proj"])),
}


def name_of(parameter):
    return parameter.removeprefix("base_model.model.").replace(".default", "")


def factors(model):
    return {name_of(name): value for name, value in model.named_parameters() if "lora_" in name}


def main(case):
    name, options = CASES[case]
    kind, _, config = MODELS[name]
    teacher = make(kind, "teacher", config)
    student = peft.get_peft_model(
        make(kind, "student", config), peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **options)
    )
    with torch.no_grad():
        for key, value in factors(student).items():
            value.copy_(0.3 * torch.from_numpy(uniform(f"adapter {key}", value.numel())).float().reshape(value.shape))
    items = draw_items(config)
    each = losses(student, teacher, items, "forward-kl")
    sum(each).backward()
    tensors = {f"{case}.gradient.{k}": v.grad.clone() for k, v in factors(student).items()}
    norms = gradient_norms(student, teacher, items, STEPS)
    tensors |= {f"{case}.stepped.{k}": v.detach().clone() for k, v in factors(student).items()}
    merged = student.merge_and_unload().named_parameters()
    tensors |= {f"{case}.merged.{k}": v.detach().clone() for k, v in merged if "layers.1.mlp.down_proj" in k}
    return tensors, {
        "model": name, "rank": options["r"], "alpha": options["lora_alpha"],
        "rankStabilised": options.get("use_rslora", False), "targets": options["target_modules"],
        "losses": [value.item() for value in each], "gradientNorms": norms, "options": OPTIONS,
    }


results = {case: main(case) for case in CASES}
here = Path(__file__).parent
save_file({k: v for tensors, _ in results.values() for k, v in tensors.items()}, here / "lora.safetensors")
(here / "lora.json").write_text(json.dumps({case: facts for case, (_, facts) in results.items()}) + "\n")
