"""One GRASP step by PyTorch and transformers: the peer of bench/grasp-step.ts, which starts this and says how.

Reads one JSON object from standard input and writes one line of JSON a step.
"""

import json
import resource
import sys
import time

import torch
from transformers import AutoModelForCausalLM

given = json.load(sys.stdin)
torch.set_num_threads(given["threads"])
load = lambda: AutoModelForCausalLM.from_pretrained(given["model"], dtype=torch.float32, attn_implementation="sdpa")
teacher, student = load().eval().requires_grad_(False), load().train()
optimiser = torch.optim.AdamW(student.parameters(), lr=1e-6, weight_decay=0.01)
ids = lambda name: torch.tensor([given[name]])
response = ids("response")
count = response.shape[1]


def logits(model, prompt):
    """[T, V] of the response's tokens; the head sees only their rows."""
    tokens = torch.cat([ids(prompt), response[:, :-1]], 1)
    return model(input_ids=tokens, use_cache=False, logits_to_keep=count).logits[0]


for _ in range(given["steps"]):
    start = time.perf_counter()
    with torch.no_grad():
        target = torch.log_softmax(logits(teacher, "teacherPrompt"), -1)
    scored = time.perf_counter()
    predicted = torch.log_softmax(logits(student, "studentPrompt"), -1)
    loss = torch.nn.functional.kl_div(predicted, target, reduction="batchmean", log_target=True)
    loss.backward()
    learned = time.perf_counter()
    norm = torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    end = time.perf_counter()
    print(
        json.dumps(
            {
                "loss": loss.item(),
                "norm": norm.item(),
                "teacher": 1000 * (scored - start),
                "gradient": 1000 * (learned - scored),
                "update": 1000 * (end - learned),
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        ),
        flush=True,
    )
