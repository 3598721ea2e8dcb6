"""German from the tree: declension, verb-second and verb-final order, the verbal bracket,
commas."""

from scripts.laboratory.captions.lexicon import COPULA, Adjective, Case
from scripts.laboratory.captions.tree import (
    COMMA,
    Clause,
    FixedPhrase,
    Key,
    NounPhrase,
    PrepositionalPhrase,
    Sentence,
    Token,
    coordinate,
    words,
)

_ENDINGS = {
    "nom": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
    "gen": {"m": "es", "f": "er", "n": "es", "p": "er"},
}
_BARE = {("nom", "m"), ("nom", "n"), ("acc", "n")}
"""cases and genders in which ein, kein and sein have no ending"""
_PRONOUN = {"m": "er", "f": "sie", "n": "es", "p": "sie"}
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}
_AUXILIARIES = {
    "haben": ("hat", "haben"),
    "sein": ("ist", "sind"),
    "passive": ("wird", "werden"),
    "passive past": ("wurde", "wurden"),
}
"""finite verbs before a participle, singular and plural"""

Part = NounPhrase | PrepositionalPhrase | FixedPhrase | Token


def german_sentence(sentence: Sentence) -> list[Token]:
    """The tokens of a sentence, final mark included."""
    tokens: list[Token] = []
    if sentence.opening is not None:
        tokens += german_clause(sentence.opening, "last")
        tokens += words(COMMA, (sentence.opening.uid, "comma"))
    for i, clause in enumerate(sentence.clauses):
        if i:
            tokens += _joint(sentence, i)
        has_opening = i == 0 and sentence.opening is not None
        order = "first" if has_opening or sentence.is_question else "second"
        tokens += german_clause(clause, order)
    tokens += words("?" if sentence.is_question else ".", (sentence.uid, "stop"))
    return _tidy_commas(tokens)


def _joint(sentence: Sentence, i: int) -> list[Token]:
    word = sentence.joints[i - 1]
    comma = words(COMMA, (sentence.uid, f"comma {i}"))
    if word == COMMA:
        return comma
    joint = words(word, (sentence.uid, f"joint {i}"))
    return joint if word == "und" else comma + joint


def _tidy_commas(tokens: list[Token]) -> list[Token]:
    """One comma where two clauses end together, none before the final mark."""
    tidy: list[Token] = []
    for token in tokens:
        if tidy and tidy[-1].text == COMMA and token.text in (COMMA, ".", "?"):
            tidy.pop()
        tidy.append(token)
    return tidy


def german_clause(clause: Clause, order: str) -> list[Token]:
    """A clause in the order `second` (verb second), `first` (question, or behind a fronted clause),
    `last`, or `bare` (verb second without its subject, behind und)."""
    tokens: list[Token] = []
    if clause.gap:
        tokens += _relative_pronoun(clause)
    elif clause.link is not None:
        tokens += clause.link.german()
    finite, end = _verbs(clause)
    middle, extraposed = _middle_field(clause, order)
    if order == "second":
        tokens += _front(clause)
    if order != "last":
        tokens += finite
    tokens += middle
    tokens += _verb_final(clause, finite, end) if order == "last" else end
    tokens += extraposed
    return tokens + _trailing(clause)


def _verb_final(clause: Clause, finite: list[Token], end: list[Token]) -> list[Token]:
    """The verbs at the end of a subordinate clause; a separable prefix is written together with its
    verb."""
    if clause.verb.prefix and clause.mode == "present":
        return [Token(end[0].text + finite[0].text, finite[0].keys)]
    return end + finite


def _trailing(clause: Clause) -> list[Token]:
    tokens: list[Token] = []
    if clause.shared is not None:
        tokens += words("und", (clause.shared.uid, "and"))
        tokens += german_clause(clause.shared, "bare")
    for inner in (clause.complement, clause.subordinate):
        if inner is not None:
            tokens += _between_commas(inner)
    return tokens


def _between_commas(clause: Clause) -> list[Token]:
    return [Token(COMMA, ()), *german_clause(clause, "last"), Token(COMMA, ())]


