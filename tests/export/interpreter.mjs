// A line of JSON on stdin is a model, a source and the ids of its steps: the steps, as a line on stdout, or an error.
// The first argument is the interpreter's script.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import vm from 'node:vm';

const Seq2Seq = vm.runInThisContext(`${readFileSync(process.argv[2], 'utf8')}\nSeq2Seq;`);
const lists = {
  dtypes: Object.keys(Seq2Seq.dtypes),
  operations: Object.fromEntries(Object.entries(Seq2Seq.operations).map(([name, run]) => [name, run.length]).sort()),
};
const list = (numbers) => Array.from(numbers, (number) => (Number.isFinite(number) ? number : String(number)));

function stepsOf({ program, weights, kernel, ids, previous, force }) {
  const [model] = Seq2Seq.load([{ program, weights }], kernel);
  const { memory, state: first } = model.prepare(ids, ids);
  if (previous.length === 0) return memory.map(({ shape, data }) => ({ shape, data: list(data) }));
  let state = first;
  return previous.map((id) => {
    const step = model.step(id, memory, state, force);
    state = step.state;
    return { logProbs: list(step.logProbs), weights: list(step.weights) };
  });
}

if (process.argv[3] === '--list') {
  process.stdout.write(`${JSON.stringify(lists)}\n`);
  process.exit();
}
for await (const line of createInterface({ input: process.stdin })) {
  let answer = null;
  try {
    const task = JSON.parse(line);
    answer = task.lists ? lists : stepsOf(task);
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
