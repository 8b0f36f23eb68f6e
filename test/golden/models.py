"""Golden values for the engine: small random models of transformers, their logits, losses, gradients and AdamW steps.

    pip install torch transformers safetensors numpy
    python test/golden/models.py [NAME ...]

writes, beside itself, NAME.{json,safetensors} for each model of MODELS. Weights are drawn by a generator that
weights.ts repeats, so they are not stored. In the safetensors, `forward-kl.*` and `cross-entropy.*` are gradients
of the summed losses at the student's weights, `stepped.*` the weights after the AdamW steps, `logits.N` the
student's logits of item N's response tokens.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

HERE = Path(__file__).parent
OPTIONS = {"learningRate": 0.01, "betas": [0.9, 0.99], "epsilon": 1e-8, "weightDecay": 0.1, "clip": 0.5}
ITEMS = [(5, 4), (9, 8), (12, 1), (1, 6)]
TEACHER_EXTRA = 2

SHARED = dict(
    vocab_size=48, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, max_position_embeddings=64,
)
LLAMA3 = dict(
    rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=32,
)
# Class, AdamW steps, options of the configuration.
MODELS = {
    "llama-tied": ("Llama", 3, dict(SHARED, hidden_size=16, intermediate_size=20, tie_word_embeddings=True)),
    "llama-untied": ("Llama", 3, dict(
        SHARED, hidden_size=16, intermediate_size=20, tie_word_embeddings=False, rope_theta=500.0,
    )),
    "llama3": ("Llama", 0, dict(SHARED, head_dim=16, rope_parameters=LLAMA3)),
    "llama-linear": ("Llama", 0, dict(
        SHARED, num_hidden_layers=1, rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=4.0),
    )),
    "qwen2": ("Qwen2", 0, dict(
        SHARED, num_hidden_layers=3, tie_word_embeddings=True, use_sliding_window=True, sliding_window=5,
        max_window_layers=1,
    )),
    "qwen3": ("Qwen3", 0, dict(SHARED, head_dim=24, tie_word_embeddings=False)),
    "gemma2": ("Gemma2", 3, dict(
        SHARED, num_hidden_layers=3, head_dim=16, query_pre_attn_scalar=10, sliding_window=5,
        attn_logit_softcapping=1.5, final_logit_softcapping=2.0,
        # Its gradient as an input would be left out.
        pad_token_id=None,
    )),
}


def uniform(name, count):
    """Numbers in [-1, 1): mulberry32, seeded with the FNV-1a hash of the name."""
    seed = 0x811C9DC5
    for byte in name.encode():
        seed = (seed ^ byte) * 0x01000193 & 0xFFFFFFFF
    state = (seed + np.arange(1, count + 1, dtype=np.uint64) * 0x6D2B79F5).astype(np.uint32)
    t = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    return (t ^ (t >> np.uint32(14))).astype(np.float64) / 2**31 - 1


def draw_weights(model, side):
    offset = 0 if model.config.model_type == "gemma2" else 1
    with torch.no_grad():
        for name, weight in model.named_parameters():
            center, spread = (offset, 0.3) if name.endswith("norm.weight") else (0, 0.5)
            values = center + spread * uniform(f"{side} {name}", weight.numel())
            weight.copy_(torch.from_numpy(values.astype(np.float32)).reshape(weight.shape))


def make(kind, side, options):
    config = getattr(transformers, f"{kind}Config")(**options, attn_implementation="eager")
    model = getattr(transformers, f"{kind}ForCausalLM")(config).float().eval()
    draw_weights(model, side)
    return model


def response_logits(model, prompt, response):
    ids = torch.tensor([prompt + response])
    return model(ids).logits[0, len(prompt) - 1 : -1]


def losses(student, teacher, items, kind):
    result = []
    for item in items:
        logp = response_logits(student, item["prompt"], item["response"]).log_softmax(-1)
        if kind == "cross-entropy":
            result.append(-logp.gather(1, torch.tensor(item["response"])[:, None]).mean())
        else:
            with torch.no_grad():
                teacher_logp = response_logits(teacher, item["teacherPrompt"], item["response"]).log_softmax(-1)
            result.append((teacher_logp.exp() * (teacher_logp - logp)).sum(-1).mean())
    return result


def gradient_norms(student, teacher, items, steps):
    """Clipped AdamW steps of what is trained; the gradient's norm before each of them."""
    trained = [p for p in student.parameters() if p.requires_grad]
    decayed = [p for p in trained if p.dim() > 1]
    exempt = [p for p in trained if p.dim() == 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": OPTIONS["weightDecay"]}, {"params": exempt, "weight_decay": 0.0}],
        lr=OPTIONS["learningRate"], betas=OPTIONS["betas"], eps=OPTIONS["epsilon"],
    )
    norms = []
    for _ in range(steps):
        student.zero_grad()
        (sum(losses(student, teacher, items, "forward-kl")) / len(items)).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(trained, OPTIONS["clip"]).item())
        optimiser.step()
    return norms


def draw_items(options):
    ids = lambda what, count: ((uniform(what, count) + 1) / 2 * options["vocab_size"]).astype(int).tolist()
    return [
        {
            "prompt": ids(f"prompt {index}", prompt),
            "teacherPrompt": ids(f"teacher's prompt {index}", prompt + TEACHER_EXTRA),
            "response": ids(f"response {index}", response),
        }
        for index, (prompt, response) in enumerate(ITEMS)
    ]


def main(name):
    kind, steps, options = MODELS[name]
    student, teacher = make(kind, "student", options), make(kind, "teacher", options)
    items = draw_items(options)
    golden = {"config": student.config.to_dict(), "items": items, "options": OPTIONS, "steps": steps}
    tensors = {
        f"logits.{index}": response_logits(student, item["prompt"], item["response"]).detach().contiguous()
        for index, item in enumerate(items)
    }
    for loss in ("forward-kl", "cross-entropy"):
        student.zero_grad()
        each = losses(student, teacher, items, loss)
        sum(each).backward()
        golden[loss] = [value.item() for value in each]
        tensors |= {f"{loss}.{k}": v.grad.clone() for k, v in student.named_parameters()}
    golden["gradientNorms"] = gradient_norms(student, teacher, items, steps)
    if steps > 0:
        stepped = {f"stepped.{k}": v.detach().clone().contiguous() for k, v in student.named_parameters()}
        tensors |= stepped if name.startswith("llama") else {k: v for k, v in stepped.items() if "norm" in k}
    save_file(tensors, HERE / f"{name}.safetensors")
    (HERE / f"{name}.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        main(name)
