"""Describe the server as an OpenAPI document, from its routes and the models of parameters."""

import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping

from pydantic import BaseModel
from starlette.routing import Route

from seq2seq_attn import __version__
from seq2seq_attn.files import JsonObject

_IN_PATH = {"in": "path", "required": True, "schema": {}}


def describe_api(routes: Iterable[Route], parameters: Mapping[str, type[BaseModel]]) -> JsonObject:
    """Return the OpenAPI document. `parameters` has the model of the parameters of a path."""
    paths: dict[str, JsonObject] = defaultdict(dict)
    for route in routes:
        operation: JsonObject = {
            "summary": inspect.getdoc(route.endpoint),
            "parameters": [{"name": name, **_IN_PATH} for name in route.param_convertors],
            "responses": {"200": {}},
        }
        method = min(route.methods or ()).lower()  # GET also answers HEAD
        if method == "post" and route.path in parameters:
            body = {"schema": parameters[route.path].model_json_schema()}
            operation["requestBody"] = {
                "content": {"application/json": body, "multipart/form-data": body}
            }
        paths[route.path][method] = operation
    info = {"title": "seq2seq-attn", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths}