def _verbs(clause: Clause) -> tuple[list[Token], list[Token]]:
    """The finite verb and what closes the bracket (prefix, participle or infinitive)."""
    fin: Key = (clause.uid, "fin")
    lex: Key = (clause.uid, "lex")
    many = clause.subject.is_many
    verb = clause.verb
    mode = clause.mode
    if clause.is_existential:
        return words("gibt", fin), []
    if verb is COPULA:
        singular, plural = ("war", "waren") if mode == "past" else ("ist", "sind")
        return words(plural if many else singular, fin), []
    end = verb.de
    if clause.modal is not None:
        singular, plural = clause.modal.singular, clause.modal.plural
    elif mode == "future":
        singular, plural = "wird", "werden"
    elif mode == "present":
        finite = words(verb.plural if many else verb.singular, fin, lex)
        return finite, words(verb.prefix, lex)
    else:
        end = verb.participle
        singular, plural = _AUXILIARIES[verb.auxiliary if mode == "perfect" else mode]
    return words(plural if many else singular, fin), words(end, lex)


def _front(clause: Clause) -> list[Token]:
    if clause.is_existential and clause.front == "subject":
        return words("es", (clause.uid, "there"))
    if clause.front == "time" and clause.time is not None:
        return clause.time.german()
    if clause.front == "place" and clause.place is not None:
        return german_pp(clause.place)
    if clause.front == "accusative" and clause.accusative is not None:
        return german_np(clause.accusative, "acc")
    return german_np(clause.subject, "nom")


def _middle_field(clause: Clause, order: str) -> tuple[list[Token], list[Token]]:
    """Subject, dative, definite object, time, not, manner, place, indefinite object, the rest; and
    the relative clause that moves behind the bracket when it hangs on the last phrase."""
    parts = _middle_parts(clause, order)
    tokens: list[Token] = []
    extraposed: list[Token] = []
    for i, (part, case) in enumerate(parts):
        is_last = i == len(parts) - 1 and clause.predicate is None and part is not clause.subject
        moved = _hanging_relative(part) if is_last else None
        tokens += _part(part, case, skip=moved)
        if moved is not None:
            extraposed = _between_commas(moved)
    if clause.predicate is not None:
        tokens += _adjective(clause.uid, "predicate", clause.predicate, "")
    return tokens, extraposed


def _middle_parts(clause: Clause, order: str) -> list[tuple[Part, Case]]:
    """The phrases of the middle field, those left out that stand in front or that the relative
    pronoun replaces."""
    replaced = {clause.gap, clause.front if order == "second" else ""}
    parts: list[tuple[Part, Case]] = []

    def add(part: Part | None, case: Case = "acc", role: str | None = None) -> None:
        if part is not None and role not in replaced:
            parts.append((part, case))

    accusative = clause.accusative
    is_early = accusative is not None and accusative.is_definite
    if clause.is_existential:
        add(Token("es", ((clause.uid, "there"),)), role="subject")
    elif order != "bare":
        add(clause.subject, "nom", "subject")
    add(clause.dative, "dat", "dative")
    if is_early:
        add(accusative, "acc", "accusative")
    add(clause.time, role="time")
    if clause.is_negated and not clause.is_indefinite_negation:
        add(Token("nicht", ((clause.uid, "not"),)))
    add(clause.means)
    add(clause.manner)
    add(clause.place, role="place")
    if not is_early:
        add(accusative, "acc", "accusative")
    if clause.is_existential:
        add(clause.subject)
    add(clause.prepositional, role="prepositional")
    add(clause.direction)
    return parts


def _part(part: Part, case: Case, skip: Clause | None) -> list[Token]:
    if isinstance(part, Token):
        return [part]
    if isinstance(part, FixedPhrase):
        return part.german()
    if isinstance(part, PrepositionalPhrase):
        return german_pp(part, skip)
    return german_np(part, case, skip)


def _hanging_relative(part: Part) -> Clause | None:
    phrase = part.phrase if isinstance(part, PrepositionalPhrase) else part
    return phrase.relative if isinstance(phrase, NounPhrase) else None


def german_pp(pp: PrepositionalPhrase, skip: Clause | None = None) -> list[Token]:
    """A prepositional phrase; in dem -> im and its like are one token with the keys of both."""
    tokens = german_np(pp.phrase, pp.case, skip)
    key: Key = (pp.uid, "prep")
    contracted = _CONTRACTIONS.get((pp.de, tokens[0].text))
    if contracted is not None:
        return [Token(contracted, (key, *tokens[0].keys)), *tokens[1:]]
    return [Token(pp.de, (key,)), *tokens]


