import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, texts } from './page.mjs';

const { unsharedWords, tokenRanges, marked, el, byRange, flatten } = load(
  ['unsharedWords', 'tokenRanges', 'marked', 'el', 'byRange', 'flatten'],
);
const unshared = (hypothesis, reference) => {
  const { excess, missing } = unsharedWords(hypothesis, reference);
  const shown = (text) => ({ start, end }) => text.slice(start, end);
  return [excess.map(shown(hypothesis)), missing.map(shown(reference))];
};

test('the words that the other text lacks, whatever their case', () => {
  assert.deepEqual(unshared('The dog runs fast.', 'A dog runs.'), [['The', 'fast'], ['A']]);
  assert.deepEqual(unshared('The dog', 'the dog'), [[], []]);
  assert.deepEqual(unshared('the man and the dog', 'the'), [['man', 'and', 'the', 'dog'], []], 'of two, the last one');
  assert.deepEqual(unshared('Ein Hund läuft über die Straße.', ''), [['Ein', 'Hund', 'läuft', 'über', 'die', 'Straße'], []]);
});

test('words in another order are not shared', () => {
  assert.deepEqual(unshared('The dog chases the rabbit.', 'The rabbit chases the dog.'), [['dog', 'rabbit'], ['rabbit', 'dog']]);
  assert.deepEqual(unshared('b a', 'a b'), [['b'], ['b']], 'one of two that are exchanged is kept, the same in both texts');
});

const found = (text, tokens) => tokenRanges(text, tokens).map((range) => range && text.slice(range.start, range.end));

test('tokens lie where they stand in the text, subwords and lower-cased ones too', () => {
  assert.deepEqual(found('A dog runs.', ['▁A', '▁dog', '▁run', 's', '.', '<eos>']), ['A', 'dog', 'run', 's', '.', null]);
  assert.deepEqual(found('A Dog', ['a', 'dog']), ['A', 'Dog']);
});

test('a token that the text lacks, such as an unknown one, costs only itself', () => {
  assert.deepEqual(found('Der Xaver schläft hier.', ['Der', '<unk>', 'schläft', 'hier', '.']), ['Der', null, 'schläft', 'hier', '.']);
});

test('a token is not looked for far behind where the last one ended', () => {
  assert.deepEqual(found('x a lot of words and a dog', ['dog']), [null]);
});

test('ranges that overlap are nested elements, and the text stays the text', () => {
  const parts = marked('one two', [{ start: 0, end: 3, tag: 'ins', attributes: {} }, { start: 2, end: 7, tag: 'del', attributes: {} }]);
  const box = el('p', {}, parts);
  assert.equal(box.text, 'one two');
  assert.deepEqual(texts(box.every('ins')), ['on', 'e']);
  assert.deepEqual(texts(box.every('del')), ['e', ' two']);
});

test('a range that several runs share names them all', () => {
  const ranges = byRange([[{ start: 0, end: 2 }], [], [{ start: 0, end: 2 }, { start: 3, end: 5 }]], (runs) => ({ runs }));
  assert.deepEqual(ranges, [{ start: 0, end: 2, runs: [0, 2] }, { start: 3, end: 5, runs: [2] }]);
});

test('a tree of settings becomes dotted keys', () => {
  const flat = flatten({ seed: 1, model: { attention: { name: 'dot', options: {} }, sizes: [1, 2] } });
  assert.deepEqual([...flat], [['seed', '1'], ['model.attention.name', 'dot'], ['model.attention.options', '{}'], ['model.sizes', '[1,2]']]);
});

test('children that are text stay text', () => {
  const node = el('p', { hidden: false, title: '<b>' }, '<script>', null, [['a'], false]);
  assert.deepEqual([node.text, node.children.length, node.attributes], ['<script>a', 2, { title: '<b>' }]);
});
