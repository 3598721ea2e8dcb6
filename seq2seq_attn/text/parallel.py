"""Find parallel text by a prefix, by the names of its files, or as a table, and find its languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.corpus import iter_lines
from seq2seq_attn.text.languages import CODE, short_code
from seq2seq_attn.text.parallel_files import SeveralFiles, Table, Text, TwoFiles, header_of, is_json, json_texts

Spec = str | Sequence[str]
"""a prefix, a table, or [source file, target file]"""
KINDS = "a prefix (PREFIX.en, PREFIX.fr), two files, a .tsv or a .jsonl"

_TABLE = re.compile(r"\.(tsv|jsonl)(\.gz)?$")


def find_text(spec: Spec, *languages: str) -> Text:
    """Locate the text of a split, in the languages of its sources, usually one, and of its target.

    Raises:
        UsageError: a list does not name a file per language, a name is nearly right (the message suggests the right
            one), or the two sides have the same language.
        UserError: a file does not exist.
    """
    *source_languages, target_language = languages
    if isinstance(spec, str):
        has_columns = _is_table(spec) and not is_json(Path(spec))
        if target_language in source_languages and not has_columns:
            raise UsageError(
                f"{spec}: {target_language!r} is the target's language and a source's, so the reference would be a "
                "source; change a language, or name a file for each side"
            )
        if _is_table(spec):
            return Table(Path(spec), tuple(source_languages), target_language)
        return _of_files(find_files(spec, *languages))
    if len(spec) != len(languages):
        wanted = "two files, source and target"
        if len(languages) > 2:
            wanted = f"{len(languages)} files, those of {', '.join(source_languages)} and the target"
        raise UsageError(f"{', '.join(spec)}: expected a prefix or {wanted}; not {len(spec)} files")
    paths = [Path(part) for part in spec]
    for path in paths:
        if not path.is_file():
            raise _no_file(path)
    for source in paths[:-1]:
        if source.samefile(paths[-1]):
            raise UsageError(f"{source}, {paths[-1]}: the same file as source and target; name two")
    return _of_files(paths)


def _of_files(paths: Sequence[Path]) -> TwoFiles | SeveralFiles:
    *sources, target = paths
    return TwoFiles(sources[0], target) if len(sources) == 1 else SeveralFiles(tuple(sources), target)


def find_languages(spec: Spec, source: str | None, target: str | None) -> tuple[str, str]:
    """The source and target language: as given, otherwise read from the file names or a table's first line.

    Raises:
        UsageError: the languages cannot be read from the file names.
        UserError: a file cannot be read.
    """
    if source is not None and target is not None:
        return source, target
    codes, is_ordered = _languages_of(spec)
    if source is None and target is None and is_ordered and len(codes) == 2:
        return codes[0], codes[1]
    given = source or target
    rest = [language for language in codes if language != given]
    if given is not None and len(rest) == 1:
        return (given, rest[0]) if source is not None else (rest[0], given)
    named = spec if isinstance(spec, str) else ", ".join(spec)
    if isinstance(spec, str) and not _is_table(spec):
        _check_nearly_right(spec, codes)
        if not codes:
            raise UserError(f"{spec}: no such file, and no {spec}.LANGUAGE; expected {KINDS}")
    missing = " and ".join(
        option for option, known in (("--source-language", source), ("--target-language", target)) if known is None
    )
    found = f" (found {', '.join(codes)})" if codes else ""
    raise UsageError(f"{named}: its languages are not clear{found}; add {missing}")


def check_suffixes(spec: Spec, *languages: str) -> None:
    """Raises UsageError if the files of a list are all named after languages, but not after these."""
    if isinstance(spec, str):
        return
    codes = [_suffix(Path(part)) for part in spec]
    is_clear = all(map(CODE.fullmatch, (*codes, *languages)))
    if is_clear and [*map(short_code, codes)] != [*map(short_code, languages)]:
        raise UsageError(
            f"{', '.join(spec)}: the file names suggest {', '.join(codes)}; expected {', '.join(languages)}; put the "
            "files in the order source, target, or change --source-language and --target-language"
        )


def _languages_of(spec: Spec) -> tuple[list[str], bool]:
    """The language codes in file names or in a table's first line, and whether they come as source, target."""
    if not isinstance(spec, str):
        return [code for path in spec if (code := _language(Path(path)))], True
    if not _is_table(spec):
        prefix = Path(spec)
        siblings = sorted(prefix.parent.glob("*")) if prefix.parent.is_dir() else []
        named = [path for path in siblings if _stem(path) == prefix.name]
        return list(dict.fromkeys(code for path in named if (code := _language(path)))), False
    path = Path(spec)
    first = next(iter_lines(path), "")
    if is_json(path) and first:
        return [key for key in json_texts(path, 1, first) if CODE.fullmatch(key)], True
    header = header_of(first.split("\t"))
    return header if all(map(CODE.fullmatch, header)) else [], True  # `cat` may be a word of the first pair


