// Runs first in every new context, and returns the function that evaluates one script.
// A script can redefine every object that it can reach, so this code uses none of them after the script has run:
// built-ins are stored in constants, internal arrays have no prototype, and results are copied before serialization.
((MAX_DEPTH, MAX_LINES, MAX_LINE, OUT_OF_MEMORY) => {
  "use strict";
  const evaluate = eval;
  const { BigInt, Date, Error, Map, Number, String, isFinite } = globalThis;
  const { parse, stringify, rawJSON } = JSON;
  const { apply } = Reflect;
  const { isArray } = Array;
  const { asIntN } = BigInt;
  const { isInteger, isSafeInteger } = Number;
  const { create, defineProperties, defineProperty, hasOwn, keys, setPrototypeOf } = Object;
  const hasInstance = Function.prototype[Symbol.hasInstance];
  const { exec } = RegExp.prototype;
  const { slice, toWellFormed } = String.prototype;
  const eachOfMap = Map.prototype.forEach;

  const TOO_DEEP = create(null);
  const BIGINT_ADVICE =
    ": integers beyond 2^53 are BigInts. Compute with BigInts, as in $.id + 1n, or with rounded numbers, as in Number($.id).";
  const isA = (value, type) => apply(hasInstance, type, [value]);
  const bare = () => setPrototypeOf([], null);
  const start = (text, length) => apply(slice, text, [0, length]);
  const lines = bare();

  // Copies the parts of a value that JSON can represent. It uses a work list, because the stack is small.
  function plain(root) {
    const todo = bare();
    const copyOf = (value, depth) => {
      if (typeof value !== "object" || value === null) return plainScalar(value);
      if (depth > MAX_DEPTH) throw TOO_DEEP;
      const copy = isArray(value) ? bare() : create(null);
      todo[todo.length] = { value, copy, depth };
      return copy;
    };
    const result = copyOf(root, 1);
    while (todo.length > 0) {
      const { value, copy, depth } = todo[todo.length - 1];
      todo.length -= 1;
      (isArray(copy) ? fillArray : fillObject)(copy, value, (member) => copyOf(member, depth + 1));
    }
    return result;
  }

  // Values that JSON.stringify would drop become null, as in Conductor.
  function plainScalar(value) {
    switch (typeof value) {
      case "string": return apply(toWellFormed, value, []);
      case "number": return plainNumber(value);
      case "bigint": return asIntN(1024, value) === value ? rawJSON(String(value)) : plainScalar(Number(value));
      case "boolean": return value;
      case "function": return create(null);
      default: return null;
    }
  }

  // Integers of JSON are exact, so a number that is not is written with a point.
  function plainNumber(value) {
    if (!isFinite(value)) return String(value);
    return isInteger(value) && (value >= 2 ** 63 || value <= -(2 ** 63)) ? rawFloat(String(value)) : value;
  }

  function rawFloat(text) {
    return rawJSON(apply(exec, /e/, [text]) ? text : `${text}.0`);
  }

  // A Number would change the digits of an integer beyond 2⁵³, so it becomes a BigInt.
  function exactly(_name, value, context) {
    return typeof value !== "number" || isSafeInteger(value) || !apply(exec, /^-?\d+$/, [context.source])
      ? value : BigInt(context.source);
  }

  const parseExactly = (text) => (apply(exec, /\d{16}/, [text]) ? parse(text, exactly) : parse(text));

  function fillArray(copy, value, copyOf) {
    const { length } = value;
    for (let i = 0; i < length; i += 1) copy[i] = copyOf(value[i]);
  }

  function fillObject(copy, value, copyOf) {
    const put = (member, name) => { copy[apply(toWellFormed, String(name), [])] = copyOf(member); };
    if (isA(value, Map)) apply(eachOfMap, value, [put]);
    if (isA(value, Map) || isA(value, Date)) return;
    const names = keys(value);
    for (let i = 0; i < names.length; i += 1) put(value[names[i]], names[i]);
  }

  function described(error) {
    if (error === TOO_DEEP) return `The result is nested deeper than ${MAX_DEPTH} levels, or contains itself.`;
    // The engine throws null if there is not enough memory for an error object.
    if (error === null) return "The script threw null or exceeded its memory limit.";
    if (typeof error === "object" && !isA(error, Error)) return stringify(plain(error));
    if (typeof error !== "object") return String(error);
    const text = String(error);
    if (text === "InternalError: out of memory") return OUT_OF_MEMORY;
    const line = apply(exec, /<input>:(\d+)/, [String(error.stack)]);
    const place = line ? `${text} (line ${line[1]})` : text;
    return apply(exec, /\bbigint\b/i, [text]) ? `${place}${BIGINT_ADVICE}` : place;
  }

  function explained(error) {
    try {
      return apply(toWellFormed, start(described(error), 2000), []);
    } catch {
      return "The script threw something that cannot be described.";
    }
  }

  function shown(value) {
    if (typeof value === "string") return value;
    try {
      return isA(value, Error) ? String(value) : stringify(plain(value));
    } catch {
      return "[unreadable]";
    }
  }

  function write(...values) {
    if (lines.length >= MAX_LINES) return;
    let line = "";
    for (let i = 0; i < values.length; i += 1) line += (i ? " " : "") + start(shown(values[i]), MAX_LINE);
    lines[lines.length] = apply(toWellFormed, start(line, MAX_LINE), []);
  }

  const hidden = (value) => ({ value, writable: true, configurable: true, enumerable: false });
  const javaMethods = {
    get: hidden(function get(key) { return hasOwn(this, key) ? this[key] : null; }),
    size: hidden(function size() { return keys(this).length; }),
  };
  const javaMap = create(Object.prototype, javaMethods);

  // In Conductor, inputs are Java maps and lists with a method `get`. It is on a separate prototype, because on
  // Object.prototype it would break all property descriptors and proxies.
  function likeJava(value) {
    if (typeof value !== "object" || value === null) return;
    const names = keys(value);
    for (let i = 0; i < names.length; i += 1) likeJava(value[names[i]]);
    if (!isArray(value)) setPrototypeOf(value, javaMap);
  }

  function offerJavaMethods(inputs) {
    defineProperties(Array.prototype, javaMethods);
    likeJava(inputs);
  }

  function parseJSON(text, reviver) {
    return reviver === undefined ? parseExactly(`${text}`) : parse(text, reviver);
  }

  defineProperty(JSON, "parse", hidden(parseJSON));
  defineProperty(BigInt.prototype, "toJSON", hidden(function toJSON() { return rawJSON(String(this)); }));
  defineProperty(globalThis, "console", hidden({ log: write, info: write, warn: write, error: write, debug: write }));

  // Without arguments, the function returns only the log lines, for a script that was interrupted.
  return (script, text) => {
    const answer = create(null);
    answer.logs = lines;
    if (script === undefined) return stringify(answer);
    try {
      const source = parse(script);
      const inputs = parseExactly(text);
      if (apply(exec, /\.\s*(?:get|size)\s*\(/, [source])) offerJavaMethods(inputs);
      globalThis.$ = inputs;
      answer.value = plain(evaluate(source));
      return stringify(answer);
    } catch (error) {
      answer.value = null;
      answer.error = explained(error);
      return stringify(answer);
    }
  };
})
