// Format the text by changing only the whitespace between tokens, so that long numbers keep all digits.
export const reindented = (text) => {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.max(depth, 0))}`;
  return tokens.map((token, place) => {
    const before = tokens[place - 1];
    if (token === "}" || token === "]") {
      depth -= 1;
      return before === "{" || before === "[" ? token : line() + token;
    }
    const lead = before === "{" || before === "[" || before === "," ? line() : before === ":" ? " " : "";
    if (token === "{" || token === "[") depth += 1;
    return lead + token;
  }).join("");
};
