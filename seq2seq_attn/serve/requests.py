"""Read and check the parameters, the key and the host name of a request."""

import asyncio
import base64
import hmac
import ipaddress
import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from seq2seq_attn.config.explain import expected
from seq2seq_attn.text.languages import short_code

MAX_DOCUMENT_BYTES = 1_000_000
"""maximum size of a request with a document; Starlette keeps 1 MiB of a file in memory"""
BODY_TIMEOUT_S = 10
"""maximum number of seconds to receive the body of a request"""
_MAX_FIELDS = 1_000
"""maximum number of fields in a multipart form"""
_DEEPL_SPLITTING = {"0": "off", "1": "auto", "nonewlines": "auto"}
"""values of `split_sentences` that DeepL's clients send"""
Language = Annotated[str, AfterValidator(short_code)]
"""a language code, converted to the form that names of language pairs have"""


class Access(NamedTuple):
    """Rules of access: which clients may ask, and how much."""

    key: str = ""
    """key that clients must send; empty if clients need no key"""
    max_characters: int = 10_000
    """maximum number of characters in the texts of a request"""
    hosts: Sequence[str] = ()
    """names of this machine that clients use, besides its addresses and `localhost`"""
    origins: Sequence[str] = ()
    """origins of web pages that may read answers; `*` stands for all origins"""


class Detection(BaseModel):
    """The parameters of `/detect`."""

    q: str | list[str]

    @property
    def texts(self) -> list[str]:
        """Return the texts of the request."""
        return [self.q] if isinstance(self.q, str) else self.q


class Translation(Detection):
    """The parameters that requests for translations have in both APIs."""

    split_sentences: Annotated[
        Literal["auto", "off"], BeforeValidator(lambda sent: _DEEPL_SPLITTING.get(str(sent), sent))
    ] = "auto"


class LibreTranslation(Translation):
    """The parameters of LibreTranslate's `/translate`."""

    source: Language = "auto"
    target: Language
    format: Literal["text"] = "text"
    alternatives: int = Field(0, ge=0)


class LibreDocument(LibreTranslation):
    """The parameters of LibreTranslate's `/translate_file`. The document has the texts."""

    q: SkipJsonSchema[str | list[str]] = ""
    file: bytes
    file_name: str
    field: str = ""

    @property
    def form(self) -> str:
        """Return the form of the document, which is the suffix of its name."""
        return self.file_name.lower().rpartition(".")[2]


class DeepLDocument(LibreDocument):
    """The parameters of DeepL's `/v2/document`."""

    source: Language = Field("auto", alias="source_lang")
    target: Language = Field(alias="target_lang")
    output_format: Literal[""] = ""
    glossary_id: Literal[""] = ""


class DeepLTranslation(Translation):
    """The parameters of DeepL's `/v2/translate`."""

    q: str | list[str] = Field(alias="text")
    source_lang: Language = ""
    target_lang: Language
    tag_handling: Literal[""] = ""
    glossary_id: str = ""


ParametersT = TypeVar("ParametersT", bound=Detection)


async def read_request(request: Request, kind: type[ParametersT], access: Access) -> ParametersT:
    """Check the key of a request, and return the checked parameters.

    Raises:
        HTTPException: the body cannot be read, the key is wrong, a parameter has a wrong value, or
            the texts are too long.
    """
    values = await read_values(request)
    check_key(request, access, values.get("api_key"))
    try:
        parameters = kind.model_validate(values)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        name = problems[0]["loc"][0]
        of_parameter = [problem for problem in problems if problem["loc"][0] == name]
        raise HTTPException(400, f"{name}: {expected(of_parameter)}") from None
    if sum(map(len, parameters.texts)) > access.max_characters:
        raise HTTPException(413, f"the texts: expected at most {access.max_characters} characters")
    return parameters


async def read_values(request: Request) -> dict[str, Any]:
    """Return the parameters in the query and the body of a request. Raises HTTPException: the body
    cannot be read or takes too long."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            in_body = await _read_body(request)
        written = json.dumps(in_body, ensure_ascii=False, default=repr)
        written.encode()  # raises an error for a lone surrogate
        values = {**parse_form(request.url.query), **in_body}
    except TimeoutError:
        raise HTTPException(408, f"expected the body within {BODY_TIMEOUT_S} s") from None
    except (ValueError, TypeError, RecursionError):
        raise HTTPException(400, "expected a JSON object, or a form, in UTF-8") from None
    return {name: value for name, value in values.items() if value is not None}


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the parameters in the body, which is a form or a JSON object. Many clients send JSON
    without its content type. Raises ValueError: the body is neither a form nor a JSON object."""
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=_MAX_FIELDS) as form:
            values = _group_by_name(form.multi_items())
            file = values.get("file")
            if isinstance(file, UploadFile):
                values |= {"file": await file.read(), "file_name": file.filename}
            return values
    body = (await request.body()).decode()
    if kind != "application/json" and not body.lstrip().startswith("{"):
        return parse_form(body)
    values = json.loads(body)
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    return values


def parse_form(text: str) -> dict[str, Any]:
    """Return the values of a URL-encoded form or a query by name."""
    return _group_by_name(parse_qsl(text, keep_blank_values=True, errors="strict"))


def _group_by_name(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values of a form by name. A name that is repeated has a list of values."""
    lists: dict[str, list[Any]] = {}
    for name, value in items:
        lists.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in lists.items()}


def check_key(request: Request, access: Access, in_body: object = None) -> None:
    """Check the key of a request, if clients need a key. A client sends the key in the body or the
    query as `api_key`, or in the header `Authorization` as `DeepL-Auth-Key KEY`, `Bearer KEY` or
    the password of `Basic`.

    Args:
        in_body: the key in the body.

    Raises:
        HTTPException: the request has no valid key.
    """
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() not in ("deepl-auth-key", "bearer", "basic"):
        credentials = ""
    # Clients send header values in UTF-8 or Latin-1; Starlette decodes them as Latin-1.
    sent = str(in_body or request.query_params.get("api_key", ""))
    sent_keys = [sent.encode(), credentials.encode(), credentials.encode("latin-1")]
    with suppress(ValueError):  # The credentials may be in another scheme than `Basic`.
        sent_keys.append(base64.b64decode(credentials).partition(b":")[2])
    key = access.key.encode()
    if key and not any(hmac.compare_digest(sent_key, key) for sent_key in sent_keys):
        raise HTTPException(403, "expected a valid key, as api_key or in the header Authorization")


def is_expected_host(host: str, names: Collection[str]) -> bool:
    """Return whether the header `Host` is an address, `localhost` or one of `names`.

    A web site can make its own host name resolve to this machine (DNS rebinding). Its pages would
    then be allowed to read answers. Requests from these pages have the site's host name in the
    header, and are rejected.
    """
    name = host
    try:
        name = urlsplit(f"//{host}").hostname or "localhost"  # HTTP/1.0 needs no host
        ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", *names)
    return True
