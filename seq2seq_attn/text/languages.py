"""Language codes: ISO 639-1 (`de`), 639-2 and 639-3 (`deu`, `ger`), with a region or script
(`de-AT`, `deu_Latn`); and English names of languages (`German`)."""

import re
from collections.abc import Iterable, Sequence

from seq2seq_attn.errors import UsageError

# Each code of two letters is followed by the codes of three letters for the same language. For a
# macrolanguage, the code of its most common member is listed too (`cmn` for `zh`).
_CODES = """
aa:aar ab:abk ae:ave af:afr ak:aka:twi:fat am:amh an:arg ar:ara:arb as:asm av:ava ay:aym:ayr
az:aze:azj:azb ba:bak be:bel bg:bul bi:bis bm:bam bn:ben bo:bod:tib br:bre bs:bos ca:cat ce:che
ch:cha co:cos cr:cre cs:ces:cze cu:chu cv:chv cy:cym:wel da:dan de:deu:ger dv:div dz:dzo ee:ewe
el:ell:gre en:eng eo:epo es:spa et:est:ekk eu:eus:baq fa:fas:per:pes:prs ff:ful:fuv fi:fin fj:fij
fo:fao fr:fra:fre fy:fry ga:gle gd:gla gl:glg gn:grn:gug gu:guj gv:glv ha:hau he:heb hi:hin ho:hmo
hr:hrv ht:hat hu:hun hy:hye:arm hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk io:ido is:isl:ice
it:ita iu:iku ja:jpn jv:jav ka:kat:geo kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan ko:kor
kr:kau:knc ks:kas ku:kur:kmr kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit
lu:lub lv:lav:lvs mg:mlg:plt mh:mah mi:mri:mao mk:mkd:mac ml:mal mn:mon:khk mr:mar ms:msa:may:zsm
mt:mlt my:mya:bur na:nau nb:nob nd:nde ne:nep:npi ng:ndo nl:nld:dut nn:nno no:nor nr:nbl nv:nav
ny:nya oc:oci oj:oji om:orm:gaz or:ori:ory os:oss pa:pan pi:pli pl:pol ps:pus:pbt pt:por qu:que:quy
rm:roh rn:run ro:ron:rum ru:rus rw:kin sa:san sc:srd sd:snd se:sme sg:sag si:sin sk:slk:slo sl:slv
sm:smo sn:sna so:som sq:sqi:alb:als sr:srp ss:ssw st:sot su:sun sv:swe sw:swa:swh ta:tam te:tel
tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat ty:tah ug:uig uk:ukr ur:urd
uz:uzb:uzn ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid:ydd yo:yor za:zha zh:zho:chi:cmn zu:zul
"""
_TWO_LETTERS: dict[str, str] = {}
for _entry in _CODES.split():
    _two, *_three = _entry.split(":")
    _TWO_LETTERS |= dict.fromkeys(_three, _two)
# Codes of languages that have no code of two letters, as public corpora use them (FLORES-200,
# LAFAND).
_OTHERS = """
ace acm acq aeb ajp apc ars ary arz ast awa ban bbj bem bho bjn bug ceb cjk ckb crh dik dyu fil fon
fur hne ilo kab kac kam kbp kea kmb lij lmo ltg lua luo lus mag mai min mni mos nso nus pag pap pcm
sat scn shn szl taq tpi tum tzm umb vec war wuu yue
"""
_ENGLISH_NAMES = """
af:afrikaans ak:akan am:amharic ar:arabic as:assamese az:azerbaijani az:azeri ba:bashkir
be:belarusian bg:bulgarian bn:bengali bo:tibetan br:breton bs:bosnian ca:catalan ce:chechen
ceb:cebuano ckb:sorani co:corsican cs:czech cv:chuvash cy:welsh da:danish de:german dv:divehi
dz:dzongkha ee:ewe el:greek en:english eo:esperanto es:spanish et:estonian eu:basque fa:persian
fa:farsi fi:finnish fil:filipino fo:faroese fr:french fy:frisian ga:irish gl:galician gn:guarani
gu:gujarati gv:manx ha:hausa he:hebrew hi:hindi hr:croatian ht:haitian hu:hungarian hy:armenian
id:indonesian ig:igbo ilo:ilocano is:icelandic it:italian iu:inuktitut ja:japanese jv:javanese
ka:georgian kab:kabyle kg:kongo ki:kikuyu kk:kazakh kl:greenlandic km:khmer km:cambodian kn:kannada
ko:korean ks:kashmiri ku:kurdish kv:komi kw:cornish ky:kyrgyz la:latin lb:luxembourgish lg:luganda
lg:ganda ln:lingala lo:lao lo:laotian lt:lithuanian luo:luo lv:latvian mai:maithili mg:malagasy
mi:maori mk:macedonian ml:malayalam mn:mongolian mos:mossi mr:marathi ms:malay mt:maltese my:burmese
nb:bokmal ne:nepali nl:dutch nl:flemish nn:nynorsk no:norwegian ny:chichewa oc:occitan om:oromo
or:odia or:oriya os:ossetian pa:punjabi pcm:pidgin pl:polish ps:pashto pt:portuguese qu:quechua
rm:romansh rn:kirundi ro:romanian ru:russian rw:kinyarwanda sa:sanskrit sc:sardinian sd:sindhi
se:sami sg:sango shn:shan si:sinhala sk:slovak sl:slovenian sm:samoan sn:shona so:somali sq:albanian
sr:serbian ss:swati st:sotho su:sundanese sv:swedish sw:swahili ta:tamil te:telugu tg:tajik th:thai
ti:tigrinya tk:turkmen tl:tagalog tn:tswana to:tongan tr:turkish ts:tsonga tt:tatar ug:uyghur
uk:ukrainian ur:urdu uz:uzbek vi:vietnamese war:waray wo:wolof xh:xhosa yi:yiddish yo:yoruba
yue:cantonese zh:chinese zh:mandarin zu:zulu
"""
CODES_BY_NAME: dict[str, str] = {}
"""the codes of languages by their English names in lower case; a language may have several names"""
for _entry in _ENGLISH_NAMES.split():
    _code, _name = _entry.split(":")
    CODES_BY_NAME[_name] = _code
