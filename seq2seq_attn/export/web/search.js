// Beam search with the rules of search/beam.py: a finished hypothesis keeps its slot, so the beam narrows. A beam with one
// slot is greedy search. `force` maps a step to weights that replace the attention weights, or to the position that gets all
// weight. The attention does not use the positions `blocked`. The translation begins with the ids `prefix`. The result has
// `kept`, all hypotheses that were continued or finished, each with its parent, and `start`, the first state of the decoder.
function decode(model, ids, extended, { beamSize, lengthPenalty, limit, special, prefix = [], force = {}, blocked = [] }) {
  const { memory, state } = model.prepare([ids], [extended]);
  let alive = [{ ids: [], logProb: 0, steps: [] }];
  let [copies, states] = [memory, state]; // one row for each hypothesis in `alive`
  const [finished, cut, kept] = [[], [], []];
  for (let length = 1; alive.length > 0; length++) {
    const forced = force[length - 1];
    const weights = Number.isInteger(forced) ? ids.map((_, position) => Number(position === forced)) : forced;
    const previous = alive.map((hypothesis) => hypothesis.ids.at(-1) ?? special.bos);
    let step = model.step(previous, copies, states, weights && alive.flatMap(() => [...weights]));
    const rowOf = (numbers, row) => numbers?.subarray((row * numbers.length) / previous.length, ((row + 1) * numbers.length) / previous.length);
    if (blocked.length > 0 && !weights) {
      const others = alive.flatMap((_, row) => withoutBlocked(rowOf(step.weights, row), blocked));
      step = { ...model.step(previous, copies, states, others), scores: step.scores };
    }
    const chosen = alive.flatMap((parent, row) => {
      const made = Object.fromEntries(['weights', 'logProbs', 'scores', 'context'].map((name) => [name, rowOf(step[name], row)]));
      const best = length <= prefix.length ? [prefix[length - 1]] : topTokens(made.logProbs, beamSize, special);
      return best.map((id) => ({ parent, row, made, id, logProb: parent.logProb + made.logProbs[id] }));
    });
    alive = [];
    for (const { parent, row, made, id, logProb } of chosen.toSorted((a, b) => b.logProb - a.logProb).slice(0, beamSize - finished.length)) {
      const score = logProb / length ** lengthPenalty;
      const isFinished = id === special.eos;
      const hypothesis = { parent, row, logProb, score, isFinished, ids: [...parent.ids, id], steps: [...parent.steps, made] };
      kept.push(hypothesis);
      if (isFinished) finished.push(hypothesis);
      else if (length >= limit) cut.push(hypothesis);
      else alive.push(hypothesis);
    }
    if (finished.length > 0 && alive.length > 0) {
      const worst = Math.max(...finished.map((hypothesis) => hypothesis.score));
      const best = Math.max(...alive.map((hypothesis) => hypothesis.logProb));
      if (best / (lengthPenalty > 0 ? limit : length + 1) ** lengthPenalty <= worst) break;
    }
    if (alive.length !== previous.length) copies = model.rows(memory, alive.map(() => 0));
    states = model.rows(step.state, alive.map((hypothesis) => hypothesis.row));
  }
  return { ...(finished.length > 0 ? finished : cut).reduce((a, b) => (b.score > a.score ? b : a)), kept, start: state };
}

// Attention weights without the blocked positions: the weights of the other positions, scaled to the sum 1.
function withoutBlocked(weights, blocked) {
  const left = [...weights].map((weight, position) => (blocked.includes(position) ? 0 : weight));
  const sum = left.reduce((a, b) => a + b, 0);
  const even = 1 / (weights.length - blocked.length); // the weight of each position, if all attention was on blocked positions
  return left.map((weight, position) => (sum > 0 ? weight / sum : blocked.includes(position) ? 0 : even));
}

// The most probable ids, without PAD, BOS and other ids that the search excludes. Of equally probable ids, the lower id comes first.
function topTokens(logProbs, count, special) {
  const best = [];
  let least = NaN; // the least log-probability in `best`, once it is full
  for (let id = 0; id < logProbs.length; id++) {
    if (logProbs[id] <= least || id === special.pad || id === special.bos || id === special.excluded) continue;
    let place = best.length;
    while (place > 0 && logProbs[id] > logProbs[best[place - 1]]) place--;
    best.splice(place, 0, id);
    if (best.length > count) best.pop();
    if (best.length === count) least = logProbs[best[count - 1]];
  }
  return best;
}

// A translator of single sentences, made of a run.
function translator(run, model) {
  const [source, target] = [run.source, run.target].map((side) => tokenizer(side));
  const idsOf = (side) => new Map(side.tokens.map((token, id) => [token, id]).slice(Object.keys(run.ids).length)); // without special tokens
  const [known, written] = [run.source, run.target].map(idsOf);
  const special = { ...run.ids, excluded: run.search.unk === 'forbid' ? run.ids.unk : null };
  const spelled = (id, tokens) => run.target.tokens[id] ?? tokens[id - run.target.tokens.length] ?? '';
  // If the search copies unknown words, replace an unknown word by the source token with the most attention.
  function spelledOrCopied(id, weights, tokens) {
    if (id !== special.unk || run.search.unk !== 'copy') return spelled(id, tokens);
    return tokens[weights.slice(0, -1).reduce((best, weight, position, all) => (weight > all[best] ? position : best), 0)];
  }
  function translateSentence(text, { beamSize = run.search.beam_size, prefix = [], force = {}, blocked = [] } = {}) {
    const tokens = source.tokenize(text);
    const unknown = tokens.map((token) => !known.has(token));
    if (tokens.length === 0) return { source: [], unknown, tokens: [], text: '', logProb: 0, weights: [], steps: [], ids: [] };
    const ids = [...tokens.map((token) => known.get(token) ?? special.unk), special.eos];
    // a token that the target vocabulary lacks has an id after the vocabulary, by its first position
    const numTarget = run.target.tokens.length;
    const extended = [...tokens.map((token) => written.get(token) ?? numTarget + tokens.indexOf(token)), special.eos];
    const limit = prefix.length + Math.floor((run.search.max_length_ratio ?? 2) * tokens.length) + run.search.max_length_extra;
    const lengthPenalty = run.search.length_penalty;
    const best = decode(model, ids, extended, { beamSize, lengthPenalty, limit, special, prefix, force, blocked });
    const spelledTokens = best.ids.slice(0, best.isFinished ? -1 : undefined).map((id, t) => spelledOrCopied(id, best.steps[t].weights, tokens));
    const weights = run.has_attention ? best.steps.map((step) => step.weights) : [];
    return { source: tokens, unknown, tokens: spelledTokens, text: target.detokenize(spelledTokens), weights, ...best };
  }
  const tokenizers = { tokenizeSource: source.tokenize, tokenizeTarget: target.tokenize, detokenize: target.detokenize };
  return { run, translateSentence, isKnown: (token) => known.has(token), spelled, special, ...tokenizers };
}
