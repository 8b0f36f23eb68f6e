"""Decoding by PyTorch and transformers' generate: a peer of bench/decoding.ts, which starts this.

Reads one JSON object from standard input and writes one line of JSON a measurement.
"""

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM

given = json.load(sys.stdin)
torch.set_num_threads(given["threads"])
torch.manual_seed(1)
model = AutoModelForCausalLM.from_pretrained(given["model"], dtype=torch.float32, attn_implementation="sdpa").eval()


def seconds(case, new):
    ids = torch.tensor(case["prompts"])
    samples = case["samples"]
    sampling = dict(do_sample=True, top_k=0, num_return_sequences=samples) if case["temperature"] else dict(do_sample=False)
    start = time.perf_counter()
    with torch.no_grad():
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=new,
            max_new_tokens=new,
            pad_token_id=0,
            **sampling,
        )
    assert made.shape == (ids.shape[0] * samples, ids.shape[1] + new)
    return time.perf_counter() - start


seconds(given["cases"][0], 2)
for case in given["cases"]:
    for _ in range(given["repeats"]):
        numbers = {"name": case["name"], "first": seconds(case, 1), "all": seconds(case, given["new"])}
        print(json.dumps(numbers), flush=True)
