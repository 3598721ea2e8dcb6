// Words in texts: those that two texts do not share in the same order, and where the tokens of a model lie.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
const wordsIn = (text) =>
  [...segmenter.segment(text)].filter((one) => one.isWordLike).map(({ segment, index }) =>
    ({ key: segment.toLowerCase(), start: index, end: index + segment.length }));

// lengths[i][j]: the length of the longest common subsequence of `left` from word i and `right` from word j.
function commonLengths(left, right) {
  const lengths = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      lengths[i][j] = left[i].key === right[j].key ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

// The words outside the longest common subsequence: `excess` in the hypothesis, `missing` in the reference. A word at another
// place is both. The tables count tokens of spaCy in any order instead.
function unsharedWords(hypothesis, reference) {
  const [left, right] = [wordsIn(hypothesis), wordsIn(reference)];
  const [lengths, excess, missing] = [commonLengths(left, right), [], []];
  let [i, j] = [0, 0];
  while (i < left.length && j < right.length) {
    if (left[i].key === right[j].key) [i, j] = [i + 1, j + 1];
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) excess.push(left[i++]);
    else missing.push(right[j++]);
  }
  return { excess: [...excess, ...left.slice(i)], missing: [...missing, ...right.slice(j)] };
}

const SLACK = 3; // characters between two tokens, such as spaces
const isSpecial = (token) => /^<\w+>$/.test(token);

// The characters of each token in the text that the tokens were made of, or make; null where it is not found.
function tokenRanges(text, tokens) {
  const lower = text.toLowerCase().length === text.length ? text.toLowerCase() : text;
  let [from, slack] = [0, SLACK];
  return tokens.map((token) => {
    const wanted = (lower === text ? token : token.toLowerCase()).replaceAll('▁', ' ').trim();
    if (!wanted) return null;
    const start = lower.indexOf(wanted, from);
    if (start < 0 || start > from + slack) {
      slack += isSpecial(token) ? 4 * SLACK : wanted.length + SLACK;
      return null;
    }
    [from, slack] = [start + wanted.length, SLACK];
    return { start, end: from };
  });
}

// A text in which ranges of characters, which may overlap, are elements: [{start, end, tag, attributes}].
function marked(text, ranges) {
  const edges = [...new Set([0, text.length, ...ranges.flatMap(({ start, end }) => [start, end])])].toSorted((a, b) => a - b);
  return edges.slice(1).map((end, i) => {
    const inside = ranges.filter((range) => range.start <= edges[i] && range.end >= end);
    return inside.reduce((child, { tag, attributes }) => el(tag, attributes, child), text.slice(edges[i], end));
  });
}
