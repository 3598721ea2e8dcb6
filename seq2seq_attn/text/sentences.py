"""Split a line into sentences at the sentence-end marks of all scripts.

A mark is dropped if the sentence goes on after it, for example after an abbreviation. In doubt, a
mark ends the sentence, because a model that was trained on single sentences may lose a sentence
that is not split off. The libraries sentencex, pysbd and spaCy split 15 to 23 of 80 traps, and lose
sentences that begin with a digit or end with a word in their long lists of abbreviations.
"""

import re

from seq2seq_attn.text.normalize import one_line

_MARKS = "։؝؞؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶។៕᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡"
"""the marks of living scripts outside ASCII (Unicode's property `Sentence_Terminal`)"""
SENTENCE_ENDS = f".!?…{_MARKS}"
_CLOSERS = r"(?:[\])}\"'”’›」』】》〉）］｣*_¹²³]|[“‘«»‹](?!\w)|[ \u00a0\u202f][»›](?!\w)|\[\d+\])*+"
_OTHER_MARK = (
    r"(?<=[\u0370-\u03ff\u1f00-\u1fff]);|(?<=[\u0531-\u058f]):|፡፡|(?<=[\u0900-\u0dff]) ?\|"
)
"""the semicolon, which is the question mark of Greek, and what is typed for the marks of Armenian,
Ethiopic and Devanagari"""
_UPPER = "A-ZÀ-ÖØ-ÞĆČĐĞİŁŃŐŘŚŞŠŤŮŰŹŻŽΑ-ΫЀ-Я"
_UNSPACED = "ぁ-ヿ㐀-鿿가-힣"
_JOINED = (
    rf"(?:(?<=[{_UNSPACED}])(?=[.!?]++[{_UNSPACED}])"
    rf"|(?<=[^\W\d_{_UPPER}])(?=[.!?]++[{_UPPER}](?![{_UPPER}])[^\W\d_]*+(?:\s|$)))[.!?]++"
)
"""marks without a space after them, between two characters of Chinese, Japanese or Korean, or
between a lower-case letter and a word with a single capital, which is not the end of a file name"""
# The lookbehinds let a run of marks match at its start alone, so that the time is linear.
_END = re.compile(
    rf"(?<![{SENTENCE_ENDS}])(?=[.!?…]*+[{_MARKS}])[{SENTENCE_ENDS}]++"
    rf"{_CLOSERS}\s*+(?!(?<=．)\d)(?=\S)"
    rf"|(?:(?<![.!?…])[.!?…]++|{_OTHER_MARK}){_CLOSERS}\s++(?=\S)|{_JOINED}"
)
"""the end of a sentence, and the white space after it, which some scripts do not write"""
_MARK = re.compile(rf"[;:|፡{SENTENCE_ENDS}]")
_CONTINUATION = re.compile("[,;:]|(?<=[」』])(?:と|って)")
"""text that begins no sentence. After a quotation, a Japanese sentence goes on with a particle"""
_OPENERS = "\"'“„«»‹([¿¡「『"
_MAX_WORD = 24
"""number of characters before a full stop that decide whether it ends the sentence"""
_ABBREVIATION = re.compile(
    r"""(?<![\w.])(?:
    (?<!\d\s)[^\W\d_]                                     # an initial
    |(?![ap]\.m\.)[^\W\d_]{1,3}(?:\.-?[^\W\d_]{1,3})+     # z.B., U.S., J.-P.
    |(?-i:[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,4})      # Dr, Mrs, St
    |bijv|bzgl|bzw|ca|capt|dhr|dott|dra?|ee|gov|hr|ks|mgr|mlle|mmes?|mrs?|prof|sig|sra?|srta|st|str
    |tzn|vgl|vs|डॉ
    |(?:abb|abs|art|bd|cap|ch|chap|fig|kap|nos?|nr|num|p[áa]gs?|pp|tel|vols?)(?=\.\d)
    |(?:d(?:er|ie|as|en|em|es)|[ai]m|[vz]om|zu[mr]|beim|jede[rs]?)\s\d\d?   # a German ordinal
    )\.\S$""",
    re.I | re.X,
)
"""an abbreviation or an ordinal number, its full stop, and the first character of the next word"""


def split_line(line: str, into_sentences: bool) -> list[str]:
    """Return the sentences of a line, or the line as a single sentence."""
    return split_sentences(line) if into_sentences else [line]


def split_sentences(line: str) -> list[str]:
    """Return the sentences of a line, each with the white space after it. Control characters become
    spaces. Marks and digits alone, such as the number of a list item, are no sentence."""
    text = one_line(line)
    last = len(text)
    while last and not text[last - 1].isalnum():
        last -= 1
    if not _MARK.search(text, 0, last):
        return [text]
    is_cased = text != text.lower()
    sentences = []
    start = 0
    for end in _END.finditer(text, 0, last):
        head = text[start : min(end.start(), start + _MAX_WORD)].strip()
        if head and not head.isdigit() and not _goes_on(text, end, is_cased=is_cased):
            sentences.append(text[start : end.end()])
            start = end.end()
    return [*sentences, text[start:]]


def _goes_on(text: str, end: re.Match[str], *, is_cased: bool) -> bool:
    """Return whether the sentence goes on after `end`, which may be its end. If the text has
    capital letters (`is_cased`), a lower-case letter begins no sentence."""
    stop = end.end()
    following = text[stop : stop + _MAX_WORD].lstrip(_OPENERS)
    if _CONTINUATION.match(text, stop) or (is_cased and following[:1].islower()):
        return True
    word = text[max(0, end.start() - _MAX_WORD) : end.start()]
    is_full_stop = end[0].rstrip() == "."
    return is_full_stop and _ABBREVIATION.search(f"{word}.{text[stop]}") is not None
