"""Golden values for the engine: a small random Llama of transformers, its logits, losses, gradients and AdamW steps.

    pip install torch transformers safetensors
    python test/golden/llama.py

writes, beside itself, llama-tied.{json,safetensors} and llama-untied.{json,safetensors}. In the safetensors,
`student.*` and `teacher.*` are weights, `forward-kl.*` and `cross-entropy.*` gradients of the summed losses at
the student's weights, `stepped.*` the weights after the AdamW steps, `logits.N` the student's logits of item N's
response tokens.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
STEPS = 3
OPTIONS = {"learningRate": 0.01, "betas": [0.9, 0.99], "epsilon": 1e-8, "weightDecay": 0.1, "clip": 0.5}
ITEMS = [(5, 4), (3, 6), (7, 1)]
TEACHER_EXTRA = 2


def make(seed, **options):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=20, head_dim=8, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, attn_implementation="eager",
        **options,
    )
    model = LlamaForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def weights(model):
    return {name: weight.detach().clone().contiguous() for name, weight in model.named_parameters()}


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


def main(name, **options):
    student, teacher = make(1, **options), make(2, **options)
    generator = torch.Generator().manual_seed(3)
    draw = lambda count: torch.randint(0, 40, (count,), generator=generator).tolist()
    items = [
        {"prompt": draw(prompt), "teacherPrompt": draw(prompt + TEACHER_EXTRA), "response": draw(response)}
        for prompt, response in ITEMS
    ]
    tensors = {f"student.{k}": v for k, v in weights(student).items()}
    tensors |= {f"teacher.{k}": v for k, v in weights(teacher).items()}
    golden = {"config": student.config.to_dict(), "items": items, "options": OPTIONS, "steps": STEPS}
    for index, item in enumerate(items):
        tensors[f"logits.{index}"] = response_logits(student, item["prompt"], item["response"]).detach().contiguous()
    for kind in ("forward-kl", "cross-entropy"):
        student.zero_grad()
        each = losses(student, teacher, items, kind)
        sum(each).backward()
        golden[kind] = [loss.item() for loss in each]
        tensors |= {f"{kind}.{k}": v.grad.clone() for k, v in student.named_parameters()}

    decayed = [p for p in student.parameters() if p.dim() > 1]
    exempt = [p for p in student.parameters() if p.dim() == 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": OPTIONS["weightDecay"]}, {"params": exempt, "weight_decay": 0.0}],
        lr=OPTIONS["learningRate"], betas=OPTIONS["betas"], eps=OPTIONS["epsilon"],
    )
    golden["gradientNorms"] = []
    for _ in range(STEPS):
        student.zero_grad()
        (sum(losses(student, teacher, items, "forward-kl")) / len(items)).backward()
        norm = torch.nn.utils.clip_grad_norm_(student.parameters(), OPTIONS["clip"])
        golden["gradientNorms"].append(norm.item())
        optimiser.step()
    tensors |= {f"stepped.{k}": v for k, v in weights(student).items()}
    save_file(tensors, HERE / f"{name}.safetensors")
    (HERE / f"{name}.json").write_text(json.dumps(golden) + "\n")


main("llama-tied", tie_word_embeddings=True)
main("llama-untied", tie_word_embeddings=False, rope_theta=500.0)
