"""English from the tree: subject-verb-object order, the progressive, do-support, a/an, the
possessive."""

from scripts.laboratory.captions.lexicon import COPULA, Adjective
from scripts.laboratory.captions.tree import (
    COMMA,
    Clause,
    Key,
    NounPhrase,
    PrepositionalPhrase,
    Sentence,
    Token,
    coordinate,
    words,
)

_PRONOUN = {"m": "he", "f": "she"}
_POSSESSIVE = {"m": "his", "f": "her", "n": "its"}
_JOINTS = {"und": "and", "aber": "but"}


def english_sentence(sentence: Sentence) -> list[Token]:
    """The tokens of a sentence, final mark included."""
    tokens: list[Token] = []
    if sentence.opening is not None:
        tokens += _clause(sentence.opening)
        tokens += words(COMMA, (sentence.opening.uid, "comma"))
    for i, clause in enumerate(sentence.clauses):
        if i:
            word = sentence.joints[i - 1]
            tokens += words(COMMA, (sentence.uid, f"comma {i}"))
            if word != COMMA:
                tokens += words(_JOINTS[word], (sentence.uid, f"joint {i}"))
        tokens += _clause(clause, is_question=sentence.is_question)
    tokens += words("?" if sentence.is_question else ".", (sentence.uid, "stop"))
    return _articles(tokens)


def _articles(tokens: list[Token]) -> list[Token]:
    """`a` becomes `an` before a vowel sound."""
    result = list(tokens)
    for i, token in enumerate(tokens[:-1]):
        following = tokens[i + 1].text.lower()
        if token.text == "a" and following[0] in "aeiou" and not following.startswith("uni"):
            result[i] = Token("an", token.keys)
    return result


def _clause(clause: Clause, *, is_question: bool = False, has_subject: bool = True) -> list[Token]:
    tokens: list[Token] = []
    if clause.gap:
        tokens += _relative_pronoun(clause)
    elif clause.link is not None:
        tokens += clause.link.english()
    else:
        tokens += _front(clause)
    auxiliary, rest = _verbs(clause, is_question=is_question)
    subject = _subject(clause) if has_subject else []
    middle = _middle(clause)
    negation = words("not", _negation_key(clause)) if clause.is_negated else []
    if is_question:
        tokens += [*auxiliary[:1], *subject, *negation, *auxiliary[1:], *middle, *rest]
    else:
        # what follows the first word of "wants to", "is being" stays behind it
        tokens += [*subject, *auxiliary[:1], *negation, *auxiliary[1:], *middle, *rest]
    tokens += _complements(clause)
    return tokens + _trailing(clause)


def _front(clause: Clause) -> list[Token]:
    if clause.front == "time" and clause.time is not None:
        tokens = clause.time.english()
    elif clause.front == "place" and clause.place is not None:
        tokens = english_pp(clause.place)
    else:
        return []
    return [*tokens, Token(COMMA, ())] if len(tokens) > 1 else tokens


def _subject(clause: Clause) -> list[Token]:
    if clause.is_existential:
        return words("there", (clause.uid, "there"))
    return [] if clause.gap == "subject" else english_np(clause.subject)


def _negation_key(clause: Clause) -> Key:
    if clause.is_indefinite_negation and clause.accusative is not None:
        return clause.accusative.uid, "not"
    return clause.uid, "not"


def _middle(clause: Clause) -> list[Token]:
    """Adverbs before the main verb."""
    tokens: list[Token] = []
    if clause.time is not None and clause.time.phrase.is_mid and clause.front != "time":
        tokens += clause.time.english()
    if clause.manner is not None and _manner_place(clause) == "before":
        tokens += clause.manner.english()
    return tokens


def _manner_place(clause: Clause) -> str:
    """Before the main verb, behind it where it has no object, or behind the object of a modal."""
    if (
        clause.accusative is None
        and clause.dative is None
        and clause.mode not in ("passive", "passive past")
    ):
        return "behind the verb"
    return "behind the object" if clause.mode == "modal" else "before"


def _verbs(clause: Clause, *, is_question: bool) -> tuple[list[Token], list[Token]]:
    """Auxiliaries and the main verb with what belongs to it."""
    fin: Key = (clause.uid, "fin")
    lex: Key = (clause.uid, "lex")
    many = clause.subject.is_many
    mode = clause.mode
    verb = clause.verb
    be = words("are" if many else "is", fin)
    was = words("were" if many else "was", fin)
    if verb is COPULA:
        return was if mode == "past" else be, []
    base, third, progressive, past, participle = verb.en
    plus = words(verb.plus, lex)
    infinitive = [*words(base, lex), *plus]
    needs_do = is_question or clause.is_negated
    if clause.modal is not None:
        modal = clause.modal.en_plural if many else clause.modal.en
        return words(modal, fin), infinitive
    if mode == "future":
        return words("will", fin), infinitive
    if mode == "passive":
        return [*be, *words("being", fin)], [*words(participle, lex), *plus]
    if mode == "passive past":
        return was, [*words(participle, lex), *plus]
    if mode == "perfect":
        if needs_do:
            return words("did", fin), infinitive
        return [], [*words(past, fin, lex), *plus]
    if verb.is_simple or clause.is_habit:
        if needs_do:
            return words("do" if many else "does", fin), infinitive
        return [], [*words(base if many else third, fin, lex), *plus]
    return be, [*words(progressive, lex), *plus]


