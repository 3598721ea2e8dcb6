// Text to tokens and back, as the Python package does, for the tokenizers that a page can have.
const SPACE = '▁'; // SentencePiece's mark for a space

function normalized(text, lowercase) {
  const clean = text
    .replace(/[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g, '')
    .replace(/[\p{Cc}\u200b\u2028\u2029]/gu, ' ');
  return (lowercase ? clean.toLowerCase() : clean).normalize('NFC').split(/\s+/u).filter(Boolean).join(' ');
}

const joined = (tokens) => tokens.join('').replaceAll(SPACE, ' ').split(/\s+/u).filter(Boolean).join(' ');

function tokenizer(settings) {
  const kinds = { spaces, characters, sentencepiece, spacy };
  return kinds[settings.tokenizer](settings);
}

function spaces({ lowercase }) {
  return {
    tokenize: (text) => normalized(text, lowercase).split(' ').filter(Boolean),
    detokenize: (tokens) => tokens.join(' '),
  };
}

function characters({ lowercase }) {
  return { tokenize: (text) => [...normalized(text, lowercase).replaceAll(' ', SPACE)], detokenize: joined };
}

// The subwords of a BPE model: of all neighbors that together are a subword, those with the highest score are joined.
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

// Unknown characters in a row are one token.
function joinedUnknown(tokens, scores) {
  const result = [];
  let wasUnknown = false;
  for (const token of tokens) {
    const isUnknown = !scores.has(token);
    if (isUnknown && wasUnknown) result.push(result.pop() + token);
    else result.push(token);
    wasUnknown = isUnknown;
  }
  return result;
}

function sentencepiece({ lowercase, subwords, model }) {
  const scores = new Map(Object.entries(subwords));
  const split = model === 'bpe' ? merges : viterbi;
  function tokenize(text) {
    const line = normalized(text, lowercase);
    return line ? joinedUnknown(split([...(SPACE + line.replaceAll(' ', SPACE))], scores), scores) : [];
  }
  return { tokenize, detokenize: joined };
}

// The most probable subwords of a unigram model.
function viterbi(marks, scores) {
  const longest = Math.max(...[...scores.keys()].map((subword) => [...subword].length));
  const unknown = Math.min(...scores.values()) - 10;
  const best = [{ score: 0, start: 0 }];
  for (let end = 1; end <= marks.length; end++) {
    best[end] = { score: -Infinity, start: end - 1 };
    for (let start = Math.max(0, end - longest); start < end; start++) {
      const known = scores.get(marks.slice(start, end).join(''));
      if (known === undefined && start < end - 1) continue;
      const score = best[start].score + (known ?? unknown);
      if (score > best[end].score) best[end] = { score, start };
    }
  }
  const tokens = [];
  for (let end = marks.length; end > 0; end = best[end].start) tokens.unshift(marks.slice(best[end].start, end).join(''));
  return tokens;
}

// spaCy's rules: split at spaces; then prefixes and suffixes, one at a time, unless the rest is a special case, a match
// or a URL; then infixes.
function spacy({ lowercase, language, rules }) {
  const special = new Map(Object.entries(rules.special));
  const compiled = (pattern, flags) => {
    if (!pattern) return null;
    const ignoresCase = pattern.startsWith('(?iu)');
    return new RegExp(ignoresCase ? pattern.slice(5) : pattern, `u${flags}${ignoresCase ? 'i' : ''}`);
  };
  const [prefix, suffix, url] = [rules.prefix, rules.suffix, rules.url].map((pattern) => compiled(pattern, ''));
  const [infix, match] = [compiled(rules.infix, 'g'), compiled(rules.match, '')];
  const affix = (text, pattern) => {
    const found = pattern && pattern.exec(text);
    return found && found[0].length ? found : null;
  };
  const isMatch = (text) => match !== null && match.test(text);
  function split(span) {
    const tokens = [];
    const suffixes = [];
    let rest = span;
    while (rest && !special.has(rest) && !isMatch(rest)) {
      const before = affix(rest, prefix);
      if (before) {
        tokens.push(rest.slice(0, before[0].length));
        rest = rest.slice(before[0].length);
        if (!rest || special.has(rest)) break;
      }
      const after = affix(rest, suffix);
      if (after) {
        suffixes.unshift(rest.slice(after.index));
        rest = rest.slice(0, after.index);
      }
      if (!before && !after) break;
    }
    return merged([...tokens, ...inner(rest), ...suffixes]);
  }
  // Neighbors that together are a special case, the longest first.
  function merged(tokens) {
    for (let first = 0; first < tokens.length - 1; first++) {
      for (let end = tokens.length; end > first + 1; end--) {
        const whole = special.get(tokens.slice(first, end).join(''));
        if (!whole) continue;
        tokens.splice(first, end - first, ...whole);
        first += whole.length - 1;
        break;
      }
    }
    return tokens;
  }
  function inner(rest) {
    if (!rest) return [];
    if (special.has(rest)) return special.get(rest);
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
  return {
    // `<unk>`, which a model may have written, is one token
    tokenize: (text) => normalized(text, lowercase).split(/ |(<unk>)/u).filter(Boolean).flatMap((span) => (span === '<unk>' ? [span] : split(span))),
    detokenize: (tokens) => detokenized(tokens, language),
  };
}
