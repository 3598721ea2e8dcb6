// The state of the page: the sentence, the reader's changes to each model's translation, and earlier states.
// The changes for a model are `prefix`: ids to begin with; `force`: source positions by step; `blocked`: source positions without
// attention; `chosen`: a step; `guess`: a step whose ribbons are hidden until a source word is picked.
const data = JSON.parse(element('data').textContent);
const translators = Seq2Seq.load(data.runs, data.kernel).map((model, number) => lineTranslator(translator(data.runs[number], model)));
const UNTOUCHED = { prefix: [], force: {}, blocked: [], chosen: null, guess: null, picked: null };
let shownText = '';
let choices = translators.map(() => UNTOUCHED);
let current = 0; // the index of the sentence of the text that is shown
let beamSize = null; // null: the beam size of each run's configuration
const past = [];
let keptAt = -Infinity;

const isSteered = ({ prefix, force }) => prefix.length > 0 || Object.keys(force).length > 0;
const isChanged = (choice) => isSteered(choice) || choice.blocked.length > 0;

// Keep the state before a change. Changes that follow within a second, as by typing, count as a single change.
function keepState() {
  if (performance.now() - keptAt > 1000) past.push({ text: shownText, choices, beamSize, current });
  keptAt = performance.now();
}

function undo() {
  if (!past.length) return;
  ({ text: shownText, choices, beamSize, current } = past.pop());
  keptAt = -Infinity;
  element('text').value = shownText;
  redraw();
}

function change(number, changes) {
  if (['prefix', 'force', 'blocked'].some((name) => name in changes)) keepState();
  choices = choices.with(number, { ...choices[number], ...changes });
  redraw();
}

// The address holds the sentence and the changes, so that a link shows the same page. The address is
// set last, because Safari throws an error if it is set often, for example while somebody types.
function remember() {
  const kept = { text: shownText, ...(current ? { sentence: current + 1 } : {}), ...(beamSize === null ? {} : { beam: beamSize }) };
  if (choices.some(isChanged)) kept.changes = JSON.stringify(choices.map(({ prefix, force, blocked }) => ({ prefix, force, blocked })));
  history.replaceState(null, '', `#${new URLSearchParams(kept)}`);
}

// Read the text and the changes of the address. Return the text, and the problems: changes that the page cannot show.
function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const problems = [];
  const text = kept.get('text');
  choices = translators.map(() => UNTOUCHED);
  beamSize = kept.has('beam') ? sizeOfBeam(kept.get('beam')) : null;
  const sentences = sentencesFor(translators[0], text ?? '');
  current = Math.max(0, Math.min(sentences.length, Number(kept.get('sentence')) || 1) - 1);
  if (kept.has('beam') && beamSize === null) problems.push(`beam size ${kept.get('beam')}`);
  if (!kept.has('changes')) return { text, problems };
  try {
    const changes = JSON.parse(kept.get('changes'));
    choices = translators.map((one, number) => recallChoice(one, sentencesFor(one, text ?? '')[current] ?? '', changes[number] ?? {}, problems));
  } catch {
    problems.push('changes that are no JSON of this page');
  }
  return { text, problems };
}

// The sentences into which a model splits a text.
const sentencesFor = (one, text) => one.plan(text, beamSize ?? undefined).sentences;

function recallChoice(one, text, { prefix = [], force = {}, blocked = [] }, problems) {
  const numPositions = one.tokenizeSource(text).length + 1;
  const isPosition = (value, count = numPositions) => Number.isInteger(value) && value >= 0 && value < count;
  const isWord = (id) => isPosition(id, one.run.target.tokens.length + numPositions - 1) && id !== one.special.pad && id !== one.special.bos;
  const firstBad = prefix.findIndex((id) => !isWord(id));
  if (firstBad >= 0) problems.push(`word ${JSON.stringify(prefix[firstBad])}`);
  const known = (positions, limit) => positions.filter((position) => {
    if (!isPosition(position, limit)) problems.push(`source position ${JSON.stringify(position)}`);
    return isPosition(position, limit);
  });
  const forced = Object.entries(force).filter(([, position]) => known([position]).length);
  return { ...UNTOUCHED, prefix: firstBad < 0 ? prefix : prefix.slice(0, firstBad), force: Object.fromEntries(forced), blocked: known(blocked, numPositions - 1) };
}

function sizeOfBeam(text) {
  const size = Number(text);
  return Number.isInteger(size) && size >= 1 && size <= 20 ? size : null;
}
