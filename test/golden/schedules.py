"""Golden values of learning rates: the factors of transformers' schedules with warm-up.

    pip install torch transformers
    python test/golden/schedules.py

writes schedules.json beside itself: for each schedule, warm-up and total, the factor of the peak at steps 0 to total
"""

import json
from pathlib import Path

import torch
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

MAKERS = {
    "constant": lambda optimiser, warmup, _: get_constant_schedule_with_warmup(optimiser, warmup),
    "linear": get_linear_schedule_with_warmup,
    "cosine": get_cosine_schedule_with_warmup,
}


def factors(name, warmup, total):
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = MAKERS[name](optimiser, warmup, total)
    values = []
    for _ in range(total + 1):
        values.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    return values


cases = [
    {"schedule": name, "warmup": warmup, "totalUpdates": total, "factors": factors(name, warmup, total)}
    for name in MAKERS
    for warmup, total in [(0, 7), (1, 7), (3, 10), (9, 10)]
]
Path(__file__).with_name("schedules.json").write_text(json.dumps(cases) + "\n")
