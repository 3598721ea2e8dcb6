import assert from 'node:assert/strict';
import { test } from 'node:test';

import { load } from './page.mjs';

const { ticksTo, logTicks, roundTicks, shortLabel, stretches, drawChart, marker, DASHES } = load(
  ['ticksTo', 'logTicks', 'roundTicks', 'shortLabel', 'stretches', 'drawChart', 'marker', 'DASHES'],
);
const labels = (ticks) => ticks.map(({ label }) => label);

test('an axis begins at zero, ends over the highest value, and has round steps', () => {
  assert.deepEqual(labels(ticksTo(37.2)), ['0', '10', '20', '30', '40']);
  assert.deepEqual(labels(ticksTo(1)), ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']);
  assert.deepEqual(labels(ticksTo(0.11)), ['0.000', '0.025', '0.050', '0.075', '0.100', '0.125']);
  for (const top of [0.003, 0.9, 12, 99.99, 100, 12345]) {
    const { value } = ticksTo(top).at(-1);
    assert.ok(value >= top * (1 - 1e-9) && value <= 2 * top, `${top} ends at ${value}`);
  }
});

test('a logarithmic axis encloses its values between 1, 2 and 5 times powers of ten', () => {
  assert.deepEqual(labels(logTicks(3, 180)), ['2', '5', '10', '20', '50', '100', '200']);
  assert.deepEqual(labels(logTicks(1, 1)), ['1', '2']);
  assert.deepEqual(labels(logTicks(2, 400000)), ['1', '10', '100', '1K', '10K', '100K', '1M']);
});

test('ticks between two ends stay between them, and say minus', () => {
  assert.deepEqual(roundTicks(3100, 4), [0, 1000, 2000, 3000]);
});

test('the label of a bucket names whole lengths', () => {
  const bounds = [[0, null], [0, 9], [9, 12], [12, 13], [21, null]];
  assert.deepEqual(bounds.map(([lower, upper]) => shortLabel({ lower, upper })), ['all', '≤ 8', '9–11', '12', '≥ 21']);
});

test('a bucket without a value is a gap in the line', () => {
  const point = { value: 1 };
  assert.deepEqual(stretches([point, point, null, point]).map((stretch) => stretch.map(({ index }) => index)), [[0, 1], [3]]);
  assert.deepEqual(stretches([null, null]), []);
});

const buckets = [{ lower: 0, upper: 9, num_pairs: 60 }, { lower: 9, upper: null, num_pairs: 1200, is_thin: true }];
const chartOf = (points) => drawChart(600, { buckets, series: [{ run: 0, name: 'a', points }], unit: 'length', label: 'a chart' });

test('a chart has a marker per value that says it, and bars only where seeds differ', () => {
  const one = chartOf([{ value: 30, low: 28, high: 32 }, { value: 20, low: 17, high: 23.5 }]);
  assert.deepEqual(one.every('title').map((title) => title.text), ['a, ≤ 8: 30.0 [28.0, 32.0]', 'a, ≥ 9: 20.0 [17.0, 23.5]']);
  assert.equal(one.every('line').filter(({ attributes }) => attributes.class.startsWith('seeds')).length, 0);
  const two = chartOf([{ value: 30, low: 28, high: 32, least: 29, most: 31 }, null]);
  assert.deepEqual(two.every('title').map((title) => title.text), ['a, ≤ 8: 30.0 [28.0, 32.0], seeds 29.0 to 31.0']);
  assert.equal(two.every('line').filter(({ attributes }) => attributes.class.startsWith('seeds')).length, 1);
});

test('labels of many buckets leave room for one another', () => {
  const many = Array.from({ length: 30 }, (_, i) => ({ lower: i, upper: i + 1, num_pairs: 60 }));
  const chart = drawChart(600, { buckets: many, series: [{ run: 0, name: 'a', points: many.map(() => null) }], unit: 'length', label: 'a chart' });
  const labelled = chart.every('text').map(({ text }) => text).filter((text) => /^n? ?60$/.test(text));
  assert.ok(labelled.length >= 8 && labelled.length <= 12, `${labelled.length} labels`);
});

test('twenty-four runs look different without their colors', () => {
  const looks = Array.from({ length: 24 }, (_, style) => {
    const { tag, attributes } = marker(style, 0, 0);
    return [DASHES[style % DASHES.length], tag, attributes.points].join('|');
  });
  assert.equal(new Set(looks).size, 24);
});
