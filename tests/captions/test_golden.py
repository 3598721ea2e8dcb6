"""The embedded corpus's grammar: golden sentences for each pattern, built by hand, and declension tables."""

import pytest

from seq2seq_attn.captions import generator as captions
from seq2seq_attn.captions.english import english_sentence
from seq2seq_attn.captions.german import german_np, german_pp, german_sentence
from seq2seq_attn.captions.lexicon import Phrase, load_lexicon
from seq2seq_attn.captions.tree import Clause, FixedPhrase, NounPhrase, PrepositionalPhrase, Sentence

LEXICON = load_lexicon()
ADJECTIVES = {word.de: word for word in LEXICON.adjectives}


class Tree:
    """Shorthand for hand-built sentences."""

    def __init__(self):
        self._uid = 0

    def uid(self):
        self._uid += 1
        return self._uid

    def np(self, de, determiner="der", *adjectives, **fields):
        noun = next(noun for noun in LEXICON.nouns if noun.de == de)
        words = [(ADJECTIVES[name], None) for name in adjectives]
        return NounPhrase(self.uid(), noun, gender=noun.gender, determiner=determiner, adjectives=words, **fields)

    def name(self, name, gender="f", **fields):
        return NounPhrase(self.uid(), name=name, gender=gender, **fields)

    def pp(self, de, en, phrase, case="dat"):
        return PrepositionalPhrase(self.uid(), de, en, case, phrase)

    def fixed(self, phrases, de):
        phrase = next(phrase for phrase in phrases if " ".join(phrase.de) == de)
        return FixedPhrase(self.uid(), phrase, phrase.de, phrase.en)

    def time(self, de):
        return self.fixed(LEXICON.times, de)

    def conjunction(self, de):
        return self.fixed(LEXICON.conjunctions, de)

    def clause(self, de, subject, **fields):
        verb = next(verb for verb in LEXICON.verbs if verb.de == de) if de else None
        if "modal" in fields:
            fields["modal"] = next(modal for modal in LEXICON.modals if modal.singular == fields["modal"])
            fields["mode"] = "modal"
        return Clause(self.uid(), verb, subject, **fields)

    def read(self, *clauses, joints=(), opening=None, is_question=False):
        """German, English and the links as word pairs."""
        sentence = Sentence(self.uid(), list(clauses), list(joints), opening, is_question)
        source, target = german_sentence(sentence), english_sentence(sentence)
        words = [f"{source[i].text}-{target[j].text}" for i, j in captions._links(source, target)]
        return captions._join(source), captions._join(target), " ".join(words)


def simple(tree):
    jacket = tree.pp("in", "in", tree.np("Jacke", "ein", "rot"))
    return tree.read(
        tree.clause(
            "lesen",
            tree.np("Frau", "ein", attribute=jacket),
            accusative=tree.np("Zeitung", "ein"),
            place=tree.pp("in", "in", tree.np("Park")),
        )
    )


def inversion(tree):
    hat = tree.np("Hut", "ein", "alt")
    return tree.read(tree.clause("tragen", tree.np("Mann"), accusative=hat, time=tree.time("heute"), front="time"))


def modal(tree):
    return tree.read(
        tree.clause("besuchen", tree.np("Junge"), modal="will", accusative=tree.np("Großmutter", "ein", "alt"))
    )


def perfect(tree):
    subject = tree.np("Kind", "number", is_plural=True, number=("drei", "three"))
    return tree.read(
        tree.clause(
            "gehen",
            subject,
            mode="perfect",
            direction=tree.pp("zu", "to", tree.np("Schule")),
            time=tree.time("gestern"),
        )
    )


def perfect_with_relative(tree):
    letter = tree.np("Brief", "ein")
    predicate = (ADJECTIVES["lang"], ("sehr", "very"))
    letter.relative = tree.clause("", letter, gap="subject", mode="past", predicate=predicate)
    return tree.read(tree.clause("schreiben", tree.name("Anna"), mode="perfect", accusative=letter))


def future(tree):
    return tree.read(
        tree.clause(
            "warten", tree.np("Gast"), mode="future", prepositional=tree.pp("auf", "for", tree.np("Zug"), "acc")
        )
    )


def separable(tree):
    subject = tree.np("Künstlerin")
    return tree.read(tree.clause("anziehen", subject, accusative=tree.np("Mantel", "sein", "teuer", owner=subject)))


def dative(tree):
    farmer = tree.np("Bauer", "der", "alt")
    return tree.read(tree.clause("helfen", tree.np("Tourist", "dieser"), dative=farmer))


