"""Translate a line with a folder that `seq2seq export RUN -o DIR.onnx` wrote.

    python examples/translate_onnx.py DIR.onnx "Ein Hund rennt."

A line is one sentence, if the run was trained on single sentences: unlike `seq2seq translate`, this
example does not split it. It is tokenized as the run tokenizes: by spaCy's rules (needs spacy), as
characters, at spaces or by SentencePiece's unigram model. The search is greedy. Words are written
with spaces between them. Words that the model does not know pass through it as in `seq2seq
translate` ([pass_words.py](pass_words.py)). Everything but spaCy's rules needs onnxruntime and
numpy alone.
"""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import onnxruntime
from pass_words import Passing, Result

SPACE = "▁"


def tokenize(line: str, side: dict[str, Any]) -> list[str]:
    """The tokens of a line by the run's tokenizer. For a unigram model these are the most probable
    subwords (Viterbi)."""
    if side["lowercase"] in ("az", "tr"):
        line = line.replace("İ", "i").replace("I", "ı")
    line = " ".join((line.lower() if side["lowercase"] else line).split())
    if side["tokenizer"] == "characters":
        letters = re.sub("[가-힣]+", lambda syllables: normalize("NFD", syllables[0]), line)
        return list(letters.replace(" ", SPACE))
    if side["tokenizer"] == "spacy":
        import spacy

        return [token.text for token in spacy.blank(side["language"])(line)]
    if side["tokenizer"] != "sentencepiece":
        return line.split()
    if side["model"] != "unigram":
        sys.exit(f"{side['model']}: this example reads unigram models of SentencePiece alone")
    text = SPACE + line.replace(" ", SPACE)
    scores = side["subwords"]
    longest = max(map(len, side["subwords"]))
    best = [(0.0, 0)] + [(-np.inf, 0)] * len(text)
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - longest), end):
            score = scores.get(
                text[start:end], min(scores.values()) - 10.0 if end == start + 1 else -np.inf
            )
            best[end] = max(best[end], (best[start][0] + score, start))
    tokens: list[str] = []
    end = len(text)
    while end:
        end, token = best[end][1], text[best[end][1] : end]
        tokens.insert(0, token)
    return tokens


def check(folder: Path) -> None:
    """Exit if a file is not the one that the export listed: graphs of two exports would translate
    without an error, and wrongly."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, listed in manifest.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() not in listed:
            sys.exit(
                f"{folder / name}: not the file that manifest.json lists; export the run again"
            )


def warn_about_sentences(about: dict[str, Any], line: str) -> None:
    """Warn about a line of several sentences if the model was trained on single sentences."""
    if about["lines"]["one_sentence"] and re.search(r"[.!?…]\s+\S|[。！？]\S", line):
        message = "several sentences: a part of the text may be missing; give one at a time"
        print(message, file=sys.stderr)  # noqa: T201


def translate(folder: Path, line: str) -> str:
    """The translation of a line. Words that the model does not know pass through it, if the run
    says so."""
    check(folder)
    about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    line = re.sub("[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]", "", line)
    line = normalize("NFC", re.sub("[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029]", " ", line))
    warn_about_sentences(about, line)
    prepare, step = (
        onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("prepare", "step")
    )
    target = about["target"]

    def detokenize(tokens: Sequence[str]) -> str:
        marked = SPACE in "".join(tokens) or target["tokenizer"] in ("characters", "sentencepiece")
        text = "".join(tokens).replace(SPACE, " ").strip() if marked else " ".join(tokens)
        return normalize("NFC", text) if target["tokenizer"] == "characters" else text

    def translate_text(text: str) -> Result:
        return search(about, prepare, step, tokenize(text, about["source"]))

    if about["words"] and about["search"]["unk"] == "pass":
        tokenize_word = lambda word: tokenize(word, about["source"])  # noqa: E731
        return Passing(about, tokenize_word, translate_text, detokenize).translate(line)
    return detokenize(translate_text(line).tokens)


def search(
    about: dict[str, Any],
    prepare: onnxruntime.InferenceSession,
    step: onnxruntime.InferenceSession,
    tokens: list[str],
) -> Result:
    """The greedy translation of source tokens."""
    known = {token: number for number, token in enumerate(about["source"]["tokens"])}
    special = about["ids"]
    settings = about["search"]
    source = np.array([[*(known.get(token, special["unk"]) for token in tokens), special["eos"]]])
    written = {
        token: number
        for number, token in enumerate(about["target"]["tokens"])
        if number > special["unk"]
    }
    behind = {
        token: len(about["target"]["tokens"]) + tokens.index(token) for token in tokens
    }  # ids of copied tokens
    extended = np.array(
        [[*(written.get(token, behind[token]) for token in tokens), special["eos"]]]
    )
    inputs = {"source_ids": source, "extended_ids": extended}
    names = [*about["memory"], *about["state"]]
    passed = {node.name: inputs[node.name] for node in prepare.get_inputs()}
    values = dict(zip(names, prepare.run(None, passed), strict=True))
    wanted = [one.name for one in step.get_inputs()]
    limit = int((settings["max_length_ratio"] or 2.0) * len(tokens)) + settings["max_length_extra"]
    previous = special["bos"]
    words = list[str]()
    rows = [np.zeros(len(tokens) + 1)]
    log_prob = 0.0
    while len(words) < limit:
        inputs = {**values, "previous_ids": np.array([previous])}
        log_probs, weights, *state = step.run(None, {name: inputs[name] for name in wanted})
        log_probs[0, [special["pad"], special["bos"]]] = -np.inf
        previous = int(log_probs[0].argmax())
        log_prob += float(log_probs[0, previous])
        values |= dict(zip(about["state"], state, strict=True))
        if previous == special["eos"]:
            break
        words.append(
            [*about["target"]["tokens"], *tokens, ""][previous]
        )  # beyond the vocabulary: a copied position
        rows.append(weights[0])
    return Result(words, tokens, log_prob, np.stack(rows)[1:])


if __name__ == "__main__":
    print(translate(Path(sys.argv[1]), sys.argv[2]))  # noqa: T201
