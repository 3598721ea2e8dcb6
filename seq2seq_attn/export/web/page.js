// The page: a sentence, and the translation by each model, with attention that readers can look at and change.
const references = new Map(data.sentences);
const opened = new Set(translators.map((_, number) => `${number} word`));
const views = translators.map(() => null); // 'ribbons' or 'map' if the reader has chosen; otherwise null
// A model that looks back beside one that cannot: what the page is about.
const isPair = translators.length === 2 && translators[0].run.has_attention !== translators[1].run.has_attention;
const nameOf = (number) => {
  const { run } = translators[number];
  if (!isPair) return run.name;
  return run.has_attention ? 'looks back' : 'one vector';
};
const lineOf = (number) => ((isPair ? translators[number].run.has_attention : number === 0) ? 'looks' : 'keeps');
const button = (text, key, onclick, attributes = {}) => el('button', { type: 'button', 'data-key': key, class: key, onclick, ...attributes }, text);
const quiet = (text, attributes = {}) => el('p', { class: 'quiet', ...attributes }, text);

function render() {
  const sentences = translators[0].sentencesOf(shownText);
  const sentence = sentences[current] ?? '';
  const reference = references.get(sentence.trim());
  const drawn = translators.map((one, number) => drawnBy(one, choices[number]));
  const results = drawn.map(({ result }) => result);
  refill(element('sentences'), sentences.length > 1 && sentenceButtons(sentences));
  element('reference').textContent = reference === undefined ? '' : `A correct translation (the reference): ${reference}`;
  refill(element('unknown'), [...neverSeen(drawn), ...lostWords(drawn), ...tooShort(drawn)].map((text) => el('span', {}, text)));
  element('examples').hidden = shownText.trim() !== '';
  element('undo').disabled = past.length === 0;
  translators.forEach((one, number) => drawRun(one, number, results[number], compared(number, results, reference), drawn[number].text));
  if (!data.accuracy.length) return;
  const length = data.unit === 'words' ? sentence.split(/\s+/u).filter(Boolean).length : [...sentence.trim()].length;
  element('curve').replaceChildren(drawCurve(length));
  element('curve-note').textContent = readCurve(length, results.some(({ unknown }) => unknown.includes(true)));
}

// The translation of the sentence that is shown, with its attention, and the translation of the whole text.
function drawnBy(one, { prefix, force, blocked, ...choice }) {
  const size = beamSize ?? one.run.search.beam_size;
  const { standIns, isKept } = one.plan(shownText, size);
  const sentences = sentencesFor(one, shownText);
  const usual = { standIns, beamSize: size };
  const options = { ...usual, prefix, force, blocked, ...(isSteered({ prefix, force, ...choice }) ? { beamSize: 1 } : {}) };
  const result = one.translatePart(sentences[current] ?? '', options);
  const parts = sentences.map((other, number) => (number === current ? result : one.translatePart(other, usual)));
  if (isKept) return { result: { ...result, tokens: [], weights: [], steps: [], kept: [] }, parts, text: shownText };
  const isShort = parts.some((part) => part.isShort);
  const isLong = parts.some((part) => part.isLong);
  return { result, parts, isShort, isLong, text: one.joinTexts(sentences, parts.map(({ text }) => text)) };
}

function sentenceButtons(sentences) {
  const show = (number) => {
    current = number;
    choices = translators.map(() => UNTOUCHED);
    redraw();
  };
  const buttons = sentences.map((_, number) =>
    button(number + 1, 'sentence', () => show(number), { 'aria-pressed': String(number === current), 'aria-label': `Sentence ${number + 1}` }));
  return [el('span', {}, `Your text has ${sentences.length} sentences, which are translated one by one. Shown in detail:`), ...buttons];
}

function redraw() {
  render();
  remember();
}

// A message about the words of each model that were not in its training text.
const unseenIn = (parts) => [...new Set(parts.flatMap(({ source, unknown }) => source.filter((_, s) => unknown[s])))];
function neverSeen(drawn) {
  const lists = drawn.map(({ parts }) => unseenIn(parts).join(', '));
  const isSame = lists.every((list) => list === lists[0]);
  const who = (number) => (isSame ? (lists.length > 1 ? 'The models have' : 'The model has') : `${nameOf(number)} has`);
  return (isSame ? lists.slice(0, 1) : lists).flatMap((list, number) => (list ? [`${who(number)} never seen: ${list}. `] : []));
}

