// The page: a sentence, and for each model its translation, with attention that can be looked at and forced.
const data = JSON.parse(document.getElementById('data').textContent);
const translators = data.runs.map(translator);
const EXAMPLES = data.sentences;
const choices = translators.map(() => ({ prefix: [], force: {}, chosen: null }));
let references = new Map();

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

const percent = (value) => `${Math.round(100 * value)} %`;

function draw() {
  const text = document.getElementById('text').value;
  translators.forEach((one, number) => drawRun(one, number, text, references.get(text.trim())));
}

function drawRun(one, number, text, reference) {
  const { prefix, force, chosen } = choices[number];
  const result = one.translate(text, { prefix, force, ...(prefix.length || Object.keys(force).length ? { beamSize: 1 } : {}) });
  const expected = reference === undefined ? null : new Set(one.tokenizeTarget(reference));
  const section = document.getElementById(`run-${number}`);
  const targets = result.tokens.map((token, index) =>
    el(
      'button',
      {
        type: 'button',
        class: ['word', expected && !expected.has(token) ? 'wrong' : '', index in force ? 'forced' : '', chosen === index ? 'chosen' : ''].join(' '),
        'aria-pressed': String(chosen === index),
        onclick: () => choose(number, chosen === index ? null : index),
      },
      token,
    ),
  );
  const positions = one.run.has_attention && result.source.length ? [...result.source, '<eos>'] : result.source;
  const sources = positions.map((token, index) =>
    el(
      'button',
      {
        type: 'button',
        class: `word${result.unknown[index] ? ' unknown' : ''}`,
        title: result.unknown[index] ? 'not in the vocabulary of this model' : null,
        onclick: () => attendTo(number, index, result),
      },
      token,
    ),
  );
  const between = one.run.has_attention || !result.source.length ? [] : strip(one, result);
  const figure = el('div', { class: 'figure', dir: 'auto' }, el('div', { class: 'row' }, sources), between, el('div', { class: 'row target' }, targets));
  section.replaceChildren(
    el('h2', {}, one.run.title),
    result.source.length ? figure : el('p', { class: 'quiet' }, 'Type a sentence.'),
    el('p', { class: 'translation', lang: one.run.target.language, dir: 'auto' }, result.text),
    ...alternatives(one, number, result),
    ...(one.run.has_attention && result.tokens.length ? [table(positions, result)] : []),
  );
  if (one.run.has_attention) {
    ribbons(figure, sources, targets, result.weights);
    targets.forEach((target, t) => light(target, sources, result.weights[t]));
    sources.forEach((source, s) => light(source, targets, result.weights.map((weights) => weights[s])));
  }
}

// While a word is pointed at or focused, the words of the other row show their weight.
function light(word, others, weights) {
  const set = (isOn) =>
    others.forEach((other, index) => {
      other.classList.toggle('lit', isOn && weights[index] >= 0.1);
      if (isOn) other.title = percent(weights[index]);
      else other.removeAttribute('title');
    });
  for (const event of ['pointerenter', 'focus']) word.addEventListener(event, () => set(true));
  for (const event of ['pointerleave', 'blur']) word.addEventListener(event, () => set(false));
}

function ribbons(figure, sources, targets, weights) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const origin = figure.getBoundingClientRect();
  svg.setAttribute('width', figure.scrollWidth);
  svg.setAttribute('height', figure.scrollHeight);
  svg.setAttribute('aria-hidden', 'true');
  const middle = (node, side) => {
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2 - origin.left + figure.scrollLeft, box[side] - origin.top];
  };
  targets.forEach((target, t) => {
    const [x, y] = middle(target, 'top');
    sources.forEach((source, s) => {
      if (weights[t][s] < 0.03) return;
      const [a, b] = middle(source, 'bottom');
      const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      path.setAttribute('class', 'ribbon');
      path.setAttribute('d', `M${a},${b} C${a},${(b + y) / 2} ${x},${(b + y) / 2} ${x},${y}`);
      path.setAttribute('stroke-width', String(1 + 5 * weights[t][s]));
      path.setAttribute('stroke-opacity', String(0.15 + 0.75 * weights[t][s]));
      svg.append(path);
    });
  });
  figure.prepend(svg);
}

