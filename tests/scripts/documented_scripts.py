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
    "if ($.loopTask['iteration'] < $.value) true; else false;": True,
    "( $.hasMore == true ) && !($.status === 'FAILED')": True,
    "$.loopTask['1'].first_task.response.body < 10": True,
    "$.loopTask[1]['first_task']['response'].body != 4": False,
    "(function(){ return $.loopTask['iteration'] < $.count; })();": True,
    "true": True,
    "$.empty.length > 0": False,
    # Cases of switches
    "$.inputValue == 1 ? 'one' : 'other'": "one",
    "$.price > 10 ? ($.price > 100 ? 'large' : 'medium') : 'small'": "medium",
    "$.status": "COMPLETED",
    "if ($.status == 'COMPLETED') { 'done'; } else if ($.status == 'FAILED') { 'bad'; } else { 'open'; }": "done",
    "function choose() { if ($.count >= 3) { return 'many'; } return 'few'; } choose();": "many",
    "({'COMPLETED': 'done', 'FAILED': 'bad'})[$.status] || 'open'": "done",
    "$.nothing ? 'a' : $.unknown === undefined ? 'b' : 'c'": "b",
    "typeof $.unknown == 'undefined' || $.unknown == null": True,
    # Values of INLINE and LAMBDA
    "$.value + 1": 6,
    "(function () { return $.value * $.price; })()": 62.5,
    "(function () {\n  // the sum\n  var a = $.orders[0].total;\n  var b = $.orders[1].total\n  return a + b\n})()": 12,
    "(() => { return 'Hello ' + $.name; })()": "Hello Ada",
    "(() => $.count % 2 == 0)()": False,
    'function e() { if ($.value == 5) { return {"result": true} } else { return {"result": false} } } e();': {
        "result": True
    },
    "function scriptFun(){if ($.value == 1) return {testvalue: true}; else return {testvalue: false}} scriptFun();": {
        "testvalue": False
    },
    "(function () { if ($.value == 5) { return {testvalue: true} } else { return {testvalue: false} }\n})()": {
        "testvalue": True
    },
    "({ total: $.first_task.response.body, first: $.first_task.response.items[0], rest: [$.count, -1] })": {
        "total": 12,
        "first": {"id": 7},
        "rest": [3, -1],
    },
    "var state; if ($.hasMore && $.orders.length > 1) { state = 'more'; } else { state = 'end'; } state": "more",
    "(function (order, rate) { let net = order.total * rate; return net / 2; })($.orders[0], 3)": 7.5,
    "'Order ' + $.count + ': ' + $.price": "Order 3: 12.5",
    "$.first_task.response.headers['x-total'] * 2": 6,
    "$.orders[1]?.tags?.[0] ?? 'none'": "none",
    "$.orders": [{"total": 5, "tags": ["new"]}, {"total": 7, "tags": []}],
    "const half = $.price / 2, limit = 6; half > limit": True,
}
