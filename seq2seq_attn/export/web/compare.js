// Two lists of tokens compared in order, by their longest common subsequence: which of `tokens` are outside it, and which
// of `expected` are, as lists of what is missing before each token and, last, at the end.
function compareInOrder(tokens, expected) {
  const longest = Array.from({ length: tokens.length + 1 }, () => new Uint16Array(expected.length + 1)); // from t and e on
  for (let t = tokens.length - 1; t >= 0; t--) {
    for (let e = expected.length - 1; e >= 0; e--) {
      if (tokens[t] === expected[e]) longest[t][e] = longest[t + 1][e + 1] + 1;
      else longest[t][e] = Math.max(longest[t + 1][e], longest[t][e + 1]);
    }
  }
  const isWrong = tokens.map(() => false);
  const missing = Array.from({ length: tokens.length + 1 }, () => []);
  let [t, e] = [0, 0];
  while (t < tokens.length || e < expected.length) {
    if (t < tokens.length && tokens[t] === expected[e]) {
      t++;
      e++;
    } else if (e >= expected.length || (t < tokens.length && longest[t + 1][e] >= longest[t][e + 1])) {
      isWrong[t] = true;
      t++;
    } else {
      missing[t].push(expected[e]);
      e++;
    }
  }
  return { isWrong, missing };
}
