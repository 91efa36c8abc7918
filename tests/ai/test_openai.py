"""Text and chat tasks at an OpenAI-compatible server."""

import json

import pytest

from conductor_app.ai.commands.prompts import save_prompt
from conductor_app.ai.models import ModelCall
from conductor_app.ai.workers import messages as provider_errors
from tests.ai.conftest import ai_step, chat, work
from tests.ai.model_server import CHAT, EMBEDDINGS, bodies, chat_answer, chunks, headers, refused, vectors
from tests.recording_web_server import json_answer

pytestmark = pytest.mark.django_db


def test_a_chat_task_ends_with_the_answer_and_its_tokens(server, run):
    server.answers[CHAT] = chat_answer("Blue.")

    scenario = run(chat(instructions="Be brief.", messages=[{"role": "user", "message": "Which color has the sky?"}]))

    assert scenario.status == "COMPLETED"
    assert scenario.output == {
        "result": "Blue.",
        "finishReason": "STOP",
        "promptTokens": 12,
        "completionTokens": 5,
        "tokenUsed": 17,
        "media": [],
        "responseId": "chatcmpl-7",
    }
    assert bodies(server) == [
        {
            "model": "small",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Which color has the sky?"},
            ],
            "max_completion_tokens": 8192,
        }
    ]
    assert headers(server, "Authorization") == ["Bearer sk-the-key-of-openai"]


def test_a_text_task_sends_its_prompt_with_the_variables_filled_in(server, run):
    server.answers[CHAT] = chat_answer("ok")

    scenario = run(
        ai_step(
            "LLM_TEXT_COMPLETE",
            prompt="Sort $${numbers} and keep $${unknown}.",
            promptVariables={"numbers": [2, 1]},
            temperature=0.5,
            stopWords=["END"],
        )
    )

    assert scenario.output["result"] == "ok"
    [body] = bodies(server)
    assert body["messages"][0] == {"role": "system", "content": "Sort [2, 1] and keep ${unknown}."}
    assert body["messages"][1]["role"] == "user"
    assert (body["temperature"], body["stop"]) == (0.5, ["END"])


def test_user_input_is_the_only_message_if_there_are_no_others(server, run):
    server.answers[CHAT] = chat_answer("ok")

    run(chat(userInput="Hello"))

    assert bodies(server)[0]["messages"] == [{"role": "user", "content": "Hello"}]


def test_an_object_in_the_answer_becomes_the_result(server, run):
    server.answers[CHAT] = chat_answer('```json\n{"color": "blue"}\n```')

    assert run(chat(userInput="Hello")).output["result"] == {"color": "blue"}


def test_a_list_in_the_answer_stays_text(server, run):
    server.answers[CHAT] = chat_answer("[1, 2]")

    assert run(chat(userInput="Hello")).output["result"] == "[1, 2]"


def test_a_task_that_requires_json_asks_for_it_and_checks_the_schema(server, run):
    schema = {"type": "object", "required": ["color"], "properties": {"color": {"type": "string"}}}
    server.answers[CHAT] = [chat_answer('{"colour": "blue"}'), chat_answer("Blue."), chat_answer('{"color": "blue"}')]
    scenario = run(chat(userInput="Which?", jsonOutput=True, outputSchema={"name": "c", "data": schema}))
    assert r"does not match outputSchema: \"color\" is a required property" in scenario.task("ask").reason

    scenario.later(2)
    work()
    assert json.loads(scenario.task("ask").reason.partition(": ")[2]) == {
        "error": "The answer is not a JSON object.",
        "response": "Blue.",
    }
    scenario.later(4)
    work()

    assert scenario.output["result"] == {"color": "blue"}
    assert scenario.attempts("ask") == ["FAILED", "FAILED", "COMPLETED"]
    assert bodies(server)[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema},
    }


def test_calls_of_tools_are_part_of_the_output(server, run):
    server.answers[CHAT] = chat_answer(None, calls=[("call_1", "weather", {"city": "Bonn", "options": '{"days": 2}'})])
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"name": "weather", "type": "HTTP", "description": "Returns the weather", "inputSchema": schema}

    scenario = run(chat(userInput="Weather?", tools=[tool]))

    assert (scenario.output["result"], scenario.output["finishReason"]) == ([], "TOOL_CALLS")
    assert scenario.output["toolCalls"] == [
        {
            "taskReferenceName": "call_1",
            "name": "weather",
            "type": "HTTP",
            "inputParameters": {"city": "Bonn", "options": {"days": 2}, "method": "weather"},
        }
    ]
    function = {"name": "weather", "description": "Returns the weather", "parameters": schema}
    assert bodies(server)[0]["tools"] == [{"type": "function", "function": function}]


