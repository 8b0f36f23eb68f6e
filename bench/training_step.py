"""The same steps as training-step.ts by PyTorch and transformers, for comparison: python bench/training_step.py [lab|smollm2].

Environment: THREADS, TOKENS (a pass), SEQUENCES, LENGTH (of each), STEPS.
"""

import os
import random
import resource
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

number = lambda name, otherwise: int(os.environ.get(name, otherwise))
MODELS = {
    "lab": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, vocab_size=1000),
    "smollm2": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, vocab_size=49152),
}
name = sys.argv[1] if len(sys.argv) > 1 else "lab"
torch.set_num_threads(number("THREADS", 2))
config = LlamaConfig(**MODELS[name], max_position_embeddings=2048, tie_word_embeddings=True, attn_implementation="sdpa")
model = LlamaForCausalLM(config).train()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
random.seed(1)
count = number("SEQUENCES", 64 if name == "lab" else 2)
lengths = sorted((number("LENGTH", 180 + random.randrange(140)) for _ in range(count)), reverse=True)
batches, budget = [], number("TOKENS", 2048)
for length in lengths:
    if batches and (len(batches[-1]) + 1) * batches[-1][0] <= budget:
        batches[-1].append(length)
    else:
        batches.append([length])
for _ in range(number("STEPS", 4)):
    start, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        ids = torch.randint(0, config.vocab_size, (len(batch), batch[0]))
        labels = ids.clone()
        for row, length in enumerate(batch):
            labels[row, length:] = -100
        model(input_ids=ids, labels=labels, use_cache=False).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {sum(lengths)} tokens, {seconds * 1000:.0f} ms, {sum(lengths) / seconds:.0f} tokens/s, CPU {cpu * 1000:.0f} ms, {memory:.0f} MiB")
