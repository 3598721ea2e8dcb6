"""Describe the server as an OpenAPI document, from its routes and the models of parameters."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from starlette.routing import Route

from seq2seq_attn import __version__


def describe_api(
    routes: Iterable[Route], parameters: Mapping[str, type[BaseModel]]
) -> dict[str, Any]:
    """Return the OpenAPI document. `parameters` are the models of the parameters by path."""
    paths = {}
    for route in routes:
        operation: dict[str, Any] = {
            "summary": inspect.getdoc(route.endpoint),
            "responses": {"200": {}},
        }
        method = "get"
        if route.path in parameters:
            method = "post"
            schema = {"schema": parameters[route.path].model_json_schema()}
            operation["requestBody"] = {
                "content": {"application/json": schema, "multipart/form-data": schema}
            }
        paths[route.path] = {method: operation}
    info = {"title": "seq2seq-attn", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths}
