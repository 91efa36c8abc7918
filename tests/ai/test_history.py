"""The history of a conversation, which is added when a chat task is scheduled."""

import pytest

from tests.ai.conftest import chat, work
from tests.ai.model_server import CHAT, bodies, chat_answer, refused
from tests.builders import loop, step

pytestmark = pytest.mark.django_db


def roles(body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_a_chat_in_a_loop_remembers_its_earlier_answers(server, run):
    server.answers[CHAT] = [chat_answer("One."), chat_answer('{"n": 2}'), chat_answer("Three.")]

    scenario = run(loop("rounds", chat(messages=[{"role": "user", "message": "Count."}]), times=3))

    assert scenario.status == "COMPLETED"
    last = bodies(server)[2]["messages"]
    assert [(message["role"], message["content"]) for message in last] == [
        ("user", "Count."),
        ("assistant", "One."),
        ("assistant", '{"n": 2}'),
        ("user", "Continue."),
    ]
    assert len(scenario.task("ask__3").input["messages"]) == 3


def test_a_participant_joins_in_its_role(server, run):
    server.answers[CHAT] = [chat_answer("Which city?"), chat_answer("Sunny.")]
    asked = chat(messages=[{"role": "user", "message": "Weather?"}], participants={"answer": "user"})
    person = {"name": "answer", "taskReferenceName": "answer", "type": "HUMAN", "inputParameters": {}}
    scenario = run(loop("rounds", asked, person, times=2))
    scenario.reports("answer__1", result="Bonn")
    work()

    assert roles(bodies(server)[0]) == ["user"]
    assert [(message["role"], message["content"]) for message in bodies(server)[1]["messages"]] == [
        ("user", "Weather?"),
        ("assistant", "Which city?"),
        ("user", "Bonn"),
    ]


def test_the_result_of_a_worker_is_the_result_of_a_tool(server, run):
    server.answers[CHAT] = chat_answer("ok")
    scenario = run(
        loop(
            "rounds",
            chat(userInput="Go", participants={"look": "tool"}),
            step("look", inputs={"city": "Bonn"}),
            times=2,
        )
    )
    scenario.worker("look").completes(sky="clear")
    work()

    sent = bodies(server)[1]["messages"]
    assert roles(bodies(server)[1]) == ["user", "assistant", "assistant", "tool"]
    assert sent[2]["tool_calls"][0]["id"] == sent[3]["tool_call_id"] == "look__1"
    assert sent[2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"city": "Bonn"}'}
    assert sent[3]["content"] == '{"sky": "clear"}'


def test_tools_that_a_fork_executed_answer_the_calls_of_the_model(server, run):
    call = [("call_1", "look", {"city": "Bonn"})]
    server.answers[CHAT] = [chat_answer(None, calls=call), chat_answer("Sunny.")]
    fork = {
        "name": "fan",
        "taskReferenceName": "fan",
        "type": "FORK_JOIN_DYNAMIC",
        "inputParameters": {"calls": "${ask.output.toolCalls}", "inputs": {"call_1": {"city": "Bonn"}}},
        "dynamicForkTasksParam": "calls",
        "dynamicForkTasksInputParamName": "inputs",
    }
    join = {"name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": []}
    scenario = run(loop("rounds", chat(userInput="Weather?"), fork, join, times=2))
    assert scenario.reports("call_1__1", sky="clear")
    work()

    sent = bodies(server)[1]["messages"]
    assert roles(bodies(server)[1]) == ["user", "assistant", "tool"]
    assert (sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]) == ("call_1", "call_1")
    assert sent[2]["content"] == '{"sky": "clear"}'


def test_a_retry_has_the_same_history_once(server, run):
    server.answers[CHAT] = [chat_answer("One."), refused(500, "busy"), chat_answer("Two.")]
    scenario = run(loop("rounds", chat(messages=[{"role": "user", "message": "Count."}]), times=2))

    scenario.later(2)
    work()

    assert scenario.status == "COMPLETED"
    assert bodies(server)[1]["messages"] == bodies(server)[2]["messages"]
    assert roles(bodies(server)[2]) == ["user", "assistant", "user"]


def test_a_retry_without_messages_of_its_own_keeps_the_history(server, run):
    server.answers[CHAT] = [chat_answer("One."), refused(500, "busy"), chat_answer("Two.")]
    scenario = run(loop("rounds", chat(userInput="Count."), times=2))

    scenario.later(2)
    work()

    assert bodies(server)[1]["messages"] == bodies(server)[2]["messages"]
    assert roles(bodies(server)[2]) == ["user", "assistant", "user"]


def test_the_items_of_a_list_are_separate_conversations(server, run):
    server.answers[CHAT] = chat_answer("ok")

    run(
        {
            "name": "each",
            "taskReferenceName": "each",
            "type": "FOR_EACH",
            "inputParameters": {"_items": [1, 2]},
            "loopOver": [chat(userInput="Go")],
        }
    )

    assert [roles(body) for body in bodies(server)] == [["user"], ["user"]]


def test_chats_outside_a_loop_are_separate_conversations(server, run):
    server.answers[CHAT] = chat_answer("ok")

    scenario = run(chat("one", userInput="Go"), chat("two", userInput="Go"))

    assert scenario.status == "COMPLETED"
    assert [roles(body) for body in bodies(server)] == [["user"], ["user"]]
