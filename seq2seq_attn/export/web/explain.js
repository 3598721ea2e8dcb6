// The computation of attention for a word of the translation: the scores of the source words, their softmax, the context.
function explainWord(number, positions, result) {
  const { chosen, force, blocked } = choices[number];
  const { scores, weights, context } = result.steps[chosen];
  const isByHand = chosen in force || blocked.length > 0;
  const most = scores && Math.max(...scores);
  const rows = positions.map((token, s) => {
    const numbers = scores ? [scores[s].toFixed(2), Math.exp(scores[s] - most).toFixed(3)] : [];
    return el('tr', {}, el('th', { scope: 'row' }, words(token)), numbers.map((text) => el('td', {}, text)), shadedCell(weights[s]));
  });
  const titles = ['', ...(scores ? ['score', 'exp'] : []), 'weight'];
  return el('div', { class: 'explained' },
    scores
      ? el('p', {}, 'Before it writes this word, the decoder compares its state s with the encoder’s vector h of each source word: ',
        el('b', {}, 'score'), ' e = score(s, h). A ', el('b', {}, 'softmax'), ' makes them weights that sum to 1: α = exp(e) / Σ exp(e). ',
        `The column “exp” has exp(e − ${most.toFixed(2)}), which gives the same weights.`)
      : el('p', {}, 'This model does not weigh the source words by a softmax of scores. The weights that it gives them:'),
    isByHand ? el('p', {}, 'Here you have changed the weights: they are not the softmax of the scores.') : null,
    el('div', { class: 'scrolls' }, el('table', {}, el('tr', {}, titles.map((title) => el('th', { scope: 'col' }, title))), rows)),
    context && [
      el('p', {}, 'The ', el('b', {}, 'context'), ` c = Σ α h is the mean of the vectors, by weight: ${context.length} numbers, made anew for each word. With s, it decides the word.`),
      strip(context, `The context as ${context.length} numbers`),
    ]);
}

// A weight as a cell of a table. A larger weight has a darker cell, on which the text stays readable.
function shadedCell(weight) {
  const cell = el('td', {}, percent(weight));
  cell.style.background = colorOf(0.4 * Math.min(1, weight));
  return cell;
}

function attentionTable(positions, result) {
  const head = el('tr', {}, el('th', {}, ''), positions.map((token) => el('th', { scope: 'col' }, token)));
  const rows = result.tokens.map((token, t) =>
    el('tr', {}, el('th', { scope: 'row' }, token), positions.map((_, s) => shadedCell(result.weights[t][s]))));
  return el('table', {}, head, rows);
}
