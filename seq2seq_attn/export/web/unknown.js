// Pass words that a model does not know through a translation, by the rules of translate/unknown.py: the model reads several
// versions of a line, in which stand-ins replace the words. A stand-in is a pair of a known source word and its translation.
const LETTER_OR_DIGIT = '[\\p{L}\\p{N}_]';
const NUMBER = /^[^\p{L}\p{Nl}\p{No}]*\p{Nd}[^\p{L}\p{Nl}\p{No}]*$/u;
const CODE = new RegExp(`\\p{Nd}|[%{@_/\\\\&+~#]|${LETTER_OR_DIGIT}(?:[.:]${LETTER_OR_DIGIT}|[A-Z])`, 'u');
const LEAST_PART = 4; // least number of letters of a known word inside a compound
const LEAST_WEIGHT = 0.2; // least attention of a target word that is replaced by an unknown word whose stand-in was not translated

function kindOf(word) {
  if (NUMBER.test(word)) return 'number';
  if (CODE.test(word)) return 'code';
  return /^\p{Uppercase}/u.test(word) ? 'name' : 'word';
}
const capitalized = (word) => word.replace(/^./su, (first) => first.toUpperCase()).replace(/(?<=^.).+/su, (rest) => rest.toLowerCase());
const respell = (token, word) => (token.startsWith(SPACE) ? SPACE + word : word);
const bare = (token) => (token.startsWith(SPACE) ? token.slice(1) : token);

function passing({ words: { pattern, known, numbers, others, copied }, source: { tokenizer: name, lowercase } }, hasUnknownToken) {
  const [word_, kept] = [new RegExp(pattern, 'gu'), new Set(known)];
  const wordsIn = (text) => text.match(word_) ?? [];
  const replaceWords = (text, replacements) => text.replace(word_, (word) => replacements.get(word) ?? word);
  const findCase = (word) => [word, word.toLowerCase(), capitalized(word)].find((spelling) => kept.has(spelling));
  function isUnknown(word) {
    const isNew = !kept.has(lowercase ? word.toLowerCase() : word);
    if (!['spacy', 'spaces'].includes(name) && copied.length) return isNew;
    return hasUnknownToken(word) || (isNew && name !== 'characters' && ['number', 'code'].includes(kindOf(word)));
  }
  // Whether a word is copied in translations, as a name is. A word that begins or ends with a known word is a compound.
  function isCopied(word) {
    const [kind, letters] = [kindOf(word), [...word]];
    const sizes = kind === 'name' ? [...letters.keys()].slice(Math.max(LEAST_PART, Math.floor(letters.length / 2))) : [];
    const parts = sizes.flatMap((size) => [letters.slice(0, size).join(''), letters.slice(-size).join('')]);
    return copied.includes(kind) && !parts.some(findCase);
  }
  function passes(word) {
    if (name === 'characters') return isCopied(word) && kindOf(word) !== 'name';
    return hasUnknownToken(word) || isCopied(word);
  }
  // The versions that the model reads in place of the sentences of a line. There are none if the line is not translated.
  function versionsOf(sentences) {
    const line = sentences.join('');
    const all = new Set(wordsIn(line));
    const [spelled, passed, present] = [new Map(), [], new Set(wordsIn(line.toLowerCase()))];
    for (const word of [...all].filter(isUnknown)) {
      const spelling = findCase(word);
      if (spelling !== undefined && spelling !== word) spelled.set(word, spelling);
      else if (passes(word)) passed.push(word);
    }
    if (line && [...all].every((word) => passed.includes(word) || (copied.includes('numbers') && kindOf(word) === 'number'))) return [];
    const readAs = (written, standIns) => ({ sentences: sentences.map((sentence) => replaceWords(sentence, written)), standIns });
    const [free, freeNumbers] = [others, numbers].map((pairs) => pairs.filter(([source]) => !present.has(source.toLowerCase())));
    const versions = Array.from({ length: passed.length && Math.max(free.length, freeNumbers.length) }, (_, first) => {
      const standIns = assign(passed, freeNumbers.length ? freeNumbers : free, free, first);
      const sources = [...standIns].map(([word, [source]]) => [word, source]);
      return readAs(new Map([...spelled, ...sources]), standIns);
    });
    return versions.length ? versions : [readAs(spelled, new Map())];
  }
  // The translation with the unknown words in place of their stand-ins, the number of stand-ins that the translation lacks, and
  // the number of stand-ins to which another token than their target word attends most.
  function putBack(standIns, { source, tokens, text, weights, ...rest }, detokenize) {
    const [written, lost, found] = [new Map(), [], wordsIn(text.toLowerCase())];
    const shown = { source: [...source], tokens: [...tokens], text };
    const put = (list, word, old) => [...list.keys()].filter((place) => {
      const isOld = bare(list[place]).toLowerCase() === old.toLowerCase();
      if (isOld) list[place] = respell(list[place], word);
      return isOld;
    });
    const sumsOf = (columns) => tokens.map((_, t) => columns.reduce((sum, s) => sum + weights[t][s], 0));
    let numDoubtful = 0;
    for (const [word, [from, to]] of standIns) {
      const columns = put(shown.source, word, from);
      const places = put(shown.tokens, word, to);
      if (weights.length && tokens.length) {
        const sums = sumsOf(columns);
        numDoubtful += Number(!places.includes(sums.indexOf(Math.max(...sums))));
      }
      for (const spelling of [to, to.toLowerCase(), capitalized(to)]) written.set(spelling, word);
      if (!found.includes(to.toLowerCase())) lost.push([word, columns]);
    }
    shown.text = replaceWords(text, written);
    if (!weights.length || !lost.some(([, columns]) => columns.length)) return { ...rest, ...shown, weights, numLost: lost.length, numDoubtful };
    const isTaken = shown.tokens.map((token) => standIns.has(bare(token)));
    for (const [word, columns] of lost) {
      const sums = sumsOf(columns).map((sum, t) => (isTaken[t] ? 0 : sum));
      const rows = [...sums.keys()].filter((t) => sums[t] >= LEAST_WEIGHT).toSorted((a, b) => sums[b] - sums[a]);
      const row = rows.find((t) => wordsIn(detokenize(shown.tokens.toSpliced(t, 1, respell(shown.tokens[t], word)))).includes(word));
      if (row === undefined) continue; // the word would be part of a longer word
      [isTaken[row], shown.tokens[row]] = [true, respell(shown.tokens[row], word)];
    }
    return { ...rest, ...shown, text: replaceWords(detokenize(shown.tokens), written), weights, numLost: lost.length, numDoubtful };
  }
  return { versionsOf, putBack, count: (text, word) => wordsIn(text).filter((one) => one === word).length };
}

// A stand-in for each word, from index `first` on. If there are too few stand-ins, the last words have none.
function assign(passed, numbers, others, first) {
  const chosen = new Map();
  for (const word of passed) {
    const pairs = kindOf(word) === 'number' ? numbers : others;
    const start = first % Math.max(1, pairs.length);
    const free = [...pairs.slice(start), ...pairs.slice(0, start)].find((pair) => ![...chosen.values()].includes(pair));
    if (free) chosen.set(word, free);
  }
  return chosen;
}