def giving(tree):
    return tree.read(
        tree.clause("geben", tree.np("Lehrer"), dative=tree.np("Mädchen"), accusative=tree.np("Buch", "ein", "neu"))
    )


def passive(tree):
    agent = tree.pp("von", "by", tree.np("Mann"))
    return tree.read(tree.clause("reparieren", tree.np("Auto"), mode="passive", prepositional=agent))


def copula(tree):
    return tree.read(tree.clause("", tree.np("Turm"), predicate=(ADJECTIVES["hoch"], None)))


def measure(tree):
    euros = tree.np("Euro", "number", is_plural=True, number=("350", "350"))
    return tree.read(tree.clause("kosten", tree.np("Fahrrad"), accusative=euros))


def existential(tree):
    place = tree.pp("in", "in", tree.np("Garten"))
    bird = tree.np("Vogel", "ein", "klein")
    return tree.read(tree.clause("", bird, is_existential=True, front="place", place=place))


def object_first(tree):
    return tree.read(tree.clause("suchen", tree.np("Frau"), accusative=tree.np("Hund"), front="accusative"))


def subordinate(tree):
    man = tree.np("Mann")
    inner = tree.clause("aufstehen", NounPhrase(tree.uid(), man.noun, gender="m", determiner="pronoun", owner=man))
    inner.link = tree.conjunction("weil")
    return tree.read(tree.clause("lachen", man, subordinate=inner))


def fronted_clause(tree):
    link = tree.conjunction("während")
    inner = tree.clause("lesen", tree.np("Großvater"), accusative=tree.np("Zeitung"), link=link)
    return tree.read(tree.clause("spielen", tree.np("Kind", "", is_plural=True)), opening=inner)


def complement(tree):
    inner = tree.clause("essen", tree.np("Kuh", "der", is_plural=True), accusative=tree.np("Apfel", "ein"))
    inner.link = FixedPhrase(
        tree.uid(), Phrase(("dass",), ("that",), ((0, 0),), frozenset(), False), ("dass",), ("that",)
    )
    return tree.read(tree.clause("wissen", tree.name("Peter", "m"), complement=inner))


def relative(tree):
    guest = tree.np("Gast")
    guest.relative = tree.clause("folgen", tree.np("Hund"), dative=guest, gap="dative")
    return tree.read(tree.clause("schlafen", guest))


def relative_with_preposition(tree):
    house = tree.np("Hütte", "ein")
    house.relative = tree.clause("wohnen", tree.np("Nachbarin"), gap="place")
    house.relative.gap_phrase = tree.pp("in", "in", house)
    return tree.read(tree.clause("sehen", tree.name("Müller", label=("Herr", "Herrn", "Mr")), accusative=house))


def question(tree):
    return tree.read(tree.clause("kennen", tree.np("Frau"), accusative=tree.np("Polizist", "dieser")), is_question=True)


def coordination(tree):
    first = tree.clause("kaufen", tree.np("Bäcker"), accusative=tree.np("Milch", "", "kalt"))
    second = tree.clause("schlafen", tree.np("Hund", "number", is_plural=True, number=("12", "12")))
    return tree.read(first, second, joints=["und"])


def negation(tree):
    return tree.read(
        tree.clause("tragen", tree.np("Student"), accusative=tree.np("Uniform", "kein"), is_negated=True),
        tree.clause("anrufen", tree.name("Eva"), mode="perfect", accusative=tree.np("Gast"), is_negated=True),
        joints=["aber"],
    )


def genitive(tree):
    hat = tree.np("Hut", "der", "rot", genitive=tree.np("Mann", "der", "alt"))
    return tree.read(
        tree.clause("finden", tree.name("Ida"), mode="perfect", accusative=hat, time=tree.time("vor zwei Tagen"))
    )


