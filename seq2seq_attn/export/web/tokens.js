// Convert text to tokens and back with the results of the Python package, for the tokenizers that a page supports.
const SPACE = '▁'; // SentencePiece's mark for a space
const STAND_IN = '\ue081'; // stands for the character ▁ in the text
function normalized(text, lowercase) {
  const clean = text
    .replace(/[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g, '')
    .replace(/[\p{Cc}\u200b\u2028\u2029]/gu, ' ')
    .toWellFormed();
  const marked = (lowercase ? clean.toLocaleLowerCase(lowercase === true ? 'en' : lowercase) : clean).normalize('NFD').replace(/(\p{Mn}{30})\p{Mn}+/gu, '$1');
  return marked.normalize('NFC').split(/\s+/u).filter(Boolean).join(' ');
}

const joined = (tokens) => tokens.join('').replaceAll(SPACE, ' ').split(/\s+/u).filter(Boolean).join(' ').replaceAll(STAND_IN, SPACE);
const withMarks = (text, lowercase) => normalized(text, lowercase).replaceAll(SPACE, STAND_IN).replaceAll(' ', SPACE);
const TOKENIZERS = {
  spaces: ({ lowercase }) => ({
    tokenize: (text) => normalized(text, lowercase).split(' ').filter(Boolean),
    detokenize: (tokens) => tokens.join(' '),
  }),
  characters: ({ lowercase }) => ({
    // A syllable of Hangul consists of two or three letters.
    tokenize: (text) => [...withMarks(text, lowercase).replace(/[가-힣]+/gu, (syllables) => syllables.normalize('NFD'))],
    detokenize: (tokens) => joined(tokens).normalize('NFC'),
  }),
  sentencepiece,
  spacy,
};
const tokenizer = (settings) => TOKENIZERS[settings.tokenizer](settings);

// The subwords of a BPE model: repeatedly join the two neighbors that form the subword with the highest score.
function merges(marks, scores) {
  const tokens = [...marks];
  for (;;) {
    let best = -1;
    let bestScore = -Infinity;
    for (let index = 0; index + 1 < tokens.length; index++) {
      const score = scores.get(tokens[index] + tokens[index + 1]) ?? -Infinity;
      if (score > bestScore) [best, bestScore] = [index, score];
    }
    if (best < 0) return tokens;
    tokens.splice(best, 2, tokens[best] + tokens[best + 1]);
  }
}

// A sequence of unknown characters is a single token.
function joinedUnknown(tokens, scores) {
  const result = [];
  tokens.forEach((token, index) => {
    const continues = index > 0 && !scores.has(token) && !scores.has(tokens[index - 1]);
    result.push(continues ? result.pop() + token : token);
  });
  return result;
}

function sentencepiece({ lowercase, subwords, model }) {
  const scores = new Map(Object.entries(subwords));
  const longest = Math.max(...[...scores.keys()].map((subword) => [...subword].length));
  const unknown = Math.min(...scores.values()) - 10;
  const split = (marks) => (model === 'bpe' ? merges(marks, scores) : viterbi(marks, scores, longest, unknown));
  function tokenize(text) {
    const marks = [...(SPACE + withMarks(text, lowercase)).replace(/▁+$/u, '')];
    return joinedUnknown(split(marks), scores);
  }
  return { tokenize, detokenize: joined };
}

// The most probable subwords of a unigram model.
function viterbi(marks, scores, longest, unknown) {
  const best = [{ score: 0, start: 0 }];
  for (let end = 1; end <= marks.length; end++) {
    best[end] = { score: -Infinity, start: end - 1 };
    for (let start = end - 1, subword = ''; start >= Math.max(0, end - longest); start--) {
      subword = marks[start] + subword;
      const known = scores.get(subword);
      if (known === undefined && start < end - 1) continue;
      const score = best[start].score + (known ?? unknown);
      if (score >= best[end].score) best[end] = { score, start };
    }
  }
  const tokens = [];
  for (let end = marks.length; end > 0; end = best[end].start) tokens.unshift(marks.slice(best[end].start, end).join(''));
  return tokens;
}

// spaCy's rules: split at spaces; then split off prefixes and suffixes, one at a time, until the rest is a special case, a
// match or a URL; then split at infixes.
function spacy({ lowercase, language, rules }) {
  const special = new Map(Object.entries(rules.special));
  const compiled = (pattern, flags, start = '') => {
    if (!pattern) return null;
    const [, ignoresCase, body] = /^(\(\?iu\))?(.*)$/su.exec(pattern);
    return new RegExp(`${start}(?:${body})`, `u${flags}${ignoresCase ? 'i' : ''}`);
  };
  const [prefix, suffix, infix] = [compiled(rules.prefix, ''), compiled(rules.suffix, ''), compiled(rules.infix, 'g')];
  const [url, match] = [rules.url, rules.match].map((pattern) => compiled(pattern, '', '^')); // anchored at the start, as by Python's re.match
  const affix = (text, pattern) => [pattern?.exec(text)].find((hit) => hit?.[0]);
  const isMatch = (text) => match !== null && match.test(text);
  function split(span, cases = special) {
    const tokens = [];
    const suffixes = [];
    let rest = span;
    while (rest && !cases.has(rest) && !isMatch(rest)) {
      const before = affix(rest, prefix);
      if (before) {
        tokens.push(rest.slice(0, before[0].length));
        rest = rest.slice(before[0].length);
        if (!rest || cases.has(rest)) break;
      }
      const after = affix(rest, suffix);
      if (after) {
        suffixes.unshift(rest.slice(after.index));
        rest = rest.slice(0, after.index);
      }
      if (!before && !after) break;
    }
    return [...tokens, ...inner(rest, cases), ...suffixes];
  }
  // If the rules have split a special case, its own tokens replace the pieces. The longest special case has precedence.
  function merged(tokens) {
    for (let first = 0; first < tokens.length - 1; first++) {
      for (let end = tokens.length; end > first + 1; end--) {
        const neighbors = tokens.slice(first, end);
        const whole = special.get(neighbors.join(''));
        if (!whole || split(neighbors.join(''), new Map()).join('\n') !== neighbors.join('\n')) continue;
        tokens.splice(first, end - first, ...whole);
        first += whole.length - 1;
        break;
      }
    }
    return tokens;
  }
  function inner(rest, cases) {
    if (!rest) return [];
    if (cases.has(rest)) return cases.get(rest);
    if (isMatch(rest) || url?.test(rest)) return [rest];
    const tokens = [];
    let offset = 0;
    for (const found of rest.matchAll(infix)) {
      if (offset === 0 && found.index === 0) continue;
      if (found.index > offset) tokens.push(rest.slice(offset, found.index));
      if (found[0]) tokens.push(found[0]);
      offset = found.index + found[0].length;
    }
    return offset < rest.length ? [...tokens, rest.slice(offset)] : tokens;
  }
  const seen = new Map(); // while somebody types, most words do not change
  const tokensOf = (span) => seen.get(span) ?? seen.set(span, span === '<unk>' ? [span] : merged(split(span))).get(span);
  return {
    // as in Python, `<unk>`, which a model may have written, is one token, and over-long runs are cut out
    tokenize: (text) =>
      normalized(text, lowercase).split(/ |(<unk>|[^\p{L}\p{N} ]{32}|[^ ]{1024})/u).filter(Boolean).flatMap(tokensOf),
    detokenize: (tokens) => detokenized(tokens, language),
  };
}
