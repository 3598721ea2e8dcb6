// Compare two lists of words by their longest common subsequence. `excess` has the positions of `tokens` outside this
// subsequence. `missing` has the positions of `expected` outside it, each with the position in `tokens` to insert the word.
function compareInOrder(tokens, expected) {
  const lengths = Array.from({ length: tokens.length + 1 }, () => new Uint16Array(expected.length + 1)); // of the subsequences from positions t and e on
  for (let t = tokens.length - 1; t >= 0; t--) {
    for (let e = expected.length - 1; e >= 0; e--) {
      if (tokens[t] === expected[e]) lengths[t][e] = lengths[t + 1][e + 1] + 1;
      else lengths[t][e] = Math.max(lengths[t + 1][e], lengths[t][e + 1]);
    }
  }
  const [excess, missing] = [[], []];
  let [t, e] = [0, 0];
  while (t < tokens.length || e < expected.length) {
    const isMissing = t === tokens.length || (e < expected.length && lengths[t + 1][e] < lengths[t][e + 1]);
    if (t < tokens.length && tokens[t] === expected[e]) [t, e] = [t + 1, e + 1];
    else if (isMissing) missing.push({ before: t, position: e++ });
    else excess.push(t++);
  }
  return { excess, missing };
}
