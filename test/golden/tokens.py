"""Token ids of chats by transformers, for the tiny model's tokenizer and template.

    pip install transformers
    node --import tsx test/golden/write-tiny-model.ts DIR
    python test/golden/tokens.py DIR

writes tokens.json beside itself: a list of {messages, ids, text}, where text is the ids decoded without special tokens.
"""

import json
import sys
from pathlib import Path

from transformers import AutoTokenizer

TEXTS = [
    "Hello, world! It's 2024.", "  leading and trailing  ", "\n\nnewlines first\n\n", "naïve café — “quotes” … ½",
    "日本語のテキスト、漢字とかな。", "Привет, как дела?", "مرحبا بالعالم", "नमस्ते दुनिया", "한국어 문장입니다", "ไทยภาษา ทดสอบ",
    "👩‍👩‍👧‍👦 🚀🔥 flags 🇩🇪", "def f(x):\n\treturn x**2  # squares\nfor i in range(10): print(f(i))",
    "a<b && c>d || e|f [INST] {x} {{ y }} {% z %}", "1234567890 3.14159 1e-9", "tabs\t\tand\r\nCRLF\r\n",
    "e\u0301 vs \u00e9 \u200b zero\u00a0nbsp", "ﬁ ligature Ⅳ", "\u0000\u0001 control \u007f", "the man of the hen is in the river " * 5,
    "don't DON'T we'll WE'LL I've", "<html><body class=\"x\">&amp;</body></html>", "", " ",
]

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
chats = [[{"role": "user", "content": text}] for text in TEXTS]
chats.append([{"role": "system", "content": "You are 你好"}, {"role": "user", "content": " ".join(TEXTS)}])
chats.append([{"role": role, "content": text} for role, text in zip(["user", "assistant", "user"], TEXTS[:3])])
golden = []
for messages in chats:
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    golden.append({"messages": messages, "ids": list(ids), "text": tokenizer.decode(ids, skip_special_tokens=True)})
path = Path(__file__).with_name("tokens.json")
path.write_text("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in golden) + "\n]\n")