// A message about each translation that lacks some of these words.
function lostWords(drawn) {
  return drawn.flatMap(({ parts, text }, number) => {
    const lost = unseenIn(parts).map(bare).filter((word) => !text.includes(word));
    return lost.length ? [`${nameOf(number)}: the translation lacks ${lost.join(', ')}. `] : [];
  });
}

// A message about each translation that may lack a part of the text.
function tooShort(drawn) {
  const [short, long] = ['isShort', 'isLong'].map((fault) => [...drawn.keys()].filter((number) => drawn[number][fault]));
  return [
    ...short.map((number) => `${nameOf(number)}: a part of the text may be missing, as its translation is short. `),
    ...long.map((number) => `${nameOf(number)}: a sentence is longer than those of training; the command would cut it. `),
  ];
}

// Compare a translation in order with its reference, or without a reference with the other model's translation.
function compared(number, results, reference) {
  const { tokens, text } = results[number];
  const hasReference = reference !== undefined;
  const isAlone = !hasReference && results.length < 2;
  if (!tokens.length || isAlone) return { isWrong: [], lost: [], mark: '', note: '' };
  const expected = hasReference ? translators[number].tokenizeTarget(reference) : results[1 - number].tokens;
  const { excess, missing } = compareInOrder(tokens, expected);
  const isWrong = tokens.map((_, t) => excess.includes(t));
  const lost = missing.map(({ before, position }) => ({ before, token: expected[position] }));
  const [numWrong, numMissing] = [excess.length, missing.length];
  const count = `${numWrong} of ${tokens.length} words and marks`;
  if (!hasReference) {
    const differing = `Compared in order with the other model's translation, ${count} differ (dotted), and ${numMissing} of its own are missing.`;
    const note = numWrong + numMissing ? differing : 'The other model translates it alike.';
    return { isWrong, lost: [], mark: 'differs', note: `${note} This sentence has no correct translation to compare with.` };
  }
  const squeezed = (line) => line.split(/\s+/u).filter(Boolean).join(' ');
  let note = 'Its words and marks are those of the reference, in order; cases or spaces differ.';
  if (squeezed(text) === squeezed(reference)) note = 'Equal to the reference.';
  else if (numWrong + numMissing) note = `Compared in order with the reference, ${count} are not in it (underlined), and ${numMissing} of its own are missing (struck out).`;
  return { isWrong, lost, mark: 'wrong', note };
}

function drawRun(one, number, result, { isWrong, lost, mark, note }, text) {
  const { force, blocked, chosen, guess, picked } = choices[number];
  const isAsking = guess !== null && picked === null;
  const section = element(`run-${number}`);
  const [, body, translation, more] = section.children;
  const focusedKey = section.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const targets = result.tokens.map((token, t) => {
    const classes = [isWrong[t] && mark, t in force && 'forced', [chosen, guess].includes(t) && 'chosen'];
    const choose = () => change(number, { chosen: chosen === t ? null : t, guess: null, picked: null });
    return wordButton(token, `target ${t}`, classes, chosen === t, choose);
  });
  const positions = one.run.has_attention && result.source.length ? [...result.source, '(end)'] : result.source;
  const sources = positions.map((token, s) => {
    const isBlocked = blocked.includes(s);
    const choose = () => (isAsking ? change(number, { picked: s }) : attendTo(number, s, result));
    return wordButton(token, `source ${s}`, [result.unknown[s] && 'unknown', isBlocked && 'blocked'], isBlocked, choose);
  });
  const missing = (t) => lost.filter(({ before }) => before === t).map(({ token }) => el('del', { class: 'missing', title: 'missing from this translation' }, token));
  const [from, to] = [one.run.source.language, one.run.target.language];
  const figure = el('div', { class: 'figure' },
    sources.length ? wordRow('Your sentence', { class: 'row', lang: from }, sources) : null,
    one.run.has_attention || !sources.length ? null : oneVector(result),
    targets.length ? wordRow('Translation', { class: 'row target', lang: to }, [...targets.flatMap((target, t) => [...missing(t), target]), ...missing(targets.length)]) : null);
  body.replaceChildren(sources.length ? figure : quiet('Type a sentence.'));
  if (translation.textContent !== text) translation.textContent = text; // an unchanged text is not read out again
  const isMap = showAttention(number, figure, { positions, sources, targets, result, isAsking });
  const offers = guess === null ? alternatives(one, number, result, isMap) : question(number, positions, result);
  const folds = [];
  const explains = one.run.has_attention && targets.length && !isAsking;
  if (explains && chosen !== null && chosen < targets.length) {
    folds.push(fold(`${number} word`, `What happens at “${result.tokens[chosen]}”`, () => explainWord(number, positions, result)));
  }
  if (explains) folds.push(fold(`${number} table`, 'Attention as a table', () => attentionTable(positions, result)));
  if (result.kept?.length > result.steps.length) folds.push(fold(`${number} beam`, 'Other translations that it considered', () => beam(one, result)));
  refill(more, quiet(note), offers, folds);
  if (focusedKey) (section.querySelector(`[data-key="${focusedKey}"]`) ?? section.querySelector('.word'))?.focus();
}

