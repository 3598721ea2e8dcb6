// The page: a sentence, and for each model its translation, with attention that can be looked at and forced.
const data = JSON.parse(document.getElementById('data').textContent);
const translators = Seq2Seq.load(data.runs, data.kernel).map((model, number) => translator(data.runs[number], model));
const references = new Map(data.sentences);
const opened = new Set();
// What a reader did with each model's translation. `prefix`: ids to begin with; `force`: source positions by step;
// `chosen`: a step; `guess`: a step whose ribbons are hidden until a source word is picked.
const UNTOUCHED = { prefix: [], force: {}, chosen: null, guess: null, picked: null };
let choices = translators.map(() => UNTOUCHED);
// A model that looks back beside one that cannot: what the page is about.
const isPair = translators.length === 2 && translators[0].run.has_attention !== translators[1].run.has_attention;

const el = (tag, ...parts) => assemble(document.createElement(tag), ...parts);
const svg = (tag, ...parts) => assemble(document.createElementNS('http://www.w3.org/2000/svg', tag), ...parts);
function assemble(node, attributes = {}, ...children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

const percent = (value) => `${Math.round(100 * value)} %`;
function draw() {
  const text = document.getElementById('text').value;
  const reference = references.get(text.trim());
  const results = translators.map((one, number) => {
    const { prefix, force } = choices[number];
    return one.translate(text, { prefix, force, ...(isChanged(choices[number]) ? { beamSize: 1 } : {}) });
  });
  document.getElementById('reference').textContent = reference === undefined ? '' : `A correct translation: ${reference}`;
  translators.forEach((one, number) => drawRun(one, number, results[number], compared(number, results, reference)));
  if (data.accuracy.length) document.getElementById('curve').replaceChildren(curve(text.split(/\s+/u).filter(Boolean).length));
}

// The words of a translation that its reference lacks; without a reference, those that the other model's lacks.
function compared(number, results, reference) {
  const { tokens } = results[number];
  if (!tokens.length || (reference === undefined && results.length < 2)) return { marked: [], mark: '', note: '' };
  const expected = new Set(reference === undefined ? results[1 - number].tokens : translators[number].tokenizeTarget(reference));
  const marked = tokens.map((token) => !expected.has(token));
  const some = marked.filter(Boolean).length;
  const count = some ? `${some} of ${tokens.length} words and marks are not` : 'Every word is';
  if (reference !== undefined) return { marked, mark: 'wrong', note: `${count} in the correct translation${some ? ' (underlined)' : ''}.` };
  const dotted = some ? ' (dotted)' : '';
  return { marked, mark: 'differs', note: `${count} in the other model's translation${dotted}. This sentence has no correct translation to compare them with.` };
}

const wordButton = (token, classes, attributes) =>
  el('button', { type: 'button', class: ['word', ...classes.filter(Boolean)].join(' '), ...attributes }, token);

function drawRun(one, number, result, { marked, mark, note }) {
  const { force, chosen, guess, picked } = choices[number];
  const isAsking = guess !== null && picked === null;
  const section = document.getElementById(`run-${number}`);
  const [, body, translation, more] = section.children;
  const focused = [...section.querySelectorAll('button')].indexOf(document.activeElement);
  const targets = result.tokens.map((token, t) =>
    wordButton(token, [marked[t] && mark, t in force && 'forced', [chosen, guess].includes(t) && 'chosen'], {
      'aria-pressed': String(chosen === t),
      onclick: () => change(number, { chosen: chosen === t ? null : t }),
    }),
  );
  const positions = one.run.has_attention && result.source.length ? [...result.source, '(end)'] : result.source;
  const sources = positions.map((token, s) =>
    wordButton(token, [result.unknown[s] && 'unknown'], {
      title: result.unknown[s] ? 'not in the vocabulary of this model' : null,
      onclick: () => (isAsking ? change(number, { picked: s }) : attendTo(number, s, result)),
    }),
  );
  const between = one.run.has_attention || !result.source.length ? [] : strip(result);
  const [from, to] = [one.run.source.language, one.run.target.language];
  const figure = el('div', { class: 'figure' }, el('div', { class: 'row', lang: from, dir: 'auto' }, sources), between, el('div', { class: 'row target', lang: to, dir: 'auto' }, targets));
  body.replaceChildren(result.source.length ? figure : el('p', { class: 'quiet' }, 'Type a sentence.'));
  if (translation.textContent !== result.text) translation.textContent = result.text; // or it would be read out again
  more.replaceChildren(
    el('p', { class: 'quiet' }, note),
    guess === null ? alternatives(one, number, result) : question(number, positions, result),
    ...(one.run.has_attention && result.tokens.length ? [fold(`${number} table`, 'Attention as a table', () => table(positions, result))] : []),
    ...(result.kept?.length > result.steps.length ? [fold(`${number} beam`, 'Other translations that it considered', () => beam(one, result))] : []),
  );
  section.querySelectorAll('button')[focused]?.focus();
  const fit = (0.98 * figure.clientWidth) / figure.scrollWidth;
  figure.classList.toggle('wraps', fit < 0.65); // rather than to be too small to read
  figure.style.fontSize = `${fit < 0.65 ? 0.9 : Math.min(1, fit)}em`;
  if (one.run.has_attention) {
    const shown = result.weights.map((weights, t) => (isAsking && t === guess ? weights.map(() => 0) : weights));
    ribbons(figure, sources, targets, shown);
    targets.forEach((target, t) => light(target, sources, shown[t]));
    sources.forEach((source, s) => light(source, targets, shown.map((weights) => weights[s])));
  }
}

const isChanged = ({ prefix, force }) => prefix.length > 0 || Object.keys(force).length > 0;

// A part that is drawn while it is open, and stays open when the page is drawn again.
function fold(key, summary, content) {
  const node = el('details', { open: opened.has(key) }, el('summary', {}, summary));
  const show = () => {
    opened[node.open ? 'add' : 'delete'](key);
    if (node.open && node.children.length === 1) node.append(content());
  };
  show();
  node.addEventListener('toggle', show);
  return node;
}

// The hypotheses that the search kept, as a tree: what they share stands once.
function beam(one, result) {
  const children = Map.groupBy(result.kept, (hypothesis) => hypothesis.parent);
  const branch = (hypothesis) => {
    const words = [];
    let [last, next] = [null, [hypothesis]];
    while (next.length === 1) {
      [last] = next;
      if (!last.isFinished) words.push(one.spelled(last.ids.at(-1), result.source));
      next = children.get(last) ?? [];
    }
    const isBest = last.ids.join() === result.ids.join();
    const note = last.isFinished || isBest ? `log-probability ${last.logProb.toFixed(2)}` : next.length ? '' : 'given up';
    return el('li', { class: isBest ? 'best' : null }, `${words.join(' ')} `, el('span', { class: 'quiet' }, note), next.length ? el('ul', {}, next.map(branch)) : null);
  };
  return el('ul', { class: 'tree' }, children.get(result.kept[0].parent).map(branch));
}

// The question of a guess, then its answer.
function question(number, positions, result) {
  const { guess, picked } = choices[number];
  const weights = [...(result.weights[guess] ?? [])];
  const best = weights.indexOf(Math.max(...weights));
  const seen = (position) => `“${positions[position]}” with ${percent(weights[position])}`;
  const verdict = picked === best ? `Right: it looks at ${seen(best)}.` : `It looks at ${seen(best)}, at ${seen(picked)}.`;
  const text = picked === null ? `Which word of your sentence does the model look at to write “${result.tokens[guess]}”? Click it.` : verdict;
  return el('div', { class: 'choices' }, el('span', { role: 'status' }, text), el('button', { type: 'button', class: 'reset', onclick: () => reset(number) }, 'done'));
}

// The word whose attention is surest and farthest from its own place: the one that is worth a guess.
function worthGuessing(result) {
  const distances = result.tokens.map((_, t) => {
    const weights = [...result.weights[t]];
    const most = Math.max(...weights);
    return most < 0.5 ? -1 : Math.abs(weights.indexOf(most) / weights.length - t / result.weights.length);
  });
  return distances.indexOf(Math.max(...distances));
}

// While a word is pointed at or focused, the words of the other row show their weight.
function light(word, others, weights) {
  const set = (isOn) => others.forEach((other, index) => {
    other.classList.toggle('lit', isOn && weights[index] >= 0.1);
    if (isOn) other.title = percent(weights[index]);
    else other.removeAttribute('title');
  });
  for (const event of ['pointerenter', 'focus']) word.addEventListener(event, () => set(true));
  for (const event of ['pointerleave', 'blur']) word.addEventListener(event, () => set(false));
}

// How many test sentences each model translates without a mistake, by length, with a mark at the sentence's own.
function curve(length) {
  const points = data.accuracy;
  const longest = points.at(-1).length;
  const near = points.reduce((a, b) => (Math.abs(b.length - length) < Math.abs(a.length - length) ? b : a));
  const x = (words) => 44 + (250 * Math.min(words, longest)) / longest;
  const y = (share) => 110 - 95 * share;
  const label = (left, top, text, anchor = 'start') => svg('text', { x: left, y: top, 'text-anchor': anchor }, text);
  const lines = translators.map((one, run) => {
    const drawn = points.map((point) => `${x(point.length)},${y(point.shares[run])}`).join(' ');
    return svg('polyline', { class: one.run.has_attention ? 'looks' : 'keeps', points: drawn });
  });
  const ends = translators.map((one, run) =>
    label(x(longest) + 5, y(points.at(-1).shares[run]) + 4, one.run.has_attention ? 'looks back' : 'one vector'));
  const summary = translators.map(({ run }, number) => {
    const [first, last] = [points[0], points.at(-1)].map(({ shares }) => percent(shares[number]));
    return `${run.title}: ${first} of the shortest, ${last} of the longest`;
  });
  return svg(
    'svg',
    { class: 'curve', viewBox: '0 0 375 150', role: 'img', 'aria-label': `Test sentences translated without a mistake. ${summary.join('. ')}.` },
    label(40, y(1) + 4, '100 %', 'end'), label(40, y(0) + 4, '0 %', 'end'),
    label(165, 145, 'words in the sentence', 'middle'), label(x(0), 127, '0', 'middle'), label(x(longest), 127, `${Math.round(longest)}`, 'middle'),
    svg('path', { class: 'axis', d: `M${x(0)},${y(1)} V${y(0)} H${x(longest)}` }),
    ...lines, ...ends,
    ...(length ? [svg('line', { class: 'here', x1: x(length), x2: x(length), y1: y(1) + 2, y2: y(0) }), label(x(length), 10, `${length} words: ${near.shares.map(percent).join(' / ')}`, 'middle')] : []),
  );
}

function ribbons(figure, sources, targets, weights) {
  const origin = figure.getBoundingClientRect();
  const least = figure.matches('.wraps') ? 0.3 : 0.03; // where ribbons pass behind words, the strong ones
  const layer = svg('svg', { width: figure.scrollWidth, height: figure.scrollHeight, 'aria-hidden': 'true' });
  const middle = (node, side) => {
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2 - origin.left + figure.scrollLeft, box[side] - origin.top];
  };
  targets.forEach((target, t) => {
    const [x, y] = middle(target, 'top');
    sources.forEach((source, s) => {
      if (weights[t][s] < least) return;
      const [a, b] = middle(source, 'bottom');
      const d = `M${a},${b} C${a},${(b + y) / 2} ${x},${(b + y) / 2} ${x},${y}`;
      const [width, opacity] = [1 + 5 * weights[t][s], 0.15 + 0.75 * weights[t][s]];
      layer.append(svg('path', { class: 'ribbon', d, 'stroke-width': width, 'stroke-opacity': opacity }));
    });
  });
  figure.prepend(layer);
}

