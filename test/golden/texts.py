"""Texts that tokenizers may cut in different ways: scripts, digits, spaces, symbols, and a random mixture of them."""

import random

TEXTS = [
    "Hello, world! It's 2024.", "  leading and trailing  ", "\n\nnewlines first\n\n", "naïve café — “quotes” … ½",
    "日本語のテキスト、漢字とかな。", "Привет, как дела?", "مرحبا بالعالم ١٢٣", "नमस्ते दुनिया १२३", "한국어 문장입니다",
    "ไทยภาษา ทดสอบ", "👩‍👩‍👧‍👦 🚀🔥 flags 🇩🇪", "def f(x):\n\treturn x**2  # squares\nfor i in range(10): print(f(i))",
    "a<b && c>d || e|f [INST] {x} {{ y }} {% z %}", "1234567890 3.14159 1e-9 20250131", "tabs\t\tand\r\nCRLF\r\n",
    "e\u0301 vs \u00e9 \u200b zero\u00a0nbsp", "ﬁ ligature Ⅳ ² ³ ①", "\u0000\u0001 control \u007f \u0085 \ufeff mark",
    "the man of the hen is in the river " * 3, "don't DON'T we'll WE'LL I've ſ 'S 'ſ", "<html><body class=\"x\">&amp;</body></html>",
    " ", "\n", "\t", "     five", "\n\n\n\nfour\n   \n  \n", "x" * 70, "=" * 40, "。" * 9, "▁under▁line ▁ ▁▁",
    "<b>bold</b> <table><tr><td>1</td></tr></table>", "Ünïcödé ÅÄÖ ąęć ńó łż", "Ελληνικά και Ἑλληνικά", "עברית בדיקה",
    "https://example.org/a?b=c&d=%20#e", "snake_case camelCase kebab-case SCREAMING", "𝒜𝓁𝓅𝒽𝒶 𐍈 🂡", "i̇ İ ı I",
]

POOLS = [
    "abcdefghij XYZ", "  \t\n\r", "0123456789", "١٢٣०१२ⅣⅫ½²", "日本語漢字かなカナ", "Приветмир", "مرحبابالعالم", "नमस्तेदुनिया", "한국어문장",
    "👩‍👩‍👧‍👦🚀🇩🇪", ".,;:!?'\"()[]{}/\\-_+=*&^%$#@~`", "\u00a0\u200b\u3000\ufeff\u0085\u2028", "e\u0301a\u0308ﬁÅ", "'s't'LL're",
]


def mixed(count, seed=7):
    """Random strings of characters of up to four pools."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        pools = draw.sample(POOLS, draw.randint(1, 4))
        texts.append("".join(draw.choice(draw.choice(pools)) for _ in range(draw.randint(1, 40))))
    return texts
