import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load, texts } from './page.mjs';

const { fixed, signed, pValue, interval, unpack } = load(['fixed', 'signed', 'pValue', 'interval', 'unpack']);

test('numbers as tables show them', () => {
  assert.deepEqual([1.25, 0, null, undefined].map((value) => fixed(value)), ['1.3', '0.0', '–', '–']);
  assert.deepEqual([1.26, -1.26, 0.04, -0.04, null].map((value) => signed(value)), ['+1.3', '−1.3', '0.0', '0.0', '–']);
  assert.deepEqual([0.0004, 0.001, 0.0456, null].map(pValue), ['<0.001', '0.001', '0.046', '–']);
  assert.equal(interval({ low: 1, high: 2.345 }, 2), '1.00 – 2.35');
});

test('packed weights: bytes as they are, a zero and a count for zeros', () => {
  const packed = btoa(String.fromCharCode(0, 2, 255, 0, 1, 102, 153));
  assert.deepEqual([...unpack(packed, 6)], [0, 0, 255, 0, 102, 153]);
  assert.deepEqual([...unpack('', 3)], [0, 0, 0]);
});

const run = (name, score, other = {}) => ({ run: name, score, low: score - 1, high: score + 1, ...other });
const compared = (difference) => ({
  paired_bootstrap: { difference, p_corrected: 0.012 },
  retention: { value: 0.9, low: 0.85, high: 0.95 },
});

function pageOf(measure, groups) {
  const bucket = { label: 'up to 8', lower: 0, upper: 9, num_pairs: 40, is_thin: true, measures: [measure] };
  const set = { name: 'test', num_pairs: 1000, measures: [measure], buckets: [bucket] };
  const names = measure.runs.map((one) => one.run);
  return { report: { sets: [set], ...(groups ? { groups } : {}) }, runs: names.map((name) => ({ name })), titles: { bleu: 'BLEU' }, about: { bleu: 'shared words' }, unit: 'tokens' };
}

const NAMES = ['byArm', 'headline', 'scoreTable', 'seedsTable', 'significanceTable', 'lengthTable', 'lengthContent', 'scoreContent', 'chosen', 'scorePoint', 'keptPoint', 'el', 'attentionRows'];
const cells = (table) => table.every('tr').map((row) => texts(row.children.filter((child) => child.tag)));

test('one run has neither seeds nor a comparison', () => {
  const page = load(NAMES, pageOf({ name: 'bleu', runs: [run('a', 30)] }));
  page.chosen.measure = 'bleu';
  const shown = page.el('div', {}, page.scoreContent(), page.lengthTable(page.byArm()));
  assert.doesNotMatch(shown.text, /±|seed|against|\bn = 1/i);
  assert.deepEqual(cells(page.lengthTable(page.byArm())), [
    ['Length in tokens', 'n of 1,000', 'a'],
    ['up to 8*', '40', '30.029.0 – 31.0'],
    ['all', '1,000', '30.029.0 – 31.0'],
  ]);
});

test('two runs are compared', () => {
  const page = load(NAMES, pageOf({ name: 'bleu', runs: [run('a', 30), run('b', 27, compared(-3))] }));
  page.chosen.measure = 'bleu';
  assert.deepEqual(cells(page.significanceTable(page.byArm())), [
    ['Measure', 'Run', 'Difference', 'p', 'Share kept'],
    ['BLEU', 'b', '−3.0', '0.012', '0.900.85 – 0.95'],
  ]);
  assert.match(page.headline(page.byArm()).text, /−3.0 against a, p 0.012/);
  assert.equal(page.scorePoint([{ score: 30, low: 29, high: 31 }], 0).most, undefined);
});

test('few sentence pairs have a difference and no p', () => {
  const page = load(NAMES, pageOf({ name: 'bleu', runs: [run('a', 30), run('b', 27, { paired_bootstrap: { difference: -3, p_corrected: null } })] }));
  assert.deepEqual(cells(page.significanceTable(page.byArm())).at(-1), ['BLEU', 'b', '−3.0', '–']);
  assert.match(page.headline(page.byArm()).text, /−3.0 against a$/);
});

const MEASURE = {
  name: 'bleu',
  runs: [run('a-s1', 29), run('a-s2', 31), run('b-s1', 27, compared(-2))],
  groups: [
    { arm: 'a', seeds: [1, 2], num_seeds: 2, score: 30, low: 29, high: 31, standard_deviation: 1.414, min: 29, max: 31 },
    { arm: 'b', seeds: [1], num_seeds: 1, score: 27, low: 26, high: 28, standard_deviation: null, min: 27, max: 27, ...compared(-3) },
  ],
};
const GROUPS = [{ name: 'a', runs: ['a-s1', 'a-s2'], seeds: [1, 2] }, { name: 'b', runs: ['b-s1'], seeds: [1] }];

test('arms show the mean of their seeds, and each run by itself out of the way', () => {
  const page = load(NAMES, pageOf(MEASURE, GROUPS));
  page.chosen.measure = 'bleu';
  assert.match(page.headline(page.byArm()).text, /30\.0 ± 1\.4 BLEU.*2 seeds, 29\.0 to 31\.0.*one seed.*−3\.0 against a/);
  assert.deepEqual(cells(page.seedsTable(page.byArm())).slice(1), [
    ['BLEU', 'a', '2', '30.029.0 – 31.0', '1.41', '29.0 – 31.0'],
    ['b', '1', '27.026.0 – 28.0', '–', '–'],
  ]);
  assert.deepEqual(cells(page.lengthTable(page.byArm())).at(-1), ['all', '1,000', '30.0 ± 1.429.0 – 31.0', '27.026.0 – 28.0', '−3.0', '0.012', '0.900.85 – 0.95']);
  const [folded] = page.el('div', {}, page.scoreContent()).every('details');
  assert.match(folded.text, /^Each of the 3 runs by itself.*a-s1.*a-s2.*b-s1/);
});

test('bars in charts reach from the worst to the best seed, in the unit of the line', () => {
  const page = load(NAMES, pageOf(MEASURE, GROUPS));
  assert.deepEqual(page.scorePoint(MEASURE.groups, 0), { value: 30, low: 29, high: 31, least: 29, most: 31 });
  const swapped = [{ ...MEASURE.groups[1], score: 20 }, { ...MEASURE.groups[0], ...compared(10) }];
  assert.deepEqual(page.keptPoint(swapped, 1), { value: 0.9, low: 0.85, high: 0.95, least: 29 / 20, most: 31 / 20 });
});

test('a measure that keeps no share, such as an error rate, has no chart of shares', () => {
  const error = (name, score) => run(name, score, { paired_bootstrap: { difference: 2, p_corrected: 0.012 }, retention: null });
  const plots = (measure) => {
    const page = load(NAMES, pageOf(measure));
    page.chosen.measure = measure.name;
    return page.el('div', {}, page.lengthContent()).every('figure').length;
  };
  assert.equal(plots({ name: 'bleu', runs: [run('a', 30), run('b', 27, compared(-3))] }), 2);
  assert.equal(plots({ name: 'bleu', runs: [run('a', 30), error('b', 32)] }), 1);
});

test('attention is that of the members of each arm', () => {
  const page = load(NAMES, pageOf(MEASURE, GROUPS));
  const rows = page.attentionRows(MEASURE.runs);
  assert.deepEqual(rows.map(({ label, members }) => [label.text, members.map((one) => one.run)]), [['a', ['a-s1', 'a-s2']], ['b', ['b-s1']]]);
});