// The one vector of a model without attention, a pixel per number.
function strip(result) {
  const vector = result.start[0].data;
  const canvas = el('canvas', { class: 'strip', width: vector.length, height: 1, role: 'img', 'aria-label': `The sentence as ${vector.length} numbers` });
  const context = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  vector.forEach((value, index) => {
    context.fillStyle = `rgb(${style.getPropertyValue(value < 0 ? '--minus' : '--plus')} / ${Math.min(1, Math.abs(value))})`;
    context.fillRect(index, 0, 1, 1);
  });
  return el('div', { class: 'between' }, canvas, el('p', { class: 'quiet' }, `Everything this model keeps of the sentence: ${vector.length} numbers, a stripe for each (blue: above 0, orange: below 0), however long it is.`));
}

function alternatives(one, number, result) {
  const { chosen } = choices[number];
  const undo = isChanged(choices[number]) ? el('button', { type: 'button', class: 'reset', onclick: () => reset(number) }, 'Undo') : null;
  if (chosen === null || chosen >= result.tokens.length) {
    const ask = () => change(number, { guess: worthGuessing(result) });
    const offer = one.run.has_attention && result.tokens.length > 1 ? el('button', { type: 'button', class: 'guess', onclick: ask }, 'Let me guess where it looks') : null;
    const hint = `${one.run.has_attention ? 'Hover over a word to see its links. ' : ''}Click a word of the translation to change it.`;
    return el('div', { class: 'choices' }, offer, undo, el('span', { class: 'quiet' }, result.tokens.length ? hint : ''));
  }
  const { logProbs } = result.steps[chosen];
  const buttons = topTokens(logProbs, 5, one.special).map((id) => {
    const take = () => change(number, { prefix: [...result.ids.slice(0, chosen), id], force: forcedBefore(number, chosen + 1) });
    return el('button', { type: 'button', onclick: take }, `${one.spelled(id, result.source) || 'end'} ${percent(Math.exp(logProbs[id]))}`);
  });
  const hint = one.run.can_force ? 'Click a word of your sentence to make the model look there, or take another word:' : 'Take another word:';
  return el('div', { class: 'choices' }, el('span', { class: 'quiet' }, hint), buttons, undo);
}