def _complements(clause: Clause) -> list[Token]:
    manner = clause.manner.english() if clause.manner is not None else []
    tokens: list[Token] = manner if _manner_place(clause) == "behind the verb" else []
    if clause.is_existential:
        tokens += english_np(clause.subject)
    if clause.predicate is not None:
        tokens += _adjective(clause.uid, "predicate", clause.predicate)
    if clause.accusative is not None and clause.gap != "accusative":
        tokens += english_np(clause.accusative)
    if clause.dative is not None and clause.gap != "dative":
        if clause.accusative is not None:
            tokens += words("to", (clause.dative.uid, "to"))
        tokens += english_np(clause.dative)
    if _manner_place(clause) == "behind the object":
        tokens += manner
    if clause.prepositional is not None:
        tokens += english_pp(clause.prepositional)
    if clause.direction is not None:
        tokens += english_pp(clause.direction)
    if clause.means is not None:
        tokens += clause.means.english()
    if clause.place is not None and clause.front != "place":
        tokens += english_pp(clause.place)
    if clause.time is not None and clause.front != "time" and not clause.time.phrase.is_mid:
        tokens += clause.time.english()
    return tokens


def _trailing(clause: Clause) -> list[Token]:
    tokens: list[Token] = []
    if clause.shared is not None:
        tokens += words("and", (clause.shared.uid, "and"))
        tokens += _clause(clause.shared, has_subject=False)
    for inner in (clause.complement, clause.subordinate):
        if inner is not None:
            tokens += _clause(inner)
    return tokens


def english_pp(pp: PrepositionalPhrase) -> list[Token]:
    """A prepositional phrase; every word of "in front of" carries the preposition's key."""
    return [*words(pp.en, (pp.uid, "prep")), *english_np(pp.phrase)]


def english_np(phrase: NounPhrase) -> list[Token]:
    """A noun phrase with everything that hangs on it."""
    return coordinate(phrase, "and", _single)


def _single(phrase: NounPhrase) -> list[Token]:
    uid = phrase.uid
    if phrase.determiner == "pronoun" and phrase.owner is not None:
        return words(_subject_pronoun(phrase.owner), (uid, "noun"))
    tokens = _determiner(phrase)
    for i, adjective in enumerate(phrase.adjectives):
        tokens += _adjective(uid, f"adjective {i}", adjective)
    if phrase.name:
        if phrase.label is not None:
            tokens += words(phrase.label[2], (uid, "label"))
        tokens += words(phrase.name, (uid, "noun"))
    else:
        tokens += words(phrase.noun.english(is_plural=phrase.is_plural), (uid, "noun"))
    if phrase.attribute is not None:
        tokens += english_pp(phrase.attribute)
    if phrase.relative is not None:
        tokens += _clause(phrase.relative)
    return tokens


def _subject_pronoun(owner: NounPhrase) -> str:
    if owner.is_many:
        return "they"
    return _PRONOUN.get(owner.gender, "it") if owner.is_person else "it"


def _determiner(phrase: NounPhrase) -> list[Token]:
    key: Key = (phrase.uid, "det")
    if phrase.genitive is not None:
        # the possessor's 's does the work of the article
        possessor = english_np(phrase.genitive)
        last = possessor[-1]
        return [*possessor[:-1], Token(f"{last.text}'s", (*last.keys, key))]
    kind = phrase.determiner
    if phrase.owner is not None:
        return words("their" if phrase.owner.is_many else _POSSESSIVE[phrase.owner.gender], key)
    word = {
        "der": "the",
        "ein": "a",
        "kein": "a",
        "dieser": "these" if phrase.is_plural else "this",
        "jeder": "every",
    }.get(kind, phrase.number[1])
    return words(word, key)


def _relative_pronoun(clause: Clause) -> list[Token]:
    key: Key = (clause.uid, "relative")
    if clause.gap_phrase is not None:
        preposition = words(clause.gap_phrase.en, (clause.gap_phrase.uid, "prep"))
        return preposition + words("which", key)
    if not clause.antecedent.is_person:
        return words("that", key)
    return words("who" if clause.gap == "subject" else "whom", key)


def _adjective(
    uid: int, role: str, adjective: tuple[Adjective, tuple[str, str] | None]
) -> list[Token]:
    word, degree = adjective
    tokens = words(degree[1], (uid, f"{role} degree")) if degree is not None else []
    return tokens + words(word.en, (uid, role))
