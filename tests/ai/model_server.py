"""Replies of servers of models, as an OpenAI-compatible server and Anthropic's API send them."""

import json
from typing import Any

from tests.recording_web_server import WebServer, json_answer

CHAT, EMBEDDINGS, MESSAGES = "/v1/chat/completions", "/v1/embeddings", "/v1/messages"


def chat_answer(
    text: str | None, *, calls: list[tuple[str, str, Any]] = (), finish: str = "stop", tokens=(12, 5), **message
):
    """Return a chat completion. `calls`: id, name and arguments of each call of a tool."""
    if calls:
        finish = "tool_calls"
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in calls
        ]
    return json_answer(
        {
            "id": "chatcmpl-7",
            "object": "chat.completion",
            "created": 1_803_902_400,
            "model": "small",
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
            ],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        }
    )


def chunks(*deltas: dict[str, Any], finish: str | None = "stop", tokens=(12, 5)):
    """Return a streamed chat completion with these deltas."""
    common = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1_803_902_400, "model": "small"}
    events = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish:
        events.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        events.append({**common, "choices": [], "usage": usage})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + ("data: [DONE]\n\n" if finish else "")
    return 200, {"content-type": "text/event-stream"}, body.encode()


def vectors(*found: list[float], tokens: int = 3):
    """Return embeddings."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(found)]
    return json_answer(
        {"object": "list", "model": "small", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    )


def wrote(*blocks: dict[str, Any], stop: str = "end_turn", tokens=(12, 5)):
    """Return a message of Anthropic's API."""
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    return json_answer(
        {
            "id": "msg_7",
            "type": "message",
            "role": "assistant",
            "model": "small",
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
    )


def refused(status: int, message: str, **headers: str):
    """Return an error."""
    return json_answer({"error": {"message": message, "type": "error"}}, status, **headers)


def bodies(server: WebServer) -> list[dict[str, Any]]:
    """Return the bodies of the requests that the server has received."""
    return [json.loads(asked["body"]) for asked in server.asked]


def headers(server: WebServer, name: str) -> list[str | None]:
    """Return a header of each request."""
    return [asked["headers"].get(name) for asked in server.asked]
