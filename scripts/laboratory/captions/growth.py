"""Growing a sentence to an exact length: every part that may be added has a place on a list and a
price in tokens.

A price is an upper bound (a comma may merge with another one), so the sentence is measured again
when the budget is spent; what is left is filled with adjectives and adverbs, which cost one token
each.
"""

from collections.abc import Callable
from functools import partial

from scripts.laboratory.captions.german import german_clause, german_np, german_pp, german_sentence
from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.lexicon import COPULA, Attribute, nouns_of
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
    Sentence,
    Token,
)

_MAX_DEPTH = 2
_POSSESSIONS = frozenset({"thing", "clothes", "pet", "vehicle", "furniture", "building", "toy"})

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
        for clause in sentence.clauses:
            self._offer_clause(clause)
        if sentence.opening is not None:
            self._offer_clause(sentence.opening)
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
            share = 0.65 if left > 12 else 0.4 if left >= 6 else 0.1
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
        for add in (self._add_time, self._add_place, self._add_manner):
            self._small.append(partial(add, clause))
        if clause.verb.de == "reisen":
            self._small.append(partial(self._add_means, clause))
        if clause.predicate is not None:
            self._small.append(partial(self._add_predicate_degree, clause))
        for phrase in phrases_of(clause):
            self._offer_phrase(phrase, clause)
            if phrase.relative is not None:
                self._offer_clause(phrase.relative)
        for inner in (clause.subordinate, clause.complement):
            if inner is not None:
                self._offer_clause(inner)
        if clause.depth == 0 and not clause.is_existential and not self._sentence.is_question:
            self._big.append(partial(self._add_subordinate, clause))
            self._big.append(partial(self._add_shared, clause))

    def _offer_phrase(self, phrase: NounPhrase, clause: Clause | None) -> None:
        if phrase.name:
            if clause is not None:
                self._small.append(partial(self._add_following, phrase, clause))
            return
        if phrase.noun.classes & MEASURED:
            return
        self._small += [partial(self._add_adjective, phrase)] * 2
        self._small.append(partial(self._add_genitive, phrase))
        self._small.append(partial(self._add_attribute, phrase))
        if clause is not None:
            self._small.append(partial(self._add_following, phrase, clause))
            if clause.depth < _MAX_DEPTH:
                self._big.append(partial(self._add_relative, phrase, clause))

    def _add_adjective(self, phrase: NounPhrase, left: int) -> int:
        word, degree = self._grammar.adjective(phrase)
        phrase.adjectives.append((word, degree))
        phrase.adjectives.sort(key=lambda pair: pair[0].rank)
        if word.has_degrees and not any(degree for _, degree in phrase.adjectives):
            self._small.append(partial(self._add_degree, phrase))
        return 1

    def _add_degree(self, phrase: NounPhrase, left: int) -> int:
        word, degree = phrase.adjectives[0]
        if degree is not None or not word.has_degrees:
            return 0
        phrase.adjectives[0] = (word, self._grammar.degree())
        return 1

    def _add_predicate_degree(self, clause: Clause, left: int) -> int:
        assert clause.predicate is not None  # only then it is offered
        word, _ = clause.predicate
        if not word.has_degrees:
            return 0
        clause.predicate = (word, self._grammar.degree())
        return 1

    def _add_time(self, clause: Clause, left: int) -> int:
        if clause.time is not None or self._has_tail(clause):
            return 0
        return add_time(self._grammar, clause, max_tokens=left)

    def _add_place(self, clause: Clause, left: int) -> int:
        if clause.place is not None or clause.direction is not None:
            return 0
        if clause.gap == "place" or self._has_tail(clause):
            return 0
        place = self._grammar.place(clause.verb.where)
        cost = len(german_pp(place))
        if cost > left:
            return 0
        clause.place = place
        self._offer_phrase(place.phrase, clause)
        return cost

    def _add_manner(self, clause: Clause, left: int) -> int:
        if clause.is_negated or self._has_tail(clause):
            return 0
        clause.manner = self._grammar.manner(clause)
        return 1

    def _add_means(self, clause: Clause, left: int) -> int:
        means = self._grammar.fixed(self._grammar.choose(self._grammar.lexicon.means))
        if len(means.de) > left:
            return 0
        clause.means = means
        return len(means.de)

    def _has_tail(self, clause: Clause) -> bool:
        """Whether a relative clause ends the English clause, so that nothing can follow it."""
        for phrase in phrases_of(clause):
            if phrase.relative is not None:
                if clause.is_existential or phrase is not clause.subject:
                    return True
        return False

    def _add_genitive(self, phrase: NounPhrase, left: int) -> int:
        if phrase.determiner != "der" or phrase.has_tail or phrase.following:
            return 0
        if not phrase.noun.classes & _POSSESSIONS or left < 2:
            return 0
        genitive = self._grammar.noun_phrase(frozenset({"person"}), form="place")
        if genitive.is_plural:
            return 0
        phrase.genitive = genitive
        self._small.append(partial(self._add_adjective, genitive))
        return len(german_np(genitive, "gen"))

    def _add_attribute(self, phrase: NounPhrase, left: int) -> int:
        if phrase.has_tail or phrase.following or left < 2:
            return 0
        grammar = self._grammar
        attributes = grammar.lexicon.attributes
        options = [attribute for attribute in attributes if attribute.of & phrase.noun.classes]
        attribute = grammar.choose(options)
        inner = self._attribute_phrase(phrase, attribute)
        pp = grammar.prepositional(attribute.de, attribute.en, inner, attribute.case)
        cost = len(german_pp(pp))
        if cost > left:
            return 0
        phrase.attribute = pp
        if attribute.form in ("indefinite", "any"):
            self._small += [partial(self._add_adjective, inner)] * 2
        return cost

    def _attribute_phrase(self, phrase: NounPhrase, attribute: Attribute) -> NounPhrase:
        grammar = self._grammar
        if attribute.form == "city":
            return grammar.city()
        if attribute.form == "of":
            made_of = phrase.noun.made_of
            materials = nouns_of(frozenset({"material"}))
            noun = grammar.choose([noun for noun in materials if noun.de in made_of])
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
        if phrase.has_tail or phrase.following or left < 2:
            return 0
        if phrase.determiner in ("kein", "sein") or clause.front == "accusative":
            return 0
        verb = clause.verb
        if verb.frame == "measure":
            return 0
        if phrase not in (clause.subject, clause.accusative, clause.dative):
            return 0
        is_patient = clause.mode in ("passive", "passive past")
        classes = verb.object
        if phrase is clause.subject:
            if verb.is_wearing or clause.shared is not None:
                return 0
            if not is_patient:
                classes = verb.subject
        elif phrase is clause.dative and verb.dative:
            classes = verb.dative
        if any(other.owner is phrase for other in phrases_of(clause)):
            return 0
        form = {"ein": "ein", "": "any" if phrase.name else "bare"}.get(phrase.determiner, "any")
        other = self._grammar.noun_phrase(classes & phrase.noun.classes, form=form)
        cost = 1 + len(german_np(other, "acc"))
        if cost > left or other.determiner == "jeder" or phrase.determiner == "jeder":
            return 0
        phrase.following = other
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
        if clause.has_second_clause or left < 5:
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
        if clause.has_second_clause or clause.verb is COPULA or clause.is_negated:
            return 0
        if clause.mode not in ("present", "perfect", "future", "modal"):
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
