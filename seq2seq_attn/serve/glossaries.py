"""Keep the glossaries of clients, as in DeepL's API, in memory until the server ends."""

import uuid
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from seq2seq_attn.errors import UserError
from seq2seq_attn.serve.batcher import Batcher
from seq2seq_attn.serve.requests import Access, Detection, Language, check_key, read_request
from seq2seq_attn.serve.worker import Pair, check_glossary
from seq2seq_attn.text.glossary import Glossary, parse_glossary

MAX_GLOSSARIES = 100
"""maximum number of glossaries; a glossary has at most as many characters as a request may have"""
_PATH = "/v2/glossaries"


class NewGlossary(Detection):
    """The parameters of a new glossary."""

    q: str = Field(alias="entries")
    entries_format: Literal["tsv"] = "tsv"
    name: str = Field(min_length=1, max_length=1_000)
    source_lang: Language
    target_lang: Language


class _Stored(NamedTuple):
    """A glossary of a client."""

    pair: Pair
    entries: Glossary
    facts: dict[str, Any]
    """the description of the glossary in answers"""


class Glossaries:
    """Creates, lists and deletes glossaries."""

    def __init__(self, batcher: Batcher, access: Access) -> None:
        self._batcher = batcher
        self._access = access
        self._stored: dict[str, _Stored] = {}
        self.routes = [
            Route(_PATH, self.create, methods=["POST"]),
            Route(_PATH, self.list_all),
            Route(f"{_PATH}/{{id}}", self.show),
            Route(f"{_PATH}/{{id}}", self.delete, methods=["DELETE"]),
            Route(f"{_PATH}/{{id}}/entries", self.show_entries),
        ]

    def find(self, glossary_id: str, pair: Pair) -> Glossary:
        """Return the entries of a glossary, or no entries if the id is empty.

        Raises:
            HTTPException: the glossary is unknown or is for other languages.
        """
        if not glossary_id:
            return ()
        stored = self._get(glossary_id)
        if stored.pair != pair:
            languages = " to ".join(stored.pair)
            raise HTTPException(400, f"glossary_id: a glossary from {languages}; name both")
        return stored.entries

    async def create(self, request: Request) -> Response:
        """Create a glossary. The model of the languages must be able to write all target terms."""
        asked = await read_request(request, NewGlossary, self._access)
        if len(self._stored) >= MAX_GLOSSARIES:
            raise HTTPException(456, f"expected at most {MAX_GLOSSARIES} glossaries; delete some")
        pair = asked.source_lang, asked.target_lang
        try:
            entries = parse_glossary("entries", asked.q.split("\n"))
            await self._batcher.run(check_glossary, pair, entries)
        except UserError as error:
            raise HTTPException(400, str(error)) from None
        glossary_id = str(uuid.uuid4())
        facts = {
            "glossary_id": glossary_id,
            "name": asked.name,
            "ready": True,
            "source_lang": asked.source_lang,
            "target_lang": asked.target_lang,
            "creation_time": datetime.now(UTC).isoformat(),
            "entry_count": len(entries),
        }
        self._stored[glossary_id] = _Stored(pair, entries, facts)
        return JSONResponse(facts, 201)

    async def list_all(self, request: Request) -> Response:
        """List the glossaries."""
        check_key(request, self._access)
        return JSONResponse({"glossaries": [stored.facts for stored in self._stored.values()]})

    async def show(self, request: Request) -> Response:
        """Describe a glossary."""
        return JSONResponse(self._asked(request).facts)

    async def show_entries(self, request: Request) -> Response:
        """Return the entries of a glossary, as tab-separated values."""
        lines = [f"{entry.source}\t{entry.target}" for entry in self._asked(request).entries]
        return PlainTextResponse("\n".join(lines), media_type="text/tab-separated-values")

    async def delete(self, request: Request) -> Response:
        """Delete a glossary."""
        del self._stored[self._asked(request).facts["glossary_id"]]
        return Response(status_code=204)

    def _asked(self, request: Request) -> _Stored:
        """Check the key of a request, and return the glossary that its path names."""
        check_key(request, self._access)
        return self._get(request.path_params["id"])

    def _get(self, glossary_id: str) -> _Stored:
        """Return a glossary by its id. Raises HTTPException: there is no such glossary."""
        if glossary_id not in self._stored:
            raise HTTPException(404, "glossary_id: no such glossary")
        return self._stored[glossary_id]