function table(positions, result) {
  const head = el('tr', {}, el('th', {}, ''), positions.map((token) => el('th', { scope: 'col' }, token)));
  const rows = result.tokens.map((token, t) =>
    el('tr', {}, el('th', { scope: 'row' }, token), positions.map((_, s) => el('td', {}, percent(result.weights[t][s])))),
  );
  return el('table', {}, head, rows);
}

function change(number, changes) {
  choices[number] = { ...choices[number], ...changes };
  draw();
  remember();
}

const reset = (number) => change(number, UNTOUCHED);
// The attention forced on the steps before this one, whose words stay.
const forcedBefore = (number, step) => Object.fromEntries(Object.entries(choices[number].force).filter(([t]) => t < step));
// Force the chosen step to attend to one source position; the words before it stay, the rest is decoded again.
function attendTo(number, position, result) {
  const { chosen } = choices[number];
  if (chosen === null || !translators[number].run.can_force) return;
  change(number, { prefix: result.ids.slice(0, chosen), force: { ...forcedBefore(number, chosen), [chosen]: position } });
}

function changed() {
  choices = translators.map(() => UNTOUCHED);
  draw();
  remember();
}

// The address holds the sentence and the changes, so that a link shows what the page shows. It is set
// last, because Safari throws an error if that happens often, for example while somebody types.
function remember() {
  const changes = choices.some(isChanged) ? { changes: JSON.stringify(choices.map(({ prefix, force }) => ({ prefix, force }))) } : {};
  history.replaceState(null, '', `#${new URLSearchParams({ text: document.getElementById('text').value, ...changes })}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  try {
    const changes = JSON.parse(kept.get('changes'));
    choices = translators.map((_, number) => ({ ...UNTOUCHED, prefix: changes[number].prefix.map(Number), force: { ...changes[number].force } }));
  } catch {
    choices = translators.map(() => UNTOUCHED); // no changes, or not those of this page
  }
  return kept.get('text');
}

const PROMISE = 'Both models read your whole sentence before they translate it. While it writes, one looks back at whichever words it needs. The other writes from a single vector: a list of numbers, as many for a long sentence as for a short one. Make the sentence longer: which one loses track?';

function headingOf(run) {
  if (!isPair) return run.title;
  return run.has_attention ? 'With attention: it looks back at the words' : 'Without attention: one vector for the whole sentence';
}

function build() {
  const first = recall() ?? data.sentences[Math.floor(data.sentences.length / 3)]?.[0] ?? '';
  const [from, to] = ['source', 'target'].map((side) => translators[0].run[side].language);
  const area = el('textarea', { id: 'text', rows: 3, lang: from, dir: 'auto', spellcheck: 'false', oninput: changed });
  area.value = first;
  const slider = el('input', {
    type: 'range', id: 'longer', min: 0, max: Math.max(0, data.sentences.length - 1),
    value: Math.max(0, data.sentences.findIndex(([source]) => source === first)),
    oninput: (event) => {
      area.value = data.sentences[Number(event.target.value)][0];
      changed();
    },
  });
  const hasCurve = data.accuracy.length > 0;
  document.getElementById('main').replaceChildren(
    el('h1', {}, isPair ? 'One vector, or a look back?' : data.title),
    el('p', {}, isPair ? PROMISE : 'Type a sentence; everything is computed in this page.'),
    el('div', { class: hasCurve ? 'top halves' : 'top' },
      el('div', { class: 'input' },
        el('label', { for: 'text' }, `Your sentence (${translators[0].run.source.language_name})`),
        area,
        data.sentences.length > 1 ? el('div', { class: 'longer' }, el('label', { for: 'longer' }, 'Make it longer'), slider) : null,
        el('p', { id: 'reference', class: 'quiet', lang: to, dir: 'auto' })),
      hasCurve ? el('div', {}, el('p', { class: 'quiet' }, 'Test sentences translated without a mistake'), el('div', { id: 'curve' })) : null),
    ...translators.map(({ run }, number) =>
      el('section', { id: `run-${number}`, 'aria-label': headingOf(run) },
        el('h2', {}, headingOf(run), isPair ? el('span', { class: 'quiet' }, ` (${run.title})`) : null),
        el('div'), el('p', { class: 'translation', lang: to, dir: 'auto', 'aria-live': 'polite' }), el('div'))),
  );
  draw();
}

window.seq2seq = {
  translate: async (text, { run = 0, ...options } = {}) => {
    const { tokens, text: translation, logProb, weights } = translators[run].translate(text, options);
    return { tokens, text: translation, logProb, weights: weights.map((row) => [...row]) };
  },
};
window.addEventListener('resize', draw);
window.addEventListener('hashchange', build);
build();