def test_results_of_tools_follow_their_calls(server, run):
    server.answers[CHAT] = chat_answer("Sunny.")
    call = {"taskReferenceName": "call_1", "name": "weather", "inputParameters": {"city": "Bonn", "method": "weather"}}
    messages = [
        {"role": "user", "message": "Weather?"},
        {"role": "tool", "message": "", "toolCalls": [{**call, "output": {"sky": "clear"}}]},
    ]

    run(chat(messages=messages))

    sent = bodies(server)[0]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Bonn"}'}
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": '{"sky": "clear"}'}


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"userInput": "x", "maxTokens": "many"}, 'maxTokens must be a number, not "many"'),
        ({"userInput": "x", "webSearch": True}, "this server does not support webSearch: remove the input"),
        ({}, "there is nothing to send: set instructions, messages or userInput"),
        ({"messages": [{"role": "${workflow.input.none}", "message": "x"}]}, "the role of a message must be one of"),
        ({"messages": [{"role": "user", "media": ["file:///etc/passwd"]}]}, "media must have http(s) or data: URLs"),
    ],
)
def test_an_invalid_input_ends_the_task_without_a_request(server, run, inputs, reason):
    scenario = run(chat(**inputs))

    attempt = scenario.task("ask")
    assert attempt.status == "FAILED_FOR_GOOD"
    assert attempt.reason.startswith(f"Non-retryable error: {reason}")
    assert server.asked == []


def test_an_unknown_integration_ends_the_task_with_what_to_do(server, run):
    scenario = run(chat(provider="nowhere", userInput="x"))

    assert scenario.task("ask").status == "FAILED_FOR_GOOD"
    assert "no integration named 'nowhere'" in scenario.task("ask").reason


def test_a_failed_call_is_retried_after_two_four_and_six_seconds(server, run):
    server.answers[CHAT] = refused(500, "overloaded")
    scenario = run(chat(userInput="x"))
    for seconds in (2, 4, 6):
        scenario.later(seconds - 1)
        assert work() == 0
        scenario.later(1)
        assert work() == 1

    assert (scenario.status, len(server.asked)) == ("FAILED", 4)
    assert scenario.task("ask").reason == "Task execution failed: openai replied with status 500: overloaded"
    assert set(ModelCall.objects.values_list("status", flat=True)) == {"FAILED"}


def test_a_task_definition_without_retries_is_honored(server, run):
    server.answers[CHAT] = refused(500, "overloaded")

    scenario = run({**chat(userInput="x"), "taskDefinition": {"name": "ask", "retryCount": 0}})

    assert (scenario.status, len(server.asked)) == ("FAILED", 1)


def test_a_request_that_the_provider_refuses_is_not_repeated(server, run):
    server.answers[CHAT] = refused(400, "the model has no tools")

    scenario = run(chat(userInput="x"))

    assert (scenario.status, scenario.attempts("ask")) == ("FAILED", ["FAILED_WITH_TERMINAL_ERROR"])


def test_a_busy_provider_decides_how_long_the_attempt_waits(server, run):
    server.answers[CHAT] = [refused(429, "slow down", **{"retry-after": "20"}), chat_answer("ok")]
    scenario = run(chat(userInput="x"))
    waiting = scenario.task("ask")
    assert "slow down. The provider asks to wait for 20 s." in waiting.reason

    assert (scenario.at(19).status, work()) == ("RUNNING", 0)
    assert (scenario.at(20).status, work()) == ("RUNNING", 1)

    assert (scenario.status, scenario.attempts("ask")) == ("COMPLETED", ["COMPLETED"])


def test_a_provider_cannot_ask_for_more_than_an_hour(server, run):
    server.answers[CHAT] = refused(503, "later", **{"retry-after": "999999"})

    attempt = run(chat(userInput="x")).task("ask")

    assert attempt.callback_ms == 3_600_000


def test_the_key_is_in_no_reason(server, run):
    server.answers[CHAT] = refused(401, "Incorrect API key: sk-the-key-of-openai")

    scenario = run(chat(userInput="x"))

    assert scenario.task("ask").reason.endswith("Incorrect API key: ***")
    assert "sk-the-key" not in ModelCall.objects.get().error