const LEAST_SIZE = 0.75; // the least size of words between ribbons, relative to the usual size
// Draw the ribbons, or a heat map if the ribbons do not fit. Return whether a map was drawn.
function showAttention(number, figure, { positions, sources, targets, result, isAsking }) {
  const isReadable = translators[number].run.has_attention && targets.length > 0;
  const fit = (0.98 * figure.clientWidth) / figure.scrollWidth;
  const view = views[number] ?? (fit < LEAST_SIZE ? 'map' : 'ribbons');
  const wraps = !isReadable || view === 'map';
  figure.classList.toggle('wraps', wraps);
  if (!isReadable) return false;
  if (!wraps && fit >= LEAST_SIZE) figure.style.fontSize = `${Math.min(1, fit)}em`;
  figure.style.setProperty('--print', Math.min(1, PRINTED / figure.scrollWidth));
  if (isAsking) return view === 'map';
  if (wraps) {
    const map = heatMap(result, positions, sources, targets, figure.clientWidth - 130);
    figure.append(map);
    map.style.setProperty('--print', Math.min(1, PRINTED / map.firstChild.scrollWidth));
  } else drawRibbons(figure, sources, targets, result.weights);
  const { weights } = result;
  targets.forEach((target, t) => light(figure, target, sources, weights[t], (ribbon) => Number(ribbon.target) === t));
  sources.forEach((source, s) => light(figure, source, targets, weights.map((row) => row[s]), (ribbon) => Number(ribbon.source) === s));
  return wraps;
}
const PRINTED = 640; // width of a figure on paper, in pixels

// A part of the page that is drawn when a reader opens it, and stays open when the page is drawn again.
function fold(key, summary, content) {
  const node = el('details', { open: opened.has(key) }, el('summary', { 'data-key': key }, summary));
  const show = () => {
    opened[node.open ? 'add' : 'delete'](key);
    if (node.open && node.children.length === 1) node.append(el('div', { class: 'scrolls' }, content()));
  };
  show();
  node.addEventListener('toggle', show);
  return node;
}

// The hypotheses that the search kept, as a tree. A beginning that hypotheses share is shown once.
function beam(one, result) {
  const children = Map.groupBy(result.kept, (hypothesis) => hypothesis.parent);
  const branch = (hypothesis) => {
    const spelled = [];
    let [last, next] = [null, [hypothesis]];
    while (next.length === 1) {
      [last] = next;
      if (!last.isFinished) spelled.push(one.spelled(last.ids.at(-1), result.source));
      next = children.get(last) ?? [];
    }
    const isBest = last.ids.join() === result.ids.join();
    const note = last.isFinished || isBest ? `log-probability ${last.logProb.toFixed(2)}` : next.length ? '' : 'dropped';
    return el('li', { class: isBest ? 'best' : null }, `${spelled.join(' ')} `, el('span', { class: 'quiet' }, note), next.length ? el('ul', {}, next.map(branch)) : null);
  };
  return el('ul', { class: 'tree' }, children.get(result.kept[0].parent).map(branch));
}

// The question about the attention of a word, or the answer after the reader's guess.
function question(number, positions, result) {
  const { guess, picked } = choices[number];
  const weights = [...(result.weights[guess] ?? [])];
  const best = weights.indexOf(Math.max(...weights));
  const seen = (position) => `“${positions[position]}” with ${percent(weights[position])}`;
  const verdict = picked === best ? `Right: it looks at ${seen(best)}.` : `It looks at ${seen(best)}, at ${seen(picked)}.`;
  const text = picked === null ? `Which word of your sentence does the model look at to write “${result.tokens[guess]}”? Click it.` : verdict;
  return el('div', { class: 'choices' }, el('span', { role: 'status' }, text), button('Done', 'done', () => change(number, { guess: null, picked: null })));
}