def german_np(phrase: NounPhrase, case: Case, skip: Clause | None = None) -> list[Token]:
    """A noun phrase with everything that hangs on it, except the relative clause `skip`."""
    return coordinate(phrase, "und", lambda single: _single(single, case, skip))


def _single(phrase: NounPhrase, case: Case, skip: Clause | None) -> list[Token]:
    uid = phrase.uid
    number = "p" if phrase.is_plural else phrase.gender
    if phrase.determiner == "pronoun" and phrase.owner is not None:
        form = _PRONOUN["p" if phrase.owner.is_many else phrase.owner.gender]
        return words(form, (uid, "noun"))
    tokens = _determiner(phrase, case, number)
    ending = _ending(phrase.determiner, case, number)
    for i, adjective in enumerate(phrase.adjectives):
        tokens += _adjective(uid, f"adjective {i}", adjective, ending)
    if phrase.name:
        if phrase.label is not None:
            tokens += words(phrase.label[0 if case == "nom" else 1], (uid, "label"))
        tokens += words(phrase.name, (uid, "noun"))
    else:
        tokens += words(phrase.noun.german(case, is_plural=phrase.is_plural), (uid, "noun"))
    # the dative's counterpart, where English says "to"
    tokens[0] = Token(tokens[0].text, (*tokens[0].keys, (uid, "to")))
    if phrase.genitive is not None:
        tokens += german_np(phrase.genitive, "gen")
    if phrase.attribute is not None:
        tokens += german_pp(phrase.attribute)
    if phrase.relative is not None and phrase.relative is not skip:
        tokens += _between_commas(phrase.relative)
    return tokens


def _relative_pronoun(clause: Clause) -> list[Token]:
    antecedent = clause.antecedent
    number = "p" if antecedent.is_plural else antecedent.gender
    key: Key = (clause.uid, "relative")
    if clause.gap_phrase is not None:
        preposition = words(clause.gap_phrase.de, (clause.gap_phrase.uid, "prep"))
        return preposition + words(_relative_form(clause.gap_phrase.case, number), key)
    cases: dict[str, Case] = {"subject": "nom", "accusative": "acc", "dative": "dat"}
    return words(_relative_form(cases[clause.gap], number), key)


def _relative_form(case: Case, number: str) -> str:
    return "denen" if case == "dat" and number == "p" else _article(case, number)


def _article(case: Case, number: str) -> str:
    """A form of der, die, das."""
    ending = _ENDINGS[case][number]
    if ending == "es" and case != "gen":
        return "das"
    return "die" if ending == "e" else f"d{ending}"


def _determiner(phrase: NounPhrase, case: Case, number: str) -> list[Token]:
    key: Key = (phrase.uid, "det")
    kind = phrase.determiner
    ending = _ENDINGS[case][number]
    if kind == "number":
        return words(phrase.number[0], key)
    if kind == "der":
        return words(_article(case, number), key)
    if kind in ("dieser", "jeder"):
        return words(kind[:-2] + ending, key)
    stem = kind
    if phrase.owner is not None:
        stem = "sein" if phrase.owner.gender != "f" and not phrase.owner.is_many else "ihr"
    if kind in ("ein", "kein", "sein"):
        text = stem if (case, number) in _BARE else stem + ending
        return words(text, key, (phrase.uid, "not"))
    return words(kind[:-1] + _ENDINGS[case]["p"], key) if kind else []


def _ending(determiner: str, case: Case, number: str) -> str:
    """Adjective endings: weak after der-words, mixed after ein-words, strong elsewhere."""
    ending = _ENDINGS[case][number]
    if determiner in ("der", "dieser", "jeder"):
        return _weak_ending(case, number)
    if determiner in ("ein", "kein", "sein"):
        return ending if (case, number) in _BARE else _weak_ending(case, number)
    return ending


def _weak_ending(case: Case, number: str) -> str:
    is_short = number != "p" and (case == "nom" or (case == "acc" and number != "m"))
    return "e" if is_short else "en"


def _adjective(
    uid: int, role: str, adjective: tuple[Adjective, tuple[str, str] | None], ending: str
) -> list[Token]:
    word, degree = adjective
    tokens = words(degree[0], (uid, f"{role} degree")) if degree is not None else []
    return tokens + words(word.german(ending), (uid, role))
