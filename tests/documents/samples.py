"""Generated documents of each form, hostile ones among them."""

import json

import pytest

WORDS = ["Ein", "Hund", "schläft", "heute", "Straße", "naïve", "שלום", "مرحبا", "犬", "🐕", "100"]
MARKS = [".", "!", "?", "…", " – ja", ", nein;", ""]
PLACEHOLDERS = ["%s", "%(name)d", "{0}", "{name}", "%1$s", "${x}", "%d %%", "https://a.b/c?d=e_f"]
ENDS = ["\n", "\r\n"]
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))]


def sentence(rng):
    """Some words, with a placeholder at times, and often with spaces at the ends."""
    words = rng.choices(WORDS, k=rng.randint(1, 7))
    if rng.random() < 0.2:
        words.insert(rng.randint(0, len(words)), rng.choice(PLACEHOLDERS))
    spaces = rng.choice(["", "", "", " ", "  "])
    return f"{spaces}{' '.join(words)}{rng.choice(MARKS)}{spaces}"


def finish(rng, text, *, mark=True):
    """The bytes of a document with either line end, with or without byte-order mark and end."""
    text = text.replace("\n", rng.choice(ENDS))
    text = text.rstrip("\r\n") if rng.random() < 0.3 else text
    return (("\ufeff" if mark and rng.random() < 0.2 else "") + text).encode()


def make_srt(rng):
    cues = []
    for number in range(1, rng.randint(2, 8)):
        lines = [f"Hund {sentence(rng)}" for _ in range(rng.randint(1, 3))]
        style = rng.randrange(5)
        if style == 0:
            lines = [f"<i>{line}</i>" for line in lines]
        elif style == 1:
            lines = [f"- {line.strip()}" for line in lines]
        elif style == 2:
            lines[0] = "{\\an8}" + lines[0]
        elif style == 3:
            lines[0] = f"<b>{lines[0]}</b> &amp; mehr"
        blank = rng.choice(["\n", "\n", "\n\n"])
        time = f"00:00:{number:02d},000 --> 00:00:{number:02d},500"
        cues.append(f"{number}\n{time}\n{chr(10).join(lines)}\n{blank}")
    return finish(rng, "".join(cues))


def make_vtt(rng):
    text = make_srt(rng).decode().removeprefix("\ufeff").replace(",000", ".000")
    text = text.replace(",500", ".500").replace("{\\an8}", "<c.gelb>&amp;</c> ")
    end = "\r\n" if "\r\n" in text else "\n"
    note = f"NOTE Ein Hund{end}{end}"
    style = f"STYLE{end}::cue {{ color: red }}{end}{end}"
    return f"WEBVTT{end}{end}{rng.choice(['', note, style])}{text}".encode()


def make_jsonl(rng):
    lines = []
    for number in range(rng.randint(1, 8)):
        value = {"id": number, "de": sentence(rng), "list": ["de", None, {"x": "Hund"}]}
        value["de"] += rng.choice(["", '"', "\\n", "\nzwei", "\\", "é"])
        value = rng.choice([value, {"inner": {"fr": sentence(rng)}, **value}])
        lines.append(json.dumps(value, ensure_ascii=rng.random() < 0.5))
    lines.append('{"de":"Ein Hund" , "a" : 1.50e3}')
    return finish(rng, "\n".join(lines) + "\n")


def quoted(text):
    """A string of a catalogue, in a line for each line of the text."""
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in ["", *text.splitlines(True)])


def make_po(rng):
    entries = ['msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n']
    for number in range(rng.randint(1, 8)):
        text = f"Hund {number} {sentence(rng)}"
        text += rng.choice(["", '"', "\n", "\n\nzwei\n", "\t<b>x</b> &amp;", "\\n"])
        source = quoted(text)
        before = rng.choice(["", "# Hund\n", "#: a.c:1\n#, fuzzy\n", '#| msgid "alt"\n'])
        before += rng.choice(["", 'msgctxt "Hund"\n'])
        forms = ['msgstr ""', 'msgstr "Hund"', 'msgstr ""\n"Hund\\n"']
        for count in (1, 2, 3):
            values = "\n".join(f'msgstr[{index}] ""' for index in range(count))
            forms.append(f"msgid_plural {quoted(f'{sentence(rng)} Hunde')}\n{values}")
        entries.append(f"{before}msgid {source}\n{rng.choice(forms)}\n")
    entries.append('#~ msgid "Hund"\n#~ msgstr ""\n')
    return finish(rng, "\n".join(entries))


def make_csv(rng):
    mark = rng.choice(",;\t|")
    rows = [f"id{mark}text{mark}x"]
    if rng.random() < 0.2:
        rows.insert(0, f"sep={mark}")
    for number in range(rng.randint(1, 8)):
        text = rng.choice([sentence(rng), "", "12", f'{sentence(rng)} "du", er;\nsie |\t'])
        if text.endswith("\t") or rng.random() < 0.3 or mark in text:
            doubled = text.replace('"', '""')
            text = f'"{doubled}"'
        rows.append(mark.join([str(number), text, rng.choice(["", '"Hund, ""x""\n"', "Hund"])]))
    return finish(rng, "\n".join(rows) + "\n")


def make_md(rng):
    marked = ["*ja*", "**ja**", "`Hund`", "[da](https://a.b 'Hund')", "[x][r]", "![Hund](b)", "\\*"]
    front = rng.choice(["", "---\ntitle: Hund\n---\n"])
    blocks = ["[r]: https://a.b", "    Hund", "```\nHund\n```", "<div>\nHund\n</div>", "`Hund`"]
    for _ in range(rng.randint(1, 8)):
        words = [f"Hund {sentence(rng).strip()}" for _ in range(3)]
        words.insert(rng.randint(0, 3), rng.choice([*marked, "<b>x</b> &amp;", "a"]))
        first, second, third, fourth = words
        patterns = [
            f"{first} {second}\n{third} {fourth}",
            f"# {first}\n{second}\n---",
            f"> {first}\n> > {second}\n> {third}",
            f"- {first}  \n  {second}\n- [ ] {third}\n  1. {fourth}",
            f"| {first} | a\\|b |\n|--|:-:|\n| `Hund` | {second} |\n| | {third} |",
            f"> {first}  \n> {second}",
        ]
        blocks.append(rng.choice(patterns))
    rng.shuffle(blocks)
    return finish(rng, front + "\n\n".join(blocks) + "\n")