const NUM_FUNCTION_WORDS = 30; // the number of most frequent tokens, which make no good questions
// The word for a question: its attention is clear and farthest from its own place in the sentence.
function worthGuessing(one, result) {
  const firstContent = Object.keys(one.run.ids).length + Math.min(NUM_FUNCTION_WORDS, one.run.target.tokens.length / 4);
  const worth = result.tokens.map((token, t) => {
    if (result.ids[t] < firstContent || !/\p{L}{2}/u.test(token)) return -2;
    const weights = [...result.weights[t]];
    const most = Math.max(...weights);
    return most < 0.5 ? -1 : Math.abs(weights.indexOf(most) / weights.length - t / result.weights.length);
  });
  return worth.indexOf(Math.max(...worth));
}

// The single vector of a model without attention.
function oneVector(result) {
  const { data: numbers } = result.start[0];
  const name = `Everything this model keeps of the sentence: ${numbers.length} numbers, a stripe for each (blue: above 0, orange: below 0), however long it is.`;
  return el('div', { class: 'between' }, strip(numbers, `The sentence as ${numbers.length} numbers`), quiet(name));
}

function alternatives(one, number, result, isMap) {
  const { chosen } = choices[number];
  const reset = isChanged(choices[number]) ? button('Reset', 'reset', () => change(number, UNTOUCHED)) : null;
  const { has_attention: hasAttention, can_force: canForce } = one.run;
  if (chosen === null || chosen >= result.tokens.length) {
    if (!result.tokens.length) return el('div', { class: 'choices' }, reset);
    const other = isMap ? 'ribbons' : 'map';
    const turn = () => {
      views[number] = other;
      render();
    };
    const guess = () => change(number, { guess: worthGuessing(one, result), chosen: null });
    return el('div', { class: 'choices' },
      hasAttention && result.tokens.length > 1 ? button('Let me guess where it looks', 'guess', guess) : null,
      hasAttention ? button(isMap ? 'Show ribbons' : 'Show a heat map', 'view', turn) : null, reset,
      el('span', { class: 'quiet' }, 'Click a word of the translation to change it',
        canForce ? ', a word of your sentence to hide it from the attention.' : '.', hasAttention ? ' Hover over a word to see its links.' : ''));
  }
  const { logProbs } = result.steps[chosen];
  const buttons = topTokens(logProbs, 5, one.special).map((id, rank) => {
    const take = () => change(number, { prefix: [...result.ids.slice(0, chosen), id], force: forcedBefore(number, chosen + 1) });
    return button(`${one.spelled(id, result.source) || 'end'} ${percent(Math.exp(logProbs[id]))}`, `take ${rank}`, take);
  });
  const hint = canForce ? 'Click a word of your sentence to make the model look there, or take another word:' : 'Take another word:';
  return el('div', { class: 'choices' }, el('span', { class: 'quiet' }, hint), buttons, reset);
}

// The forced attention of the steps before a step, whose words are kept.
const forcedBefore = (number, step) => Object.fromEntries(Object.entries(choices[number].force).filter(([t]) => t < step));
// Force the chosen step to attend to a single source position: the words before the step are kept, and the rest is decoded
// again. If no step is chosen, block the position for the attention, or unblock a blocked position.
function attendTo(number, position, result) {
  const { chosen, blocked } = choices[number];
  if (!translators[number].run.can_force) return;
  if (chosen !== null) change(number, { prefix: result.ids.slice(0, chosen), force: { ...forcedBefore(number, chosen), [chosen]: position } });
  else if (blocked.includes(position)) change(number, { blocked: blocked.filter((one) => one !== position) });
  else if (position < result.source.length) change(number, { blocked: [...blocked, position] });
}

function setText(text) {
  keepState();
  shownText = text;
  current = 0;
  element('link-note').textContent = '';
  choices = translators.map(() => UNTOUCHED);
  redraw();
}

function writeSentence(text) {
  element('text').value = text;
  setText(text);
}

function close() {
  const isOpen = choices.some(({ chosen, guess }) => chosen !== null || guess !== null);
  if (isOpen) choices = choices.map((choice) => ({ ...choice, chosen: null, guess: null, picked: null }));
  else opened.clear();
  render();
}

