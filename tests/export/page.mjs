// Translates as a page does. Arguments: the page, the folder of its scripts. A line of JSON on stdin is
// [lines, options]; the answer on stdout is a [text, log-probability] for each line.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import vm from 'node:vm';

const [page, web] = process.argv.slice(2);
const data = JSON.parse(/type="application\/json">(.*?)<\/script>/s.exec(readFileSync(page, 'utf8'))[1]);
const scripts = ['interpreter.js', 'detokenize.js', 'tokens.js', 'sentences.js', 'unknown.js', 'search.js', 'lines.js'].map((name) => readFileSync(`${web}/${name}`, 'utf8'));
const [load, translator] = vm.runInThisContext(`(() => {${scripts.join('\n')}\nreturn [Seq2Seq.load, (run, model) => lineTranslator(translator(run, model))];})()`);
const translators = load(data.runs, data.kernel).map((model, number) => translator(data.runs[number], model));

for await (const line of createInterface({ input: process.stdin })) {
  const [lines, { run, ...options }] = JSON.parse(line);
  const results = lines.map((text) => translators[run].translate(text, options));
  process.stdout.write(`${JSON.stringify(results.map(({ text, logProb }) => [text, logProb]))}\n`);
}