def find_files(prefix: str, *languages: str) -> list[Path]:
    """The files of a prefix, plain or gzipped, one per language.

    Raises:
        UsageError: the prefix is nearly right (the message suggests the right one).
        UserError: a file does not exist.
    """
    sides = [_side(prefix, language) for language in languages]
    paths = [path for path in sides if path is not None]
    if len(paths) == len(sides):
        return paths
    _check_nearly_right(prefix, languages)
    missing = f"{prefix}.{languages[sides.index(None)]}"
    present = next(filter(None, sides), None)
    others, _ = _languages_of(prefix)
    hint = f", but {present} exists" if present else f"; a prefix is followed by .{languages[sides.index(None)]}"
    also = f"; there are files for {', '.join(others)}: see --source-language, --target-language" if others else ""
    raise UserError(f"{missing}: no such file, and no {missing}.gz{hint}{also}")


def _check_nearly_right(prefix: str, languages: Sequence[str]) -> None:
    """Reject a path that exists but is not a prefix, and suggest the right name."""
    path = Path(prefix)
    if path.is_dir():
        raise UsageError(f"{prefix}: a folder; name the files in it by {KINDS}{_example(path)}")
    if path.is_file() and (_language(path) or _suffix(path) in languages):
        stem = str(path.with_name(_stem(path)))
        raise UsageError(f"{prefix}: one side only; drop the {prefix.removeprefix(stem)!r} to name both: {stem}")
    if path.is_file():
        raise UsageError(f"{prefix}: expected {KINDS}")
    if path.exists() or _TABLE.search(prefix):
        raise _no_file(path)


def _no_file(path: Path) -> UserError:
    """The error for a path that is not a regular file."""
    if path.is_dir():
        return UserError(f"{path}: a folder, not a file")
    if path.exists():
        return UserError(f"{path}: a pipe or device; text is read more than once, so name a regular file")
    return UserError(f"{path}: no such file")


def _example(folder: Path) -> str:
    """The first parallel text in a folder, as an argument."""
    for path in sorted(folder.iterdir()):
        stem = str(path.with_name(_stem(path)))
        if _is_table(str(path)):
            return f", for example {path}"
        if _language(path) and len(_languages_of(stem)[0]) > 1:
            return f", for example {stem}"
    return ""


def _side(prefix: str, language: str) -> Path | None:
    plain = Path(f"{prefix}.{language}")
    return next((path for path in (plain, Path(f"{plain}.gz")) if path.is_file()), None)


def _stem(path: Path) -> str:
    """The file's name without `.gz` and its last suffix."""
    return Path(path.name.removesuffix(".gz")).stem


def _suffix(path: Path) -> str:
    """The file's last suffix, `.gz` ignored."""
    return Path(path.name.removesuffix(".gz")).suffix.removeprefix(".")


def _language(path: Path) -> str | None:
    """The language code at the end of a file's name."""
    return code if CODE.fullmatch(code := _suffix(path)) else None


def _is_table(spec: str) -> bool:
    return _TABLE.search(spec) is not None and Path(spec).is_file()