const PROMISE = 'Both models read your whole sentence before they translate it. While it writes, one looks back at whichever words it needs. The other writes from a single vector: a list of numbers, as many for a long sentence as for a short one. Make the sentence longer: which one loses track?';

function headingOf(run) {
  if (!isPair) return run.title;
  return run.has_attention ? 'With attention: it looks back at the words' : 'Without attention: one vector for the whole sentence';
}

function inputPart(from, to) {
  const area = el('textarea', { id: 'text', rows: 3, lang: from, dir: 'auto', spellcheck: 'false', oninput: () => setText(area.value) });
  area.value = shownText;
  const last = data.sentences.length - 1;
  const place = Math.max(0, data.sentences.findIndex(([source]) => source === shownText));
  const slider = el('input', { type: 'range', id: 'longer', min: 0, max: Math.max(0, last), value: place, oninput: () => writeSentence(data.sentences[slider.value][0]) });
  const sizes = new Set(translators.map(({ run }) => run.search.beam_size));
  const resize = (event) => {
    keepState();
    beamSize = sizeOfBeam(event.target.value);
    redraw();
  };
  const size = el('input', { type: 'number', id: 'beam', min: 1, max: 20, placeholder: [...sizes].join(', '), value: beamSize, oninput: resize });
  const examples = data.sentences.length ? [1, 3, 5].map((sixth) => data.sentences[Math.floor((sixth * last) / 6)][0]) : [];
  return el('div', { class: 'input' },
    el('label', { for: 'text' }, `Your sentence (${translators[0].run.source.language_name})`),
    area,
    el('div', { id: 'examples', class: 'choices' }, examples.length ? 'For example: ' : '', examples.map((text) => button(text, 'example', () => writeSentence(text), { lang: from, dir: 'auto' }))),
    el('div', { id: 'sentences', class: 'choices' }),
    el('p', { id: 'link-note', class: 'quiet', role: 'status' }), el('p', { id: 'unknown', role: 'status', lang: 'en' }),
    data.sentences.length > 1 ? el('div', { class: 'longer' }, el('label', { for: 'longer' }, 'Make it longer'), slider) : null,
    el('div', { class: 'longer' }, button('Undo', 'undo', undo, { id: 'undo' }), el('label', { for: 'beam' }, 'Beam size'), size),
    el('p', { id: 'reference', class: 'quiet', lang: to, dir: 'auto' }));
}

function build() {
  const { text, problems } = recall();
  shownText = text ?? data.sentences[Math.floor(data.sentences.length / 3)]?.[0] ?? '';
  const [from, to] = ['source', 'target'].map((side) => translators[0].run[side].language);
  const hasCurve = data.accuracy.length > 0;
  const key = translators.map((_, number) => el('span', { class: `key ${lineOf(number)}` }, nameOf(number)));
  element('main').replaceChildren(
    el('h1', {}, isPair ? 'One vector, or a look back?' : data.title),
    el('p', {}, isPair ? PROMISE : 'Type a sentence; everything is computed in this page.'),
    el('div', { class: hasCurve ? 'top halves' : 'top' }, inputPart(from, to),
      hasCurve ? el('div', {}, quiet(data.measure === 'chrF' ? 'chrF of the translations of test sentences, by length' : 'Test sentences whose translation is equal to the reference, by length'), el('p', { class: 'quiet keys' }, key), el('div', { id: 'curve' }), quiet('', { id: 'curve-note' })) : ''),
    ...translators.map(({ run }, number) =>
      el('section', { id: `run-${number}`, 'aria-label': headingOf(run) },
        el('h2', {}, headingOf(run), isPair ? el('span', { class: 'quiet' }, ` (${run.title})`) : null),
        el('div'), el('p', { class: 'translation', lang: to, dir: 'auto', 'aria-live': 'polite' }), el('div'))),
  );
  if (problems.length) element('link-note').textContent = `The link asks for what this page does not have, which was left out: ${problems.join(', ')}.`;
  render();
}

window.seq2seq = {
  translate: async (text, { run = 0, ...options } = {}) => {
    const { tokens, text: translation, logProb, weights } = translators[run].translate(text, options);
    return { tokens, text: translation, logProb, weights: weights.map((row) => [...row]) };
  },
};
window.addEventListener('resize', render);
window.addEventListener('hashchange', build);
window.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') close();
});
build();