def test_an_address_that_is_not_permitted_is_refused_before_a_byte_is_sent(server, run, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()

    scenario = run(chat(userInput="x"))

    assert scenario.task("ask").status == "FAILED_FOR_GOOD"
    assert "127.0.0.1 is not a public address" in scenario.task("ask").reason
    assert server.asked == []


def test_a_reply_beyond_the_size_limit_is_not_read(server, run, monkeypatch):
    monkeypatch.setattr(provider_errors, "MAX_REPLY_BYTES", 1000)
    server.answers[CHAT] = chat_answer("x" * 2000)

    scenario = run(chat(userInput="x"))

    assert "larger than 1000 bytes" in scenario.task("ask").reason


def test_a_redirect_is_not_followed_with_the_key(server, run):
    server.answers[CHAT] = 307, {"location": f"{server.url}/elsewhere"}, b""

    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert (scenario.status, len(server.asked)) == ("FAILED", 1)


def test_a_body_that_is_no_json_is_a_failure(server, run):
    server.answers[CHAT] = 200, {"content-type": "application/json"}, b"<html>"

    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert scenario.task("ask").status == "FAILED"


def test_a_streamed_reply_has_the_same_output_and_is_kept_as_log_lines(server, run):
    from conductor_app.runs.models import TaskLog

    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"ci'}}
    rest = {"index": 0, "function": {"arguments": 'ty": "Bonn"}'}}
    server.answers[CHAT] = chunks(
        {"role": "assistant", "content": ""},
        {"content": "I look "},
        {"content": "outside."},
        {"tool_calls": [call]},
        {"tool_calls": [rest]},
        finish="tool_calls",
    )

    scenario = run(chat(userInput="x", stream=True))

    assert (scenario.output["result"], scenario.output["tokenUsed"]) == ("I look outside.", 17)
    assert scenario.output["toolCalls"][0]["inputParameters"] == {"city": "Bonn", "method": "weather"}
    assert "".join(TaskLog.objects.order_by("id").values_list("line", flat=True)) == "I look outside."
    assert ModelCall.objects.get().first_token_ms is not None
    assert bodies(server)[0]["stream_options"] == {"include_usage": True}


def test_a_stream_that_breaks_off_is_a_failure(server, run):
    server.answers[CHAT] = chunks({"content": "I look "}, finish=None)

    scenario = run({**chat(userInput="x", stream=True), "retryCount": 0})

    assert "the stream ended before the reply was complete" in scenario.task("ask").reason


def test_an_embedding_task_returns_the_vector(server, run):
    server.answers[EMBEDDINGS] = vectors([0.5, -1.0])

    scenario = run(ai_step("LLM_GENERATE_EMBEDDINGS", text="sky", dimensions=2))

    assert scenario.output == {"result": [0.5, -1.0]}
    assert bodies(server) == [{"model": "small", "input": ["sky"], "encoding_format": "float", "dimensions": 2}]
    assert ModelCall.objects.get().prompt_tokens == 3


def test_a_blank_text_has_no_embedding(server, run):
    scenario = run(ai_step("LLM_GENERATE_EMBEDDINGS", text="${workflow.input.nothing}"))

    assert scenario.task("ask").reason == "Non-retryable error: text must not be blank"


def test_a_secret_in_a_prompt_reaches_the_model_and_is_stored_nowhere(server, run, monkeypatch):
    from conductor_app.runs.models import TaskLog

    monkeypatch.setenv("CONDUCTOR_SECRET_PIN", "tops3cret-pin")
    server.answers[CHAT] = chunks({"content": "Your pin is tops3cret-"}, {"content": "pin."})

    scenario = run(chat(userInput="My pin is ${workflow.secrets.PIN}", stream=True))

    assert bodies(server)[0]["messages"][0]["content"] == "My pin is tops3cret-pin"
    assert scenario.output["result"] == "Your pin is ***."
    stored = f"{list(ModelCall.objects.values())} {list(TaskLog.objects.values())} {scenario.task('ask').input}"
    assert "tops3cret" not in stored


REFUSED_INPUTS = {
    "a number without end": ({"temperature": "nan"}, "temperature must be a number"),
    "a number that is too large": ({"maxTokens": 10**400}, "maxTokens must be a number"),
    "a schema that cannot be used": (
        {"jsonOutput": True, "outputSchema": {"$ref": "file:///etc/passwd"}},
        "outputSchema cannot be used: ",
    ),
    "a model with NUL": ({"model": "a\0b"}, "model not specified"),
}


@pytest.mark.parametrize("case", REFUSED_INPUTS)
def test_an_input_that_no_call_can_have_is_refused_before_the_call(server, run, case):
    inputs, reason = REFUSED_INPUTS[case]

    attempt = run(chat(userInput="x", **inputs)).task("ask")

    assert attempt.reason.startswith(f"Non-retryable error: {reason}")
    assert server.asked == []


def test_instructions_with_nul_are_a_text(server, run):
    server.answers[CHAT] = chat_answer("ok")

    assert run(chat(instructions="a\0b", userInput="x")).output["result"] == "ok"


def test_a_secret_whose_value_is_the_name_of_a_prompt_is_sent_as_a_text(server, run, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_NAME", "confidential-prompt")
    save_prompt("confidential-prompt", "The recipe", "ada")
    server.answers[CHAT] = chat_answer("ok")

    run(chat(instructions="${workflow.secrets.NAME}", userInput="x"))

    assert bodies(server)[0]["messages"][0]["content"] == "confidential-prompt"


def test_a_journal_row_says_who_called_which_model_for_what(server, run, clock):
    server.answers[CHAT] = chat_answer("ok")

    scenario = run(chat(userInput="x"))

    call = ModelCall.objects.get()
    attempt = scenario.task("ask")
    assert (call.status, call.run_id, call.attempt_id, call.reference) == ("REPLIED", scenario.id, attempt.id, "ask")
    assert (call.integration, call.model, call.prompt_tokens, call.completion_tokens) == ("openai", "small", 12, 5)
    assert (call.definition, call.version, call.finish_reason, call.caller) == (
        scenario.row.name,
        1,
        "STOP",
        scenario.row.started_by,
    )
    assert call.reply is None


def test_an_unreadable_error_is_described_by_its_status(server, run):
    server.answers[CHAT] = json_answer(["?"], 502)

    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert scenario.task("ask").reason == "Task execution failed: openai replied with status 502"
