"""Scripts in the forms that the documentation and the examples of Conductor use, with inputs and values."""

from typing import Any

LOOP = {"iteration": 2, "1": {"first_task": {"response": {"body": 4}}}}
INPUTS: dict[str, Any] = {
    "loopTask": LOOP,
    "first_task": {"response": {"body": 12, "headers": {"x-total": "3"}, "items": [{"id": 7}, {"id": 8}]}},
    "value": 5,
    "inputValue": "1",
    "price": 12.5,
    "count": 3,
    "name": "Ada",
    "status": "COMPLETED",
    "hasMore": True,
    "empty": [],
    "orders": [{"total": 5, "tags": ["new"]}, {"total": 7, "tags": []}],
    "nothing": None,
}

DOCUMENTED: dict[str, Any] = {
    # Conditions of loops
    "$.loopTask['iteration'] < 3": True,
    "$.loopTask['iteration'] < $.value": True,
    "$.loopTask.iteration < 2": False,
    "if ( ($.loopTask['iteration'] < $.value ) || ( $.first_task['response'].body > 9)) {true;} else { false; }": True,
    "if ($.loopTask['iteration'] < 1) { true; } else { false; }": False,
    "( $.hasMore == true ) && !($.status === 'FAILED')": True,
    "$.loopTask['1'].first_task.response.body < 10": True,
    "$.loopTask[1]['first_task']['response'].body != 4": False,
    "true": True,
    "$.empty.length > 0": False,
    # Cases of switches
    "$.price > 10 ? 'large' : 'small'": "large",
    "$.nothing ? 'a' : $.unknown === undefined ? 'b' : 'c'": "b",
    "$.hasMore ? $.unknown ? 'a' : 'b' : 'c'": "b",
    "$.status": "COMPLETED",
    "$.unknown === undefined || $.unknown == null": True,
    # Values of INLINE and LAMBDA
    "$.value + 1": 6,
    "$.count % 2 == 0": False,
    "'Hello ' + $.name": "Hello Ada",
    "$.value * $.price - -1.5;": 64,
}
