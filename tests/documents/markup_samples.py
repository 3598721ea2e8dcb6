"""Generated XML and HTML. "Hund" is translated in each place whose name begins with `fill`."""

from tests.documents.samples import finish

HTML = """Hund|<b>Hund</b>|<a href="?a=1&amp;b=Hund" title="a>Hund">Hund</a>|&amp; &lt;3|&#72;und|
&nbsp;Hund|<code>Katze <code>Katze</code> Katze</code>|<!-- Hund -->|<i translate="no">Katze</i>|
שלום Hund|<em><b>Hund</b>e</em>|<br>|<br/>| %s |{name}|R&D|<IMG ALT='Hund'>|1 < 2|
<script>"Hund" < 1</script>"""
XML = """Hund|<g id="1">Hund</g>|<g id="2" x='a>Hund'><g id="3">Hund</g> Hund</g>|<x id='4'/>|
<ph id="5">&lt;br title="Katze"/&gt;</ph>|<mrk mtype="protected">Katze</mrk>|<!-- Hund -->| %s |
<![CDATA[Hund & <3]]>|&#72;und|&lt;b&gt;|<?pi Hund?>|{name}|<ph><sub>Katze</sub></ph>|שלום Hund|
&amp; &lt;3"""
EMPTY = ["", "<target/>", '<target x="Hund" />', "<target>\n</target>", "<target><x/></target>"]
FULL = ["<target>Da</target>", '<target state="final">ein Hund</target>']
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16"]


def make_markup(rng, pieces):
    chosen = rng.choices(pieces.replace("\n", "").split("|"), k=rng.randint(0, 6))
    return rng.choice(["", " ", "\n  "]).join(["Hund", *chosen, rng.choice(["", "\n"])])


def make_html(rng):
    head = "<!DOCTYPE html><html lang=de><head><title>Hund</title><style>p > b {}</style></head>\n"
    blocks = [head]
    for _ in range(rng.randint(1, 6)):
        text = make_markup(rng, HTML)
        code = "<pre>Katze <b>\n Katze</b></pre><textarea>Katze</textarea>"
        blocks.append(rng.choice([f"<p>{text}</p>\n", f"<ul><li>{text}<li>{text}</ul>", code]))
    return finish(rng, "".join([*blocks, "</html>"]), mark=False)


def make_xlf(rng):
    units = ['<group translate="no"><trans-unit id="no"><source>Hund</source></trans-unit></group>']
    for number in range(rng.randint(1, 6)):
        kind, targets = rng.choice([("fill", EMPTY), ("keep", FULL)])
        segments = rng.choice(["", "<seg-source>Katze</seg-source>\n"])
        other = rng.choice(["", "<alt-trans><source>Hund</source><target/></alt-trans>"])
        source = f"<source>{make_markup(rng, XML)}</source>"
        content = f"{source}\n{segments}{rng.choice(targets)}{other}"
        units.append(f'<trans-unit id="{kind}{number}">{content}</trans-unit>\n')
    body = f"<body>{''.join(units)}</body>"
    file = f'<file source-language="de-DE" target-language="en">{body}</file>'
    return finish_xml(rng, f'<xliff version="1.2">{file}</xliff>')


def make_xliff(rng):
    units = ['<unit translate="no"><segment><source>Hund</source></segment></unit>']
    for number in range(rng.randint(1, 6)):
        kind, targets = rng.choice([("fill", EMPTY), ("keep", FULL)])
        content = f"<source>{make_markup(rng, XML)}</source>{rng.choice(targets)}"
        other = rng.choice(["", "<ignorable><source>Hund</source></ignorable>"])
        segment = f'<segment id="{kind}{number}">\n{content}</segment>'
        units.append(f"<unit><notes><note>Hund</note></notes>{other}{segment}{other}</unit>\n")
    names = 'xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="ger" trgLang="en-GB"'
    return finish_xml(rng, f"<xliff {names}>{''.join(units)}</xliff>")


def make_tmx(rng):
    units = ['<tu><tuv xml:lang="fr"><seg>Hund</seg></tuv></tu>\n']
    for number in range(rng.randint(1, 6)):
        kind, targets = rng.choice([("fill", EMPTY), ("keep", FULL)])
        code = rng.choice(["de", "de-AT", "GER"])
        variants = [f'<tuv xml:lang="{code}"><seg>{make_markup(rng, XML)}</seg></tuv>']
        target = rng.choice(targets).replace("target", "seg")
        if target:
            variants.append(f'<tuv xml:lang="en-US"><prop>Hund</prop>{target}</tuv>')
        rng.shuffle(variants)
        units.append(f'<tu tuid="{kind}{number}"><note>Hund</note>{chr(10).join(variants)}</tu>\n')
    body = f"<header srclang='*all*'/><body>{''.join(units)}</body>"
    return finish_xml(rng, f'<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">{body}</tmx>')


def finish_xml(rng, text):
    encoding = rng.choice(ENCODINGS)
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n<!-- <target/> -->'
    return finish(rng, head + text, mark=False).decode().encode(encoding)