_THREE_LETTERS = "|".join([*_TWO_LETTERS, *_OTHERS.split()])
CODE = re.compile(
    rf"[a-z]{{2}}([-_][A-Za-z]{{2,4}})?|[a-z]{{3}}[-_][A-Z][a-z]{{3}}|{_THREE_LETTERS}"
)
"""matches a language code at the end of a file's name. A code of three letters without a script
must be a known language, because `txt` and `src` have the form of a code."""
_WITHOUT_SPACES = frozenset("bo dz ja km lo my shn th wuu yue zh".split())


def short_code(language: str) -> str:
    """Return the code without region and script, as two letters if the language has such a code:
    `de` for `deu_Latn` and for `German`."""
    code = re.split("[-_]", language)[0].lower()
    code = CODES_BY_NAME.get(code, code)
    return _TWO_LETTERS.get(code, code)


def english_name(language: str) -> str:
    """Return the English name of a language in lower case, or its code if the name is unknown."""
    code = short_code(language)
    for name, named_code in CODES_BY_NAME.items():
        if named_code == code:
            return name
    return code


def separates_words(language: str) -> bool:
    """Return whether a language is written with spaces between words. In other languages, each
    character counts as a word."""
    return short_code(language) not in _WITHOUT_SPACES


def complete_languages(
    text: str, names: Iterable[str], languages: Sequence[str | None], *, is_ordered: bool = True
) -> tuple[str, ...]:
    """Return the languages of a text, with each None in `languages` replaced by a language code
    from `names`.

    Args:
        text: the name of the text, for errors.
        names: the suffixes of files, the keys of rows, or the cells of a table's first row. Without
            a header, the first row is text.
        languages: the languages of the sources and the target; None if unknown.
        is_ordered: whether `names` are in the order of `languages`.

    Raises:
        UsageError: `names` have more or fewer codes for the unknown languages than needed, or
            several languages are unknown and `names` are not ordered, or a language is empty.
    """
    if "" in languages:
        raise UsageError(
            f"{text}: a language is empty; give --source-language and --target-language a code, or "
            "leave them out"
        )
    candidates = [name.lower() if len(name) == 2 else name for name in map(str.strip, names)]
    codes_in_names = dict.fromkeys(filter(CODE.fullmatch, candidates))
    codes = []
    for code in codes_in_names:
        short = short_code(code)
        if short == code or short not in codes_in_names:  # `deu` beside `de` is no other language
            codes.append(code)
    # A single code of three letters may be a word in the first row of a text, such as `cat`.
    if len(codes) == 1 and len(codes[0]) == 3:
        codes = []
    unassigned = [code for code in codes if code not in languages]
    missing = languages.count(None)
    if missing and (len(unassigned) != missing or (missing > 1 and not is_ordered)):
        known = f" (its names have {', '.join(codes)})" if codes else ""
        raise UsageError(
            f"{text}: its languages are not clear{known}; name both, with --source-language and "
            "--target-language"
        )
    return tuple(language or unassigned.pop(0) for language in languages)