GOLDEN = {
    simple: (
        "Eine Frau in einer roten Jacke liest im Park eine Zeitung.",
        "A woman in a red jacket is reading a newspaper in the park.",
        "eine-a Frau-woman in-in einer-a roten-red Jacke-jacket liest-is liest-reading im-in im-the Park-park "
        "eine-a Zeitung-newspaper .-.",
    ),
    inversion: (
        "Heute trägt der Mann einen alten Hut.",
        "Today the man is wearing an old hat.",
        "heute-today trägt-is trägt-wearing der-the Mann-man einen-an alten-old Hut-hat .-.",
    ),
    modal: (
        "Der Junge will eine alte Großmutter besuchen.",
        "The boy wants to visit an old grandmother.",
        "der-the Junge-boy will-wants will-to eine-an alte-old Großmutter-grandmother besuchen-visit .-.",
    ),
    perfect: (
        "Drei Kinder sind gestern zur Schule gegangen.",
        "Three children went to the school yesterday.",
        "drei-three Kinder-children sind-went gestern-yesterday zur-to zur-the Schule-school gegangen-went .-.",
    ),
    perfect_with_relative: (
        "Anna hat einen Brief geschrieben, der sehr lang war.",
        "Anna wrote a letter that was very long.",
        "Anna-Anna hat-wrote einen-a Brief-letter geschrieben-wrote der-that sehr-very lang-long war-was .-.",
    ),
    future: (
        "Der Gast wird auf den Zug warten.",
        "The guest will wait for the train.",
        "der-the Gast-guest wird-will auf-for den-the Zug-train warten-wait .-.",
    ),
    separable: (
        "Die Künstlerin zieht ihren teuren Mantel an.",
        "The artist is putting on her expensive coat.",
        "die-the Künstlerin-artist zieht-is zieht-putting zieht-on ihren-her teuren-expensive Mantel-coat "
        "an-putting an-on .-.",
    ),
    dative: (
        "Dieser Tourist hilft dem alten Bauern.",
        "This tourist is helping the old farmer.",
        "dieser-this Tourist-tourist hilft-is hilft-helping dem-the alten-old Bauern-farmer .-.",
    ),
    giving: (
        "Der Lehrer gibt dem Mädchen ein neues Buch.",
        "The teacher is giving a new book to the girl.",
        "der-the Lehrer-teacher gibt-is gibt-giving dem-to dem-the Mädchen-girl ein-a neues-new Buch-book .-.",
    ),
    passive: (
        "Das Auto wird vom Mann repariert.",
        "The car is being repaired by the man.",
        "das-the Auto-car wird-is wird-being vom-by vom-the Mann-man repariert-repaired .-.",
    ),
    copula: ("Der Turm ist hoch.", "The tower is tall.", "der-the Turm-tower ist-is hoch-tall .-."),
    measure: (
        "Das Fahrrad kostet 350 Euro.",
        "The bicycle costs 350 euros.",
        "das-the Fahrrad-bicycle kostet-costs 350-350 Euro-euros .-.",
    ),
    existential: (
        "Im Garten gibt es einen kleinen Vogel.",
        "In the garden, there is a small bird.",
        "im-in im-the Garten-garden gibt-is es-there einen-a kleinen-small Vogel-bird .-.",
    ),
    object_first: (
        "Den Hund sucht die Frau.",
        "The woman is looking for the dog.",
        "den-the Hund-dog sucht-is sucht-looking sucht-for die-the Frau-woman .-.",
    ),
    subordinate: (
        "Der Mann lacht, weil er aufsteht.",
        "The man is laughing because he is getting up.",
        "der-the Mann-man lacht-is lacht-laughing weil-because er-he aufsteht-is aufsteht-getting aufsteht-up .-.",
    ),
    fronted_clause: (
        "Während der Großvater die Zeitung liest, spielen Kinder.",
        "While the grandfather is reading the newspaper, children are playing.",
        "während-while der-the Großvater-grandfather die-the Zeitung-newspaper liest-is liest-reading ,-, "
        "spielen-are spielen-playing Kinder-children .-.",
    ),
    complement: (
        "Peter weiß, dass die Kühe einen Apfel essen.",
        "Peter knows that the cows are eating an apple.",
        "Peter-Peter weiß-knows dass-that die-the Kühe-cows einen-an Apfel-apple essen-are essen-eating .-.",
    ),
    relative: (
        "Der Gast, dem der Hund folgt, schläft.",
        "The guest whom the dog is following is sleeping.",
        "der-the Gast-guest dem-whom der-the Hund-dog folgt-is folgt-following schläft-is schläft-sleeping .-.",
    ),
    relative_with_preposition: (
        "Herr Müller sieht eine Hütte, in der die Nachbarin wohnt.",
        "Mr Müller sees a hut in which the neighbour lives.",
        "Herr-Mr Müller-Müller sieht-sees eine-a Hütte-hut in-in der-which die-the Nachbarin-neighbour wohnt-lives .-.",
    ),
    question: (
        "Kennt die Frau diesen Polizisten?",
        "Does the woman know this policeman?",
        "kennt-Does kennt-know die-the Frau-woman diesen-this Polizisten-policeman ?-?",
    ),
    coordination: (
        "Der Bäcker kauft kalte Milch und 12 Hunde schlafen.",
        "The baker is buying cold milk, and 12 dogs are sleeping.",
        "der-the Bäcker-baker kauft-is kauft-buying kalte-cold Milch-milk und-and 12-12 Hunde-dogs "
        "schlafen-are schlafen-sleeping .-.",
    ),
    negation: (
        "Der Student trägt keine Uniform, aber Eva hat den Gast nicht angerufen.",
        "The student is not wearing a uniform, but Eva did not call the guest.",
        "der-the Student-student trägt-is trägt-wearing keine-not keine-a Uniform-uniform ,-, aber-but Eva-Eva "
        "hat-did den-the Gast-guest nicht-not angerufen-call .-.",
    ),
    genitive: (
        "Ida hat den roten Hut des alten Mannes vor zwei Tagen gefunden.",
        "Ida found the old man's red hat two days ago.",
        "Ida-Ida hat-found den-man's roten-red Hut-hat des-the alten-old Mannes-man's vor-ago zwei-two Tagen-days "
        "gefunden-found .-.",
    ),
}


