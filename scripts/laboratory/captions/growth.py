"""Growing a sentence to an exact length: every part that may be added has a place on a list and a
price in tokens.

A price is an upper bound (a comma may merge with another one), so the sentence is measured again
when the budget is spent; what is left is filled with adjectives and adverbs, which cost one token
each.
"""

from collections.abc import Callable

from scripts.laboratory.captions.german import german_clause, german_np, german_pp, german_sentence
from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.lexicon import Attribute, nouns_of
from scripts.laboratory.captions.nouns import Impossible
from scripts.laboratory.captions.patterns import add_subordinate, add_time, main_clause
from scripts.laboratory.captions.relative import (
    MEASURED,
    may_have_relative,
    phrases_of,
    relative_clause,
    tense_of,
)
from scripts.laboratory.captions.tree import (
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Sentence,
    Token,
)

_MAX_DEPTH = 2
_MAX_FOLLOWING = 2

Option = Callable[[int], int]
"""Adds its part if that costs at most this many tokens; returns the cost, 0 if it added nothing."""


class Growth:
    """The parts that may still be added to one sentence: `small` ones inside clauses, `big` ones
    that are clauses."""

    def __init__(self, grammar: Grammar, sentence: Sentence) -> None:
        self._grammar = grammar
        self._sentence = sentence
        self._small: list[Option] = []
        self._big: list[Option] = []
        for clause in (
            *sentence.clauses,
            *([sentence.opening] if sentence.opening is not None else []),
        ):
            self._offer_clause(clause)
        self._may_chain = not sentence.is_question

    def grow(self, length: int) -> list[Token] | None:
        """Add parts until the German sentence has exactly this many tokens, and return them; None
        if that failed."""
        for _ in range(12):
            tokens = german_sentence(self._sentence)
            missing = length - len(tokens)
            if missing <= 0:
                return None if missing else tokens
            if not self._spend(missing):
                return None
        return None

    def _spend(self, budget: int) -> bool:
        """Spend the budget, or as much of it as there are options for; whether anything was
        spent."""
        grammar, spent = self._grammar, 0
        while spent < budget:
            left = budget - spent
            share = 0.65 if left > 12 else 0.4 if left >= 6 else 0.1 if left >= 4 else 0.0
            use_big = (
                left >= 4
                and (bool(self._big) or self._may_chain)
                and (not self._small or grammar.chance(share))
            )
            if use_big:
                cost = self._take_big(left)
            elif self._small:
                cost = self._take(self._small, left)
            else:
                break
            if cost == 0 and not self._small and left < 8:
                break
            spent += cost
        return spent > 0

    def _take_big(self, left: int) -> int:
        if self._may_chain and left >= 6 and (not self._big or self._grammar.chance(0.3)):
            return self._chain(left)
        return self._take(self._big, left) if self._big else 0

    def _take(self, options: list[Option], left: int) -> int:
        """Try a random option once; it leaves the list."""
        i = int(self._grammar.rng.random() * len(options))
        options[i], options[-1] = options[-1], options[i]
        option = options.pop()
        try:
            return option(left)
        except Impossible:
            return 0

    # What may be added

    def _offer_clause(self, clause: Clause) -> None:
        """List what may be added to a clause and to its parts."""
        self._small += [
            lambda left: self._add_time(clause, left),
            lambda left: self._add_place(clause, left),
        ]
        self._small.append(lambda left: self._add_manner(clause, left))
        if clause.verb is not None and clause.verb.de == "reisen":
            self._small.append(lambda left: self._add_means(clause, left))
        if clause.predicate is not None:
            self._small.append(lambda left: self._add_predicate_degree(clause))
        for phrase in phrases_of(clause):
            self._offer_phrase(phrase, clause)
            if phrase.relative is not None:
                self._offer_clause(phrase.relative)
        for inner in (clause.subordinate, clause.complement):
            if inner is not None:
                self._offer_clause(inner)
        if clause.depth == 0 and not clause.is_existential and not self._sentence.is_question:
            self._big.append(lambda left: self._add_subordinate(clause, left))
            self._big.append(lambda left: self._add_shared(clause, left))

    def _offer_phrase(self, phrase: NounPhrase, clause: Clause | None) -> None:
        if phrase.noun is None:
            if clause is not None:
                self._small.append(lambda left: self._add_following(phrase, clause, left))
            return
        if phrase.noun.classes & MEASURED:
            return
        self._small += [lambda left: self._add_adjective(phrase)] * 2
        self._small.append(lambda left: self._add_genitive(phrase, left))
        self._small.append(lambda left: self._add_attribute(phrase, left))
        if clause is not None:
            self._small.append(lambda left: self._add_following(phrase, clause, left))
            if clause.depth < _MAX_DEPTH:
                self._big.append(lambda left: self._add_relative(phrase, clause, left))

    def _add_adjective(self, phrase: NounPhrase) -> int:
        word, degree = self._grammar.adjective(phrase)
        phrase.adjectives.append((word, degree))
        phrase.adjectives.sort(key=lambda pair: pair[0].rank)
        if not word.is_plain and word.rank < 4 and not any(d for _, d in phrase.adjectives):
            self._small.append(lambda left: self._add_degree(phrase))
        return 1

    def _add_degree(self, phrase: NounPhrase) -> int:
        word, degree = phrase.adjectives[0]
        if degree is not None or word.is_plain or word.rank == 4:
            return 0
        phrase.adjectives[0] = (word, self._grammar.degree())
        return 1

    def _add_predicate_degree(self, clause: Clause) -> int:
        if (
            clause.predicate is None
            or clause.predicate[1] is not None
            or clause.predicate[0].is_plain
        ):
            return 0
        if clause.predicate[0].rank == 4:
            return 0
        clause.predicate = (clause.predicate[0], self._grammar.degree())
        return 1

    def _add_time(self, clause: Clause, left: int) -> int:
        if clause.time is not None or self._has_tail(clause):
            return 0
        return add_time(self._grammar, clause, max_tokens=left)

    def _add_place(self, clause: Clause, left: int) -> int:
        verb = clause.verb
        if (
            verb is None
            or clause.place is not None
            or clause.gap == "place"
            or clause.direction is not None
        ):
            return 0
        if self._has_tail(clause):
            return 0
        place = self._grammar.place(verb.where)
        cost = len(german_pp(place))
        if cost > left:
            return 0
        clause.place = place
        self._offer_phrase(place.phrase, clause)
        return cost

    def _add_manner(self, clause: Clause, left: int) -> int:
        if clause.manner is not None or clause.is_negated or self._has_tail(clause):
            return 0
        clause.manner = self._grammar.manner(clause)
        return 1

    def _add_means(self, clause: Clause, left: int) -> int:
        means = self._grammar.fixed(self._grammar.choose(self._grammar.lexicon.means))
        if len(means.de) > left or self._has_tail(clause):
            return 0
        clause.means = means
        return len(means.de)

    def _has_tail(self, clause: Clause) -> bool:
        """Whether a relative clause ends the English clause, so that nothing can follow it."""
        return any(
            phrase.relative is not None
            for phrase in phrases_of(clause)
            if phrase is not clause.subject
        ) or (clause.is_existential and clause.subject.relative is not None)

    def _add_genitive(self, phrase: NounPhrase, left: int) -> int:
        noun = phrase.noun
        if (
            noun is None
            or phrase.determiner != "der"
            or phrase.attribute is not None
            or phrase.relative is not None
        ):
            return 0
        if (
            not noun.classes
            & {"thing", "clothes", "pet", "vehicle", "furniture", "building", "carried", "toy"}
            or left < 2
        ):
            return 0
        if phrase.following:
            return 0
        genitive = self._grammar.noun_phrase(frozenset({"person"}), form="place")
        if genitive.noun is None or genitive.is_plural:
            return 0
        phrase.genitive = genitive
        self._small.append(lambda left: self._add_adjective(genitive))
        return len(german_np(genitive, "gen"))

    def _add_attribute(self, phrase: NounPhrase, left: int) -> int:
        noun = phrase.noun
        if (
            noun is None
            or phrase.attribute is not None
            or phrase.genitive is not None
            or phrase.relative is not None
        ):
            return 0
        if phrase.following or left < 2:
            return 0
        options = [
            attribute
            for attribute in self._grammar.lexicon.attributes
            if attribute.of & noun.classes
        ]
        attribute = self._grammar.choose(options)
        inner = self._attribute_phrase(phrase, attribute)
        pp = PrepositionalPhrase(
            self._grammar.uid(), attribute.de, attribute.en, attribute.case, inner
        )
        cost = len(german_pp(pp))
        if cost > left:
            return 0
        phrase.attribute = pp
        if attribute.form in ("indefinite", "any"):
            self._small += [lambda left: self._add_adjective(inner)] * 2
        return cost

    def _attribute_phrase(self, phrase: NounPhrase, attribute: Attribute) -> NounPhrase:
        grammar = self._grammar
        if attribute.form == "city":
            return grammar.city()
        if attribute.form == "of":
            assert phrase.noun is not None  # only nouns have attributes
            made_of = phrase.noun.made_of
            nouns = [noun for noun in nouns_of(frozenset({"material"})) if noun.de in made_of]
            noun = grammar.choose(nouns)
            return NounPhrase(grammar.uid(), noun, gender=noun.gender)
        form = {"indefinite": "bare" if phrase.is_plural else "ein", "any": "place"}.get(
            attribute.form, attribute.form
        )
        inner = grammar.noun_phrase(frozenset(attribute.noun.split()), form=form)
        if attribute.noun == "housepart":
            inner.adjectives.append(grammar.adjective(inner))  # "mit Türen" alone says nothing
        return inner

    def _add_following(self, phrase: NounPhrase, clause: Clause, left: int) -> int:
        """und with another noun phrase of the kind."""
        if (
            phrase.relative is not None
            or phrase.attribute is not None
            or phrase.genitive is not None
            or left < 2
        ):
            return 0
        if (
            clause.is_existential
            or len(phrase.following) >= _MAX_FOLLOWING
            or phrase.determiner in ("kein", "sein")
        ):
            return 0
        verb, roles = clause.verb, (clause.subject, clause.accusative, clause.dative)
        if (
            verb is None
            or phrase not in roles
            or clause.front == "accusative"
            or verb.frame == "measure"
        ):
            return 0
        is_patient = clause.mode in ("passive", "passive past")
        if phrase is clause.subject:
            classes = verb.object if is_patient else verb.subject
        else:
            classes = verb.dative if phrase is clause.dative and verb.dative else verb.object
        if any(other.owner is phrase for other in phrases_of(clause)):
            return 0
        if phrase is clause.subject and (verb.is_wearing or clause.shared is not None):
            return 0
        form = {"ein": "ein", "": "any" if phrase.name else "bare"}.get(phrase.determiner, "any")
        other = self._grammar.noun_phrase(classes & _classes_like(phrase), form=form)
        cost = 1 + len(german_np(other, "acc"))
        if cost > left or other.determiner == "jeder" or phrase.determiner == "jeder":
            return 0
        phrase.following.append(other)
        self._offer_phrase(other, None)
        return cost

    def _add_relative(self, phrase: NounPhrase, clause: Clause, left: int) -> int:
        if not may_have_relative(clause, phrase) or left < 5:
            return 0
        if clause.gap and phrase is clause.subject:
            return 0  # one clause inside another inside a third is hard to read
        inner = relative_clause(self._grammar, phrase, tense_of(clause.mode), clause.depth + 1)
        cost = len(german_clause(inner, "last")) + 2
        if cost > left:
            return 0
        phrase.relative = inner
        self._offer_clause(inner)
        return cost

    def _add_subordinate(self, clause: Clause, left: int) -> int:
        if (
            clause.subordinate is not None
            or clause.complement is not None
            or clause.shared is not None
            or left < 5
        ):
            return 0
        was_habit = clause.is_habit
        inner = add_subordinate(self._grammar, clause)
        cost = len(german_clause(inner, "last")) + 2
        if cost > left:
            clause.subordinate, clause.is_habit = None, was_habit
            return 0
        self._offer_clause(inner)
        return cost

    def _add_shared(self, clause: Clause, left: int) -> int:
        """und with a second verb of the same subject."""
        if (
            clause.shared is not None
            or clause.subordinate is not None
            or clause.complement is not None
            or left < 3
        ):
            return 0
        if (
            clause.mode not in ("present", "perfect", "future", "modal")
            or clause.verb is None
            or clause.is_negated
        ):
            return 0
        if clause.front == "accusative" or self._has_tail(clause):
            return 0
        shared = self._grammar.clause(tense_of(clause.mode), subject=clause.subject)
        shared.is_habit = clause.is_habit
        shared.depth = 1
        cost = 1 + len(german_clause(shared, "bare"))
        if cost > left:
            return 0
        clause.shared = shared
        for phrase in phrases_of(shared):
            if phrase is not clause.subject:
                self._offer_phrase(phrase, shared)
        return cost

    def _chain(self, left: int) -> int:
        """Another main clause behind und or aber."""
        sentence = self._sentence
        try:
            clause = main_clause(self._grammar, tense_of(sentence.clauses[0].mode))
        except Impossible:
            return 0
        joint = "aber" if self._grammar.chance(0.25) else "und"
        cost = len(german_clause(clause, "second")) + (3 if joint == "aber" else 2)
        if cost > left:
            return 0
        if joint == "und" and sentence.joints and sentence.joints[-1] == "und":
            sentence.joints[-1] = ","
        sentence.clauses.append(clause)
        sentence.joints.append(joint)
        self._offer_clause(clause)
        return cost


def _classes_like(phrase: NounPhrase) -> frozenset[str]:
    """Coordinated nouns are of one kind: persons with persons, clothes with clothes."""
    return frozenset({"person"}) if phrase.noun is None else phrase.noun.classes
