"""Greedy decoding by PyTorch and transformers' generate: the peer of bench/decoding.ts, which starts this.

Reads one JSON object from standard input and writes one line of JSON a measurement.
"""

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM

given = json.load(sys.stdin)
torch.set_num_threads(given["threads"])
model = AutoModelForCausalLM.from_pretrained(given["model"], dtype=torch.float32, attn_implementation="sdpa").eval()


def seconds(prompts, new):
    ids = torch.tensor(prompts)
    start = time.perf_counter()
    with torch.no_grad():
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=new,
            max_new_tokens=new,
            pad_token_id=0,
        )
    assert made.shape[1] == ids.shape[1] + new
    return time.perf_counter() - start


seconds(given["prompts"][0], 2)
for prompts in given["prompts"]:
    for _ in range(given["repeats"]):
        numbers = {"sequences": len(prompts), "first": seconds(prompts, 1), "all": seconds(prompts, given["new"])}
        print(json.dumps(numbers), flush=True)
