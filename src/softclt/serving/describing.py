"""What the OpenAPI description says of bodies and answers."""

from typing import Any

from softclt.serving.bodies import ARROW, CSV, JSON, PARQUET

_NUMBER = {"type": ["number", "null"]}
_LIST = {"type": "array", "items": _NUMBER, "minItems": 1}
_SERIES = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [_LIST, {"type": "array", "items": _LIST, "minItems": 1}]},
    "description": "Each is a list of numbers, or one of channels; null is missing. The lengths "
    "may differ.",
}
_IDS = {"type": "array", "items": {"type": ["string", "integer"]}, "description": "One a series."}
_BINARY = {"type": "string", "format": "binary"}
_WORDS = {
    CSV: "As 'softclt embed' reads them; columns are named by id, time, label and values.",
    ARROW: "A row is a series with a column of lists, or a step with columns id and time.",
    PARQUET: "Likewise.",
}

#: The body of every request for work.
BODY: dict[str, Any] = {
    "required": True,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "required": ["series"],
                "additionalProperties": False,
                "properties": {"series": _SERIES, "ids": _IDS},
            },
            "example": {"series": [[1.0, 3.0, 2.0, None, 5.0], [2.0, 2.5, 0.0]], "ids": ["a", "b"]},
        },
        **{kind: {"schema": {**_BINARY, "description": words}} for kind, words in _WORDS.items()},
    },
}

_ERRORS = {
    401: "The token is missing or wrong.",
    406: "Accept names no kind of answer that there is.",
    408: "The body did not arrive in time.",
    413: "The body is larger than this server takes.",
    415: "The content type is none of those above.",
    422: "The body or a parameter cannot be understood, or the model cannot take the series.",
    503: "Too many requests, or streams, at the same time.",
    504: "The work took too long.",
}

_COLUMNS = {
    "embedding": ["id", "embedding"],
    "class": ["id", "label", "probability", "probabilities"],
    "hit": ["query", "rank", "id", "distance"],
    "alarm": ["id", "start", "end", "severity"],
}


def answers(kind: str) -> dict[int | str, dict[str, Any]]:
    """Answers of a path that gives embeddings, classes, hits or alarms."""
    columns = {name: {"type": "array", "items": {}} for name in _COLUMNS[kind]}
    detail = {"type": "object", "properties": {"detail": {"type": "string"}}}
    told: dict[int | str, dict[str, Any]] = {
        status: {"description": words, "content": {JSON: {"schema": detail}}}
        for status, words in _ERRORS.items()
    }
    done = {
        "description": "A table: a list for each column, or an Arrow or Parquet table.",
        "content": {
            JSON: {"schema": {"type": "object", "properties": columns}},
            ARROW: {"schema": _BINARY},
            PARQUET: {"schema": _BINARY},
        },
    }
    return {200: done} | told