// The one vector of a model without attention, a pixel per number.
function strip(one, result) {
  const vector = one.vector(result.sourceIds).data;
  const canvas = el('canvas', { class: 'strip', width: vector.length, height: 1, role: 'img', 'aria-label': `The sentence as ${vector.length} numbers` });
  const context = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  vector.forEach((value, index) => {
    context.fillStyle = `rgb(${style.getPropertyValue(value < 0 ? '--minus' : '--plus')} / ${Math.min(1, Math.abs(value))})`;
    context.fillRect(index, 0, 1, 1);
  });
  return el('div', { class: 'between' }, canvas, el('p', { class: 'quiet' }, `All that this model keeps of the sentence: ${vector.length} numbers, however long it is.`));
}

function alternatives(one, number, result) {
  const { chosen, prefix, force } = choices[number];
  const isChanged = prefix.length > 0 || Object.keys(force).length > 0;
  const undo = isChanged ? [el('button', { type: 'button', class: 'reset', onclick: () => reset(number) }, 'undo changes')] : [];
  if (chosen === null || chosen >= result.tokens.length) return undo.length ? [el('div', { class: 'choices' }, undo)] : [];
  const { logProbs } = result.steps[chosen];
  const buttons = topTokens(logProbs, 5, one.run.ids).map((id) =>
    el(
      'button',
      { type: 'button', onclick: () => replace(number, [...result.ids.slice(0, chosen), id]) },
      `${one.spelled(id, result.source) || 'end'} ${percent(Math.exp(logProbs[id]))}`,
    ),
  );
  const hint = one.run.can_force ? 'Click a source word to attend to it here, or take another word:' : 'Take another word:';
  return [el('div', { class: 'choices' }, el('span', { class: 'quiet' }, hint), buttons, undo)];
}

function table(positions, result) {
  const head = el('tr', {}, el('th', {}, ''), positions.map((token) => el('th', { scope: 'col' }, token)));
  const rows = result.tokens.map((token, t) =>
    el('tr', {}, el('th', { scope: 'row' }, token), positions.map((_, s) => el('td', {}, percent(result.weights[t][s])))),
  );
  return el('details', {}, el('summary', {}, 'Attention as a table'), el('table', {}, head, rows));
}

function reset(number) {
  choices[number] = { prefix: [], force: {}, chosen: null };
  draw();
}

function choose(number, index) {
  choices[number].chosen = index;
  draw();
}

function replace(number, prefix) {
  choices[number] = { ...choices[number], prefix };
  draw();
}

// Force the chosen step to attend to one source position; the words before it stay, the rest is decoded again.
function attendTo(number, position, result) {
  const { chosen, force } = choices[number];
  if (chosen === null || !translators[number].run.can_force) return;
  const weights = Float32Array.from({ length: result.source.length + 1 }, (_, index) => Number(index === position));
  choices[number] = { prefix: result.ids.slice(0, chosen), force: { ...force, [chosen]: weights }, chosen };
  draw();
}

function changed() {
  choices.forEach((_, number) => (choices[number] = { prefix: [], force: {}, chosen: null }));
  history.replaceState(null, '', `#text=${encodeURIComponent(document.getElementById('text').value)}`);
  draw();
}

function build() {
  const isPair = translators.length === 2 && translators.some((one) => !one.run.has_attention);
  const given = /^#text=(.*)$/u.exec(location.hash);
  const first = given ? decodeURIComponent(given[1]) : (EXAMPLES[0]?.[0] ?? '');
  references = new Map(EXAMPLES);
  const language = translators[0].run.source.language;
  const area = el('textarea', { id: 'text', rows: 2, lang: language, dir: 'auto', spellcheck: 'false', oninput: changed });
  area.value = first;
  const slider = el('input', {
    type: 'range', id: 'longer', min: 0, max: Math.max(0, EXAMPLES.length - 1), value: 0,
    oninput: (event) => {
      area.value = EXAMPLES[Number(event.target.value)][0];
      changed();
    },
  });
  document.getElementById('main').replaceChildren(
    el('h1', {}, isPair ? 'One vector, or a look back?' : data.title),
    el('p', { class: 'quiet' }, isPair ? 'Both models read the same sentence. One keeps a single vector of it; the other looks back at its words.' : 'Type a sentence; everything is computed in this page.'),
    el(
      'div',
      { class: 'input' },
      el('label', { for: 'text' }, `Your sentence (${language})`),
      area,
      EXAMPLES.length > 1 ? el('div', { class: 'longer' }, el('label', { for: 'longer' }, 'Longer'), slider) : null,
      EXAMPLES.length > 1 ? el('p', { class: 'quiet' }, 'The sentences of the slider are from the test set: words that their reference lacks are underlined.') : null,
    ),
    ...translators.map((one, number) => el('section', { id: `run-${number}`, 'aria-label': one.run.title, 'aria-live': 'polite' })),
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
build();
