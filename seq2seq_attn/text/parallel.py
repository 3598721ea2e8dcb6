"""Find parallel text as people keep it: a file per language, or a table, with its languages and columns."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, zip_longest
from operator import itemgetter
from pathlib import Path

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.corpus import count_lines, iter_lines, unequal_lines
from seq2seq_attn.text.formats import Format, Row, format_of, numbered
from seq2seq_attn.text.languages import CODE, short_code
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.tokenizers.base import NONE, SOURCE_END

log = logging.getLogger(__name__)

Spec = str | Sequence[str]
"""a prefix, a table, or [source file, target file]"""
KINDS = "a prefix (PREFIX.en, PREFIX.fr), two files, or a table (TSV, CSV, JSON, TMX)"
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")

_SAMPLE, _MIN_WORDS, _MARGIN = 1_000, 5, 0.1
"""The first rows tell the columns. Without names, these are read in the order of the file, unless in another order the
share of the languages' frequent words, of which at least so many occur, is higher by this margin."""
_ROLES = ("source", "src", "input"), ("target", "tgt", "trg", "output")


@dataclass(frozen=True)
class Text:
    """Parallel text: a file for each language, or a table; or one file, if the source's language is `none`."""

    paths: tuple[Path, ...]
    languages: tuple[str, ...]
    """those of the sources, then that of the target"""
    format: Format | None = None
    """of a table"""
    columns: tuple[str, ...] = ()
    """the key of each language in the rows of a table"""
    has_header: bool = False

    def __str__(self) -> str:
        return " and ".join(map(str, self.paths))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Source (several are joined by tabs; blank without one) and target of each pair. Raises UserError: a file
        cannot be read, the numbers of lines differ, or a row is not a pair."""
        for *sources, target in self._cells(self.format) if self.format else self._aligned_lines():
            yield sources[0] if len(sources) == 1 else SOURCE_END.join(map(one_line, sources)), target

    def _aligned_lines(self) -> Iterator[Sequence[str]]:
        for lines in zip_longest(*map(iter_lines, self.paths)):
            if None in lines:
                raise unequal_lines({path: count_lines(path) for path in self.paths})
            yield lines

    def _cells(self, format: Format) -> Iterator[Sequence[str]]:
        path, pick = self.paths[0], itemgetter(*self.columns)
        rows = format.rows(path) if format.rows else iter(())
        size = len(next(row for _, row in rows if row)) if self.has_header else 0
        for number, row in rows:
            size = size or len(row)
            if "1" in row and len(row) != size:
                raise UserError(
                    f"{path}, line {number}: {len(row)} columns, but {size} before; expected the same tabs or other "
                    "separators in each line"
                )
            try:
                yield pick(row) if row else [""] * len(self.columns)
            except KeyError as error:
                raise UserError(f"{path}, line {number}: no text for {error}; {_known(row)}") from None


def find_text(spec: Spec, *languages: str | None) -> Text:
    """Locate the text of a split, in the languages of its sources, usually one, and of its target. A language that is
    None is read from the names of files, columns or keys.

    Raises:
        UsageError: the languages are not clear, a name is nearly right (the message suggests the right one), names or
            columns are those of other languages, or the two sides are the same.
        UserError: a file cannot be read, or its format is not read.
    """
    name = spec if isinstance(spec, str) else ", ".join(spec)
    if languages[0] == NONE:
        return _find_lines(name, languages[-1])
    if isinstance(spec, str):
        path = Path(spec)
        format = format_of(path) if path.is_file() else None
        # prose in a file that is named after a language may look like CSV
        if format and not (format.name == "CSV" and CODE.fullmatch(_split(path)[1])):
            return _find_columns(path, format, languages)
        files = _files_by_suffix(spec)
        wanted = languages if files else tuple(language or "LANGUAGE" for language in languages)
        known = _complete(spec, sorted(files), wanted, is_ordered=False)
        if missing := [language for language in known if language not in files]:
            raise _absent(spec, files.values(), missing[0])
        paths = [files[language] for language in known]
    else:
        paths = [*map(Path, spec)]
        if len(paths) != len(languages):
            raise UsageError(f"{name}: expected a prefix or {len(languages)} files; not {len(paths)}")
        known = _complete(name, [_split(path)[1] for path in paths], languages)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{name}: the same file twice, {paths[-1]}; name a file for each side")
    codes = [_split(path)[1] for path in paths]
    if all(map(CODE.fullmatch, (*codes, *known))) and [*map(short_code, codes)] != [*map(short_code, known)]:
        raise UsageError(
            f"{name}: the file names suggest {', '.join(codes)}; expected {', '.join(known)}; put the files in the "
            "order source, target, or change --source-language and --target-language"
        )
    for path in paths:
        if not path.is_file():
            raise _absent(str(path))
        if (format := format_of(path)) and format.name == "TMX":
            raise UsageError(f"{path}: TMX, which holds both sides; name it alone")
    return Text(tuple(paths), known)


def _find_lines(name: str, language: str | None) -> Text:
    """Text of one language: a file, or a prefix of one that is named after the language."""
    path = Path(name)
    path = path if path.is_file() else _files_by_suffix(name).get(language or "", path)
    if not path.is_file():
        raise UserError(f"{name}: no such file; with --source-language {NONE}, expected one file of plain text")
    if (format := format_of(path)) and format.name != "CSV":  # prose may look like CSV
        raise UsageError(f"{path}: {format.name}; with --source-language {NONE}, expected one file of plain text")
    return Text((path,), (NONE, *_complete(name, [_split(path)[1]], [language])))


def _complete(
    spec: str, names: Sequence[str], languages: Sequence[str | None], *, is_ordered: bool = True
) -> tuple[str, ...]:
    """The languages, with those that are None read from the names of files, columns or keys."""
    codes = _codes(names)
    codes = [code for code in dict.fromkeys(codes) if code == short_code(code) or short_code(code) not in codes]
    if [*map(len, codes)] == [3]:  # a word of the first line, such as `cat`
        codes = []
    rest = [code for code in codes if code not in languages]
    missing = languages.count(None)
    if missing and (len(rest) != missing or (missing > 1 and not is_ordered)):
        options = ("--source-language", "--target-language")
        wanted = " and ".join(option for option, name in zip(options, languages, strict=False) if name is None)
        shown = f" (found {', '.join(codes)})" if codes else ""
        raise UsageError(f"{spec}: its languages are not clear{shown}; add {wanted}")
    return tuple(language or rest.pop(0) for language in languages)


def _codes(names: Iterable[str]) -> list[str]:
    """Those of the names that are codes of languages; of two letters, in lower case."""
    stripped = map(str.strip, names)
    return [code for name in stripped if CODE.fullmatch(code := name.lower() if len(name) == 2 else name)]


def _files_by_suffix(prefix: str) -> dict[str, Path]:
    """The files `PREFIX.SUFFIX`; plain ones before compressed ones."""
    folder, name = Path(prefix).parent, Path(prefix).name
    paths = [path for path in sorted(folder.iterdir()) if _split(path)[0] == name] if folder.is_dir() else []
    return {_split(path)[1]: path for path in reversed(paths) if path.is_file()}


def _split(path: Path) -> tuple[str, str]:
    """The name of a file before its last suffix, and that suffix; the suffix of a compression is ignored."""
    stem, _, suffix = (path.stem if path.suffix in COMPRESSED else path.name).rpartition(".")
    return stem, suffix


def _absent(name: str, files: Iterable[Path] = (), language: str | None = None) -> UserError:
    """The error for a name without a file, or a prefix without one in a language."""
    path = Path(name)
    stem, suffix = _split(path)
    if path.is_dir():
        return UsageError(f"{name}: a folder, not a file; expected {KINDS}")
    if path.is_file() and (CODE.fullmatch(suffix) or suffix == language):
        return UsageError(f"{name}: one side only; name both by {path.with_name(stem)}")
    if path.is_file():
        return UsageError(f"{name}: plain text without the same tabs or separators in each line; expected {KINDS}")
    if path.exists():
        return UserError(f"{name}: a pipe or device; text is read more than once, so name a regular file")
    if files:
        return UserError(f"{name}.{language}: no such file; {_known(map(str, files))}")
    return UserError(f"{name}: no such file" + (f", and no {name}.{language}; expected {KINDS}" if language else ""))


def _find_columns(path: Path, format: Format, languages: Sequence[str | None]) -> Text:
    """The text of a table, in the columns that names, or else their cells, say to be in these languages."""
    rows = [row for _, row in islice(format.rows(path), _SAMPLE) if row] if format.rows else []
    rows = rows or [numbered([""] * len(languages))]
    is_keyed = "1" not in rows[0]
    names: Row = {key: key for row in rows for key in row} if is_keyed else rows[0]
    known = _complete(str(path), [*names.values()], languages)
    texts = [key for key in names if _is_text([row.get(key, "") for row in rows])]
    header = {key: name for key, name in names.items() if len(rows) == 1 or rows[-1].get(key) != name}
    if columns := _named(header, texts, known):
        return Text((path,), known, format, columns, has_header=not is_keyed)
    if is_keyed:
        missing = " and ".join(sorted({*known} - {*names})) or f"each of {' and '.join(known)}"
        raise UserError(f"{path}, line 1: no text for {missing}; {_known(names)}")
    codes = _codes(header.values())
    if len(codes) >= len(known) and all(map(CODE.fullmatch, known)):
        raise UsageError(
            f"{path}: its first line names the languages {', '.join(codes)}, not {', '.join(known)}; name those with "
            "--source-language and --target-language, or, if that line is text, put a line of their names first"
        )
    texts = [*names] if len(names) == len(known) else texts
    if len(texts) < len(known):
        raise UserError(f"{path}, line 1: {len(names)} columns, {len(texts)} with text; expected {', '.join(known)}")
    columns = _by_words(rows, texts, known)
    if columns != tuple(names):
        where = ", ".join(f"{language} in column {column}" for language, column in zip(known, columns, strict=True))
        log.info("%s: %s of %d; a first line of names would decide", path, where, len(names))
    if all(re.fullmatch(r"[#\w-]+", name.strip()) for name in names.values()):
        log.warning("%s: its first line (%s) is read as text; remove a header", path, ", ".join(names.values()))
    return Text((path,), known, format, columns)


def _known(names: Iterable[str]) -> str:
    return f"there is {', '.join(names) or 'none'}: see --source-language and --target-language"


def _is_text(cells: Sequence[str]) -> bool:
    """Whether a column may be text: mostly letters, not a code, and not the same few values again and again."""
    filled = [cell for cell in cells if cell.strip()]
    letters = "".join(filled).replace(" ", "")
    is_varied = len(filled) == 1 or len(set(filled)) > 1 + len(filled) / 10
    return is_varied and 2 * sum(map(str.isalpha, letters)) > len(letters) and not all(map(CODE.fullmatch, filled))


def _named(names: Row, texts: Sequence[str], languages: Sequence[str]) -> tuple[str, ...] | None:
    """The columns named after the languages, the sides, or the languages in English; or texts whose names contain such
    a word, for example `text_en`."""

    def form(name: str) -> str:
        return "_" + re.sub(r"[\W_]+", "_", name.lower()).strip("_") + "_"

    forms = {key: form(name) for key, name in names.items() if " " not in name.strip()}
    vocabularies = [[(language,) for language in languages], _ROLES if len(languages) == 2 else []]
    if names and all(name.isalpha() and len(name) > 2 for name in names.values()):
        from seq2seq_attn.text.tokenizers.spacy import english_name  # spaCy takes a second to import

        vocabularies.append([(english_name(language),) for language in languages])
    for vocabulary in vocabularies:
        for keys, fits in (([*forms], str.__eq__), ([key for key in texts if key in forms], str.__contains__)):
            chosen: list[str] = []
            for words in vocabulary:
                free = [key for key in keys if key not in chosen]
                chosen += [key for key in free if any(fits(forms[key], form(word)) for word in words)][:1]
            if vocabulary and len(chosen) == len(vocabulary):
                return tuple(chosen)
    return None


def _by_words(rows: Sequence[Row], texts: Sequence[str], languages: Sequence[str]) -> tuple[str, ...]:
    """The columns in which the languages' frequent words are most frequent; the first ones, unless others are clearly
    better. A column of a language's code says what the next one is."""
    from seq2seq_attn.text.tokenizers.spacy import stop_words

    shares: dict[tuple[str, str], float] = {}
    for key in texts:
        words = Counter(re.findall(r"\w+", " ".join(row.get(key, "") for row in rows).lower()))
        marks = {row.get(str(int(key) - 1), "").lower() for row in rows}
        for language in languages:
            frequent = [count for word, count in words.items() if word in stop_words(language)]
            share = sum(frequent) / words.total() if len(frequent) >= _MIN_WORDS else 0.0
            shares[key, language] = 1.0 if marks == {language.lower()} else share

    def fit(columns: Sequence[str]) -> float:
        return sum(map(shares.__getitem__, zip(columns, languages, strict=True)))

    best = max(permutations(texts[:12], len(languages)), key=fit)
    first = tuple(texts[: len(languages)])
    return best if fit(best) > fit(first) + _MARGIN else first