@pytest.mark.parametrize("build", GOLDEN, ids=lambda build: build.__name__)
def test_golden_sentence(build):
    german, english, links = build(Tree())
    expected_german, expected_english, expected_links = GOLDEN[build]
    assert german == expected_german
    assert english == expected_english
    assert links.lower() == expected_links.lower()


@pytest.mark.parametrize(
    ("phrase", "forms"),
    [
        (("Mann", "der", "alt"), ("der alte Mann", "den alten Mann", "dem alten Mann", "des alten Mannes")),
        (("Mann", "ein", "alt"), ("ein alter Mann", "einen alten Mann", "einem alten Mann", "eines alten Mannes")),
        (
            ("Junge", "dieser", "nett"),
            ("dieser nette Junge", "diesen netten Jungen", "diesem netten Jungen", "dieses netten Jungen"),
        ),
        (("Frau", "kein", "müde"), ("keine müde Frau", "keine müde Frau", "keiner müden Frau", "keiner müden Frau")),
        (("Milch", "", "kalt"), ("kalte Milch", "kalte Milch", "kalter Milch", "kalter Milch")),
        (("Käse", "", "lecker"), ("leckerer Käse", "leckeren Käse", "leckerem Käse", None)),
        (("Turm", "der", "hoch"), ("der hohe Turm", "den hohen Turm", "dem hohen Turm", None)),
        (("Blume", "der", "rosa"), ("die rosa Blume", "die rosa Blume", "der rosa Blume", "der rosa Blume")),
        (
            ("Wohnzimmer", "ein", "dunkel"),
            ("ein dunkles Wohnzimmer", "ein dunkles Wohnzimmer", "einem dunklen Wohnzimmer", None),
        ),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value, tuple) and len(value) == 3 else None,
)
def test_declension_in_the_singular(phrase, forms):
    for case, form in zip(("nom", "acc", "dat", "gen"), forms, strict=True):
        if form is not None:
            assert " ".join(token.text for token in german_np(Tree().np(*phrase), case)) == form


@pytest.mark.parametrize(
    ("phrase", "forms"),
    [
        (("Kind", "der", "klein"), ("die kleinen Kinder", "die kleinen Kinder", "den kleinen Kindern")),
        (("Vogel", "viele", "schön"), ("viele schöne Vögel", "viele schöne Vögel", "vielen schönen Vögeln")),
        (("Auto", "", "neu"), ("neue Autos", "neue Autos", "neuen Autos")),
        (("Hund", "sein", "alt"), ("seine alten Hunde", "seine alten Hunde", "seinen alten Hunden")),
    ],
)
def test_declension_in_the_plural(phrase, forms):
    tree = Tree()
    owner = tree.np("Mann")
    for case, form in zip(("nom", "acc", "dat"), forms, strict=True):
        tokens = german_np(tree.np(*phrase, is_plural=True, owner=owner), case)
        assert " ".join(token.text for token in tokens) == form


def test_contractions():
    tree = Tree()

    def text(de, *phrase):
        return " ".join(token.text for token in german_pp(tree.pp(de, "", tree.np(*phrase))))

    assert text("in", "Park") == "im Park"
    assert text("an", "Bahnhof") == "am Bahnhof"
    assert text("zu", "Schule", "der", "alt") == "zur alten Schule"
    assert text("von", "Mann") == "vom Mann"
    assert text("in", "Küche") == "in der Küche"
    assert text("in", "Park", "dieser") == "in diesem Park"
