"""Text and chat tasks at a server with Anthropic's API."""

import json

import pytest

from conductor_app.ai.models import ModelCall
from tests.ai.conftest import ai_step, chat
from tests.ai.model_server import MESSAGES, bodies, headers, wrote

pytestmark = pytest.mark.django_db
BLUE = {"type": "text", "text": "Blue."}


def test_a_chat_task_ends_with_the_answer_and_its_tokens(server, run):
    server.answers[MESSAGES] = wrote(BLUE)

    scenario = run(chat(provider="anthropic", instructions="Be brief.", userInput="Which color?", topK=3))

    assert (scenario.output["result"], scenario.output["finishReason"]) == ("Blue.", "STOP")
    assert scenario.output["tokenUsed"] == 17
    assert bodies(server) == [
        {
            "model": "small",
            "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Which color?"}]}],
            "max_tokens": 8192,
            "top_k": 3,
        }
    ]
    assert headers(server, "Authorization") == ["Bearer sk-the-key-of-anthropic"]
    assert ModelCall.objects.get().status == "REPLIED"


def test_a_call_of_a_tool_and_its_result_make_the_round(server, run):
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}}
    server.answers[MESSAGES] = wrote({"type": "text", "text": "I look."}, call, stop="tool_use")
    tool = {"name": "weather", "description": "Returns the weather", "inputSchema": {"type": "object"}}

    scenario = run(chat(provider="anthropic", userInput="Weather?", tools=[tool]))

    [found] = scenario.output["toolCalls"]
    assert (found["taskReferenceName"], found["inputParameters"]) == ("toolu_1", {"city": "Bonn", "method": "weather"})
    assert (scenario.output["result"], scenario.output["finishReason"]) == ("I look.", "TOOL_CALLS")

    messages = [
        {"role": "user", "message": "Weather?"},
        {"role": "tool", "toolCalls": [{**found, "output": {"sky": 1}}]},
    ]
    server.answers[MESSAGES] = wrote(BLUE)
    run(chat(provider="anthropic", messages=messages), name="second")

    sent = bodies(server)[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"][0] == {**call}
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"sky": 1}'}]


def test_an_answer_at_the_end_is_followed_by_a_request_to_continue(server, run):
    server.answers[MESSAGES] = wrote(BLUE)

    run(chat(provider="anthropic", messages=[{"role": "assistant", "message": "The sky is"}]))

    assert [message["role"] for message in bodies(server)[0]["messages"]] == ["user", "assistant", "user"]


def test_json_is_asked_for_in_the_system_message(server, run):
    server.answers[MESSAGES] = wrote({"type": "text", "text": '{"a": 1}'})

    scenario = run(ai_step("LLM_TEXT_COMPLETE", provider="anthropic", prompt="Count.", jsonOutput=True))

    assert scenario.output["result"] == {"a": 1}
    assert "Reply with one JSON object" in bodies(server)[0]["system"]


def test_a_streamed_message_has_the_same_output(server, run):
    usage = {"input_tokens": 12, "output_tokens": 1}
    start = {"id": "msg_7", "type": "message", "role": "assistant", "model": "small", "content": [], "usage": usage}
    events = [
        {"type": "message_start", "message": {**start, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Bl"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ue."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    server.answers[MESSAGES] = 200, {"content-type": "text/event-stream"}, body.encode()

    scenario = run(chat(provider="anthropic", userInput="x", stream=True))

    assert (scenario.output["result"], scenario.output["tokenUsed"]) == ("Blue.", 17)


def test_there_are_no_embeddings(server, run):
    scenario = run(ai_step("LLM_GENERATE_EMBEDDINGS", provider="anthropic", text="sky"))

    assert "Anthropic has no embedding models" in scenario.task("ask").reason


def test_several_results_are_refused(server, run):
    scenario = run(chat(provider="anthropic", userInput="x", maxResults=2))

    assert scenario.task("ask").reason == "Non-retryable error: maxResults must be 1 with Anthropic"
    assert server.asked == []
