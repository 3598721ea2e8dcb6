// Runs exported graphs; export/program.py describes their format. A tensor is {shape, data}, row-major: Float32Array,
// Int32Array, or Uint8Array for booleans. Tensors never change once they are made, so several may share their data.
const Seq2Seq = (() => {
  const TYPES = { float32: Float32Array, int64: Int32Array, int32: Int32Array, bool: Uint8Array };
  const typeNamed = (name) => {
    if (!(name in TYPES)) throw new Error(`unknown dtype: ${name}`);
    return TYPES[name];
  };
  const tensor = (shape, data) => ({ shape, data });
  const isTensor = (value) => value?.data !== undefined;
  const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);
  const filled = (shape, Type, value) => tensor(shape, new Type(sizeOf(shape)).fill(value));
  // An axis counted from the front. It may be in a list; `more`: axes that the result has beside those of x.
  function axisOf(x, axis, more = 0) {
    const [one, ...others] = [axis ?? 0].flat();
    if (others.length) throw new Error(`more than one axis: ${axis}`);
    return one < 0 ? one + x.shape.length + more : one;
  }

  function stridesOf(shape) {
    const strides = [];
    for (let axis = shape.length - 1, stride = 1; axis >= 0; stride *= shape[axis--]) strides[axis] = stride;
    return strides;
  }

  // Where the elements of a view lie.
  function offsetsOf(shape, strides, start = 0) {
    let offsets = Int32Array.of(start);
    shape.forEach((length, axis) => {
      const outer = offsets;
      offsets = new Int32Array(outer.length * length);
      for (let o = 0, at = 0; o < outer.length; o++) {
        for (let i = 0; i < length; i++) offsets[at++] = outer[o] + i * strides[axis];
      }
    });
    return offsets;
  }

  function take(x, shape, offsets) {
    const data = new x.data.constructor(offsets.length);
    for (let i = 0; i < data.length; i++) data[i] = x.data[offsets[i]];
    return tensor(shape, data);
  }
  const view = (x, shape, strides, start) => take(x, shape, offsetsOf(shape, strides, start));
  // A copy with other values at some offsets: `values` is a tensor, or a number for all.
  function put(x, offsets, values, merge = (_, value) => value) {
    const data = x.data.slice();
    offsets.forEach((offset, i) => (data[offset] = merge(data[offset], isTensor(values) ? values.data[i] : values)));
    return tensor(x.shape, data);
  }

  // ---- elementwise operations
  // Repeats axes of length 1, from the last to the first, a block at a time.
  function expand(x, wanted) {
    const added = wanted.length - x.shape.length;
    const shape = wanted.map((length, axis) => (length === -1 ? x.shape[axis - added] : length));
    let { data } = x;
    for (let axis = shape.length - 1, block = 1; data.length < sizeOf(shape); block *= shape[axis--]) {
      const length = shape[axis];
      if ((x.shape[axis - added] ?? 1) === length) continue;
      const repeated = new data.constructor(data.length * length);
      for (let from = 0, at = 0; from < data.length; from += block) {
        const part = block > 1 && data.subarray(from, from + block);
        if (!part) repeated.fill(data[from], at, (at += length));
        else for (let i = 0; i < length; i++, at += block) repeated.set(part, at);
      }
      data = repeated;
    }
    return tensor(shape, data);
  }

  function broadcastShape(shapes) {
    const longest = shapes.reduce((a, b) => (b.length > a.length ? b : a));
    return longest.map((_, axis) => {
      const lengths = shapes.map((shape) => shape[axis - longest.length + shape.length] ?? 1);
      return lengths.find((length) => length !== 1) ?? 1;
    });
  }

  function typeOf(value) {
    if (isTensor(value)) return value.data.constructor;
    if (typeof value === 'boolean') return Uint8Array;
    return Number.isInteger(value) ? Int32Array : Float32Array;
  }
  function promote(...values) {
    const types = values.map(typeOf);
    return [Float32Array, Int32Array, Uint8Array].find((Type) => types.includes(Type));
  }

  // A loop over the elements of tensors and numbers, with broadcasting.
  function elementwise(loop, Type, values) {
    const shapes = values.filter(isTensor).map((x) => x.shape);
    const shape = shapes.length === 1 ? shapes[0] : broadcastShape(shapes);
    const out = new (Type ?? promote(...values))(sizeOf(shape));
    loop(out, ...values.map((x) => (isTensor(x) ? expand(x, shape).data : new Float32Array(out.length).fill(x))));
    return tensor(shape, out);
  }
  // A function of each element; numbers alone make a number.
  function map(apply, Type, ...values) {
    if (!values.some(isTensor)) return apply(...values);
    return elementwise((out, a, b, c) => {
      for (let i = 0; i < out.length; i++) out[i] = apply(a[i], b?.[i], c?.[i]);
    }, Type, values);
  }
  // The most frequent functions have loops of their own, which engines compile to a few instructions.
  const binary = (apply, loop) => (a, b) => (isTensor(a) || isTensor(b) ? elementwise(loop, null, [a, b]) : apply(a, b));
  const add = binary((x, y) => x + y, (out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = x[i] + y[i];
  });
  const mul = binary((x, y) => x * y, (out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = x[i] * y[i];
  });
  const tanh = (a) => elementwise((out, x) => {
    for (let i = 0; i < out.length; i++) out[i] = 1 - 2 / (Math.exp(2 * x[i]) + 1);
  }, Float32Array, [a]);
  const sigmoid = (a) => elementwise((out, x) => {
    for (let i = 0; i < out.length; i++) out[i] = 1 / (1 + Math.exp(-x[i]));
  }, Float32Array, [a]);
  const lerp = (a, b, weight) => elementwise((out, x, y, w) => {
    for (let i = 0; i < out.length; i++) out[i] = x[i] + w[i] * (y[i] - x[i]);
  }, null, [a, b, weight]);
  const where = (condition, a, b) => map((is, x, y) => (is ? x : y), promote(a, b), condition, a, b);
  const logAddExp = (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));

  // ---- products
  // Kernels (kernel.wat) by the memory in which their weights lie, and the rows that one multiplies at once.
  const kernels = new WeakMap();
  const ROWS = 8;

  // y[r, o] = sum over i of x[r, i] w[o, i], for all rows r of x.
  function multiply(x, w, y, width) {
    for (let from = 0, to = 0; from < x.length; from += width) {
      for (let at = 0; at < w.length; to++) {
        let sum = 0;
        for (let i = from; i < from + width; i++) sum += x[i] * w[at++];
        y[to] = sum;
      }
    }
  }

  // x W^T + bias for each row of x. Most of the time of a model is here.
  function linear(x, weight, bias) {
    const [numOut, width] = weight.shape;
    const out = filled([...x.shape.slice(0, -1), numOut], Float32Array, 0);
    const kernel = numOut >= 4 && width % 4 === 0 && kernels.get(weight.data.buffer);
    (kernel || multiply)(x.data, weight.data, out.data, width);
    return bias ? add(out, bias) : out;
  }

  function bmm(a, b) {
    const [batch, rows, inner] = a.shape;
    const columns = b.shape[2];
    const out = filled([batch, rows, columns], Float32Array, 0);
    const sums = new Float64Array(columns);
    for (let row = 0; row < batch * rows; row++) {
      sums.fill(0);
      for (let k = 0, at = Math.floor(row / rows) * inner * columns; k < inner; k++, at += columns) {
        const value = a.data[row * inner + k];
        for (let j = 0; j < columns; j++) sums[j] += value * b.data[at + j];
      }
      out.data.set(sums, row * columns);
    }
    return out;
  }

  function matmul(a, b) {
    if (b.shape.length > 2) throw new Error(`matmul with a tensor of ${b.shape.length} axes`);
    const [shape, rows] = [a.shape.slice(0, -1), sizeOf(a.shape.slice(0, -1))];
    const [inner, columns] = b.shape;
    const flat = tensor([rows, inner], a.data);
    if (columns === undefined) return tensor(shape, linear(tensor([1, inner], b.data), flat).data);
    return tensor([...shape, columns], bmm(unsqueeze(flat, 0), unsqueeze(b, 0)).data);
  }

  function einsum(equation, operands) {
    const [names, result] = equation.replaceAll(' ', '').split('->');
    const letters = names.split(',');
    const axes = letters.flatMap((one, k) => [...one].map((letter, axis) => [letter, operands[k].shape[axis]]));
    const lengths = Object.fromEntries(axes);
    const order = [...result, ...Object.keys(lengths).filter((letter) => !result.includes(letter))];
    const shape = order.map((letter) => lengths[letter]);
    const offsets = operands.map((x, k) => {
      const strides = stridesOf(x.shape);
      return offsetsOf(shape, order.map((letter) => strides[letters[k].indexOf(letter)] ?? 0));
    });
    const out = filled(shape.slice(0, result.length), Float64Array, 0);
    const numTerms = sizeOf(shape.slice(result.length));
    for (let i = 0; i < offsets[0].length; i++) {
      out.data[Math.floor(i / numTerms)] += operands.reduce((value, x, k) => value * x.data[offsets[k][i]], 1);
    }
    return tensor(out.shape, new Float32Array(out.data));
  }

  // ---- along an axis
  // The numbers that a function makes of each line of numbers along an axis.
  function along(x, axis, make, Type = Float32Array) {
    const [at, last] = [axisOf(x, axis), x.shape.length - 1];
    const moved = transpose(x, at, last);
    const length = x.shape[at];
    const made = Array.from({ length: x.data.length / length }, (_, i) =>
      make(new Float64Array(moved.data.subarray(i * length, (i + 1) * length))));
    const out = filled(moved.shape.with(last, made[0].length), Type, 0);
    made.forEach((line, i) => out.data.set(line, i * line.length));
    return transpose(out, at, last);
  }

  function reduce(x, axis, keep, make, Type) {
    const out = along(x, axis, (line) => [make(line)], Type);
    return keep ? out : squeeze(out, axisOf(x, axis));
  }
  const wholeType = (x) => (x.data instanceof Float32Array ? Float32Array : Int32Array);
  const sumOf = (line) => line.reduce((a, b) => a + b, 0);
  function maxOf(line) {
    let max = -Infinity;
    for (let i = 0; i < line.length; i++) max = Math.max(max, line[i]);
    return max;
  }
  const minOf = (line) => line.reduce((a, b) => Math.min(a, b), Infinity);
  const logSumExp = (line) => {
    const max = maxOf(line);
    let sum = 0;
    for (let i = 0; i < line.length; i++) sum += Math.exp(line[i] - max);
    return max === -Infinity ? max : max + Math.log(sum);
  };
  const logSoftmaxOf = (line) => {
    const total = logSumExp(line);
    for (let i = 0; i < line.length; i++) line[i] -= total;
    return line;
  };
  const softmax = (x, axis) => along(x, axis, (line) => logSoftmaxOf(line).map(Math.exp));

  function cumulate(line) {
    let sum = 0;
    return line.map((value) => (sum += value));
  }

  function sort(x, axis, isDescending) {
    const sign = isDescending ? -1 : 1;
    const compare = (line) => [...line.keys()].toSorted((i, j) => sign * (line[i] - line[j]));
    const order = along(x, axis ?? -1, compare, Int32Array);
    return [gather(x, axis ?? -1, order), order];
  }

  function layerNorm(x, lengths, weight, bias, epsilon) {
    const normal = along(reshape(x, [-1, sizeOf(lengths)]), 1, (line) => {
      const mean = sumOf(line) / line.length;
      const variance = sumOf(line.map((value) => (value - mean) ** 2)) / line.length;
      return line.map((value) => (value - mean) / Math.sqrt(variance + (epsilon ?? 1e-5)));
    });
    const scaled = mul(tensor(x.shape, normal.data), weight ?? 1);
    return bias ? add(scaled, bias) : scaled;
  }

  // ---- shapes and indices
  function reshape(x, wanted) {
    const rest = x.data.length / Math.abs(sizeOf(wanted));
    return tensor(wanted.map((length) => (length === -1 ? rest : length)), x.data);
  }
  const unsqueeze = (x, axis) => tensor(x.shape.toSpliced(axisOf(x, axis, 1), 0, 1), x.data);
  const squeeze = (x, axis) => (x.shape.at(axis) === 1 ? tensor(x.shape.toSpliced(axis, 1), x.data) : x);
  function permute(x, axes) {
    const strides = stridesOf(x.shape);
    return view(x, axes.map((axis) => x.shape.at(axis)), axes.map((axis) => strides.at(axis)));
  }

  function transpose(x, first, second) {
    const [a, b] = [axisOf(x, first), axisOf(x, second)];
    return a === b ? x : permute(x, x.shape.map((_, axis) => axis).with(a, b).with(b, a));
  }

  // The shape, strides and start of a slice; negative positions count from the end.
  function section(x, axis, from, to, step) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    const length = x.shape[at];
    const [start, end] = [from ?? 0, to ?? length].map((position) =>
      Math.max(0, Math.min(position < 0 ? position + length : position, length)));
    const shape = x.shape.with(at, Math.max(0, Math.ceil((end - start) / (step ?? 1))));
    return [shape, strides.with(at, strides[at] * (step ?? 1)), start * strides[at]];
  }
  function slice(x, axis, from, to, step) {
    const [shape, strides, start] = section(x, axis, from, to, step);
    if ((step ?? 1) !== 1) return view(x, shape, strides, start);
    const [block, length] = [shape, x.shape].map((each) => sizeOf(each.slice(axisOf(x, axis))));
    if (length === x.data.length) return tensor(shape, x.data.subarray(start, start + block));
    const out = new x.data.constructor(sizeOf(shape));
    for (let at = 0, begin = start; at < out.length; at += block, begin += length) out.set(x.data.subarray(begin, begin + block), at);
    return tensor(shape, out);
  }
  const sliceScatter = (x, part, ...bounds) => put(x, offsetsOf(...section(x, ...bounds)), part);
  const endOf = (index) => (index === -1 ? null : index + 1);
  const select = (x, axis, index) => squeeze(slice(x, axis, index, endOf(index)), axisOf(x, axis));
  const selectScatter = (x, part, axis, index) => sliceScatter(x, part, axis, index, endOf(index));

  function unfold(x, axis, length, step) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    const shape = x.shape.with(at, Math.floor((x.shape[at] - length) / step) + 1);
    return view(x, [...shape, length], [...strides.with(at, strides[at] * step), strides[at]]);
  }

  function split(x, lengths, axis) {
    const total = x.shape.at(axis ?? 0);
    const list = Array.isArray(lengths) ? lengths : Array.from({ length: Math.ceil(total / lengths) }, () => lengths);
    let from = 0;
    return list.map((length) => slice(x, axis, from, (from += length)));
  }

  function cat(parts, axis) {
    const at = axisOf(parts[0], axis);
    const out = filled(parts[0].shape.with(at, sumOf(parts.map((part) => part.shape[at]))), promote(...parts), 0);
    const whole = sizeOf(out.shape.slice(at));
    let start = 0;
    for (const { data, shape } of parts) {
      const block = sizeOf(shape.slice(at));
      for (let from = 0, to = start; from < data.length; from += block, to += whole) out.data.set(data.subarray(from, from + block), to);
      start += block;
    }
    return out;
  }
  const stack = (parts, axis) => cat(parts.map((part) => unsqueeze(part, axis ?? 0)), axisOf(parts[0], axis, 1));

  // `lengths`: before and after, in pairs, from the last axis.
  function pad(x, lengths, mode, value) {
    if ((mode ?? 'constant') !== 'constant') throw new Error(`unknown mode of pad: ${mode}`);
    const added = (axis, side) => lengths[2 * (x.shape.length - 1 - axis) + side] ?? 0;
    const shape = x.shape.map((length, axis) => added(axis, 0) + length + added(axis, 1));
    const strides = stridesOf(shape);
    const start = sumOf(strides.map((stride, axis) => stride * added(axis, 0)));
    return put(filled(shape, x.data.constructor, value ?? 0), offsetsOf(x.shape, strides, start), x);
  }

  // Where the elements lie that an index, with as many axes, names along one axis.
  function indexed(x, axis, index) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    return offsetsOf(index.shape, strides.with(at, 0)).map((offset, i) => offset + index.data[i] * strides[at]);
  }
  const gather = (x, axis, index) => take(x, index.shape, indexed(x, axis, index));

  // The parts of a tensor whose first axes are indexed by tensors.
  function lookUp(x, indices) {
    const shape = broadcastShape(indices.map((index) => index.shape));
    const [rest, strides] = [x.shape.slice(indices.length), stridesOf(x.shape)];
    const starts = indices.map((index, axis) => mul(expand(index, shape), strides[axis])).reduce(add).data;
    const out = filled([...shape, ...rest], x.data.constructor, 0);
    starts.forEach((start, i) => out.data.set(x.data.subarray(start, start + sizeOf(rest)), i * sizeOf(rest)));
    return out;
  }

  // ---- layers
  function conv1d(x, weight, bias, stride, padding) {
    const patches = unfold(pad(x, [padding?.[0] ?? 0, padding?.[0] ?? 0]), 2, weight.shape[2], stride?.[0] ?? 1);
    const out = einsum('bclk,ock->bol', [patches, weight]);
    return bias ? add(out, unsqueeze(bias, 1)) : out;
  }

  function attend(query, key, value, mask) {
    const scores = mul(einsum('bnqd,bnkd->bnqk', [query, key]), 1 / Math.sqrt(query.shape.at(-1)));
    const masked = mask?.data instanceof Uint8Array ? where(mask, scores, -Infinity) : add(scores, mask ?? 0);
    return einsum('bnqk,bnkd->bnqd', [softmax(masked, -1), value]);
  }

  function gruCell(x, hidden, inputWeight, hiddenWeight, inputBias, hiddenBias) {
    const inputs = split(linear(x, inputWeight, inputBias), hidden.shape[1], 1);
    const states = split(linear(hidden, hiddenWeight, hiddenBias), hidden.shape[1], 1);
    const [reset, update] = [0, 1].map((gate) => sigmoid(add(inputs[gate], states[gate])));
    return lerp(tanh(add(inputs[2], mul(reset, states[2]))), hidden, update);
  }

  // Run a graph for each element along the first axis: the tensors that it hands on, then those that it makes, stacked.
  function scan(body, carried, elements, others) {
    const steps = [{ next: carried }];
    for (let i = 0; i < elements[0].shape[0]; i++) {
      const outputs = evaluate(body, [...steps[i].next, ...elements.map((x) => select(x, 0, i)), ...others]);
      steps.push({ next: outputs.slice(0, carried.length), made: outputs.slice(carried.length) });
    }
    return [...steps.at(-1).next, ...steps[1].made.map((_, k) => stack(steps.slice(1).map((step) => step.made[k])))];
  }

  function arange(start, end, step, dtype) {
    const Type = dtype ? typeNamed(dtype) : promote(start, end, step);
    const data = new Type(Math.max(0, Math.ceil((end - start) / step))).map((_, i) => start + i * step);
    return tensor([data.length], data);
  }

  // ---- operations by name; each accepts as many arguments as it lists
  const OPERATIONS = {
    add, 'add.Tensor': add, mul, 'mul.Tensor': mul, 'lerp.Tensor': lerp, tanh, sigmoid,
    clone: (x) => x, detach: (x) => x,
    floordiv: (a, b) => Math.floor(a / b),
    'sub.Tensor': (a, b) => map((x, y) => x - y, null, a, b),
    'rsub.Scalar': (a, b) => map((x, y) => y - x, null, a, b),
    'div.Tensor': (a, b) => map((x, y) => x / y, Float32Array, a, b),
    logaddexp: (a, b) => map(logAddExp, Float32Array, a, b),
    '__and__.Tensor': (a, b) => map((x, y) => x & y, null, a, b),
    '__or__.Tensor': (a, b) => map((x, y) => x | y, null, a, b),
    abs: (x) => map(Math.abs, null, x),
    neg: (x) => map((value) => -value, null, x),
    square: (x) => mul(x, x),
    relu: (x) => map((value) => Math.max(value, 0), null, x),
    log_sigmoid: (x) => map((value) => -logAddExp(0, -value), Float32Array, x),
    bitwise_not: (x) => map(x.data instanceof Uint8Array ? (is) => 1 - is : (bits) => ~bits, null, x),
    clamp: (x, low, high) => map((value) => Math.min(Math.max(value, low ?? -Infinity), high ?? Infinity), null, x),
    clamp_min: (x, low) => map((value) => Math.max(value, low), null, x),
    'masked_fill.Scalar': (x, mask, value) => where(mask, value, x),
    'where.self': where, 'where.ScalarOther': where, 'where.ScalarSelf': where,
    _to_copy: (x, dtype) => map(dtype === 'bool' ? Boolean : Number, typeNamed(dtype), x),

    linear, bmm, mm: matmul, matmul, einsum, conv1d, gru_cell: gruCell, scan, scaled_dot_product_attention: attend,
    addmm: (bias, a, b) => add(matmul(a, b), bias),
    'sum.dim_IntList': (x, axis, keep) => reduce(x, axis, keep, sumOf, wholeType(x)),
    'mean.dim': (x, axis, keep) => reduce(x, axis, keep, (line) => sumOf(line) / line.length),
    amax: (x, axis, keep) => reduce(x, axis, keep, maxOf, x.data.constructor),
    amin: (x, axis, keep) => reduce(x, axis, keep, minOf, x.data.constructor),
    'any.dim': (x, axis, keep) => reduce(x, axis, keep, maxOf, Uint8Array),
    argmax: (x, axis, keep) => reduce(x, axis, keep, (line) => line.indexOf(maxOf(line)), Int32Array),
    logsumexp: (x, axis, keep) => reduce(x, axis, keep, logSumExp),
    linalg_vector_norm: (x, order, axis, keep) =>
      reduce(x, axis, keep, (line) => sumOf(line.map((value) => Math.abs(value) ** order)) ** (1 / order)),
    'softmax.int': softmax,
    'log_softmax.int': (x, axis) => along(x, axis, logSoftmaxOf),
    cumsum: (x, axis) => along(x, axis, cumulate, wholeType(x)),
    layer_norm: layerNorm, sort,

    view: reshape, _unsafe_view: reshape, expand, permute, unsqueeze, unfold, cat, stack, pad, gather,
    'squeeze.dim': (x, axis) => squeeze(x, axisOf(x, axis)),
    'transpose.int': transpose, 'slice.Tensor': slice, 'select.int': select, select_scatter: selectScatter,
    slice_scatter: (x, part, axis, from, to, step) => sliceScatter(x, part, axis, from, to, step),
    'split.Tensor': split, split_with_sizes: split, 'index.Tensor': lookUp,
    embedding: (weight, ids) => lookUp(weight, [ids]),
    'scatter.value': (x, axis, index, value) => put(x, indexed(x, axis, index), value),
    scatter_add: (x, axis, index, values) => put(x, indexed(x, axis, index), values, (a, b) => a + b),
    getitem: (list, index) => list[index],
    'sym_size.int': (x, axis) => x.shape.at(axis),

    arange: (end, dtype) => arange(0, end, 1, dtype),
    'arange.start': (start, end, dtype) => arange(start, end, 1, dtype),
    'arange.start_step': arange,
    new_full: (x, shape, value, dtype) => filled(shape, dtype ? typeNamed(dtype) : x.data.constructor, value),
    'fill.Tensor': (x, value) => filled(x.shape, x.data.constructor, value.data[0]),
  };
  for (const name of ['exp', 'log', 'log1p', 'sqrt', 'sin', 'cos']) {
    OPERATIONS[name] = (x) => map(Math[name], Float32Array, x);
  }
  const COMPARISONS = { eq: (a, b) => a === b, ne: (a, b) => a !== b, lt: (a, b) => a < b, le: (a, b) => a <= b };
  Object.assign(COMPARISONS, { gt: (a, b) => a > b, ge: (a, b) => a >= b });
  for (const [name, compare] of Object.entries(COMPARISONS)) {
    OPERATIONS[`${name}.Tensor`] = OPERATIONS[`${name}.Scalar`] = (a, b) => map(compare, Uint8Array, a, b);
  }
  for (const [name, value] of [['zeros', 0], ['ones', 1]]) {
    OPERATIONS[name] = (shape, dtype) => filled(shape, typeNamed(dtype ?? 'float32'), value);
    OPERATIONS[`new_${name}`] = (x, shape, dtype) => OPERATIONS.new_full(x, shape, value, dtype);
    OPERATIONS[`${name}_like`] = (x, dtype) => OPERATIONS.new_full(x, x.shape, value, dtype);
  }

  // ---- graphs
  const NUMBERS = { inf: Infinity, '-inf': -Infinity, nan: NaN };

  // The outputs of a graph. `forced`: the name of a node, and the value to use instead of its own.
  function evaluate(graph, inputs, weights, forced) {
    const values = new Map(graph.inputs.map((name, i) => [name, inputs[i]]));
    const valueOf = (name) => values.get(name) ?? weights?.get(name) ?? NUMBERS[name];
    const resolve = (argument) => {
      if (Array.isArray(argument)) return argument.map(resolve);
      return argument?.$ === undefined ? argument : valueOf(argument.$);
    };
    for (const [operation, name, passed] of graph.nodes) {
      const run = OPERATIONS[operation];
      if (!run) throw new Error(`unknown operation: ${operation}`);
      if (passed.length > run.length) throw new Error(`${operation}: unknown argument ${passed[run.length]}`);
      values.set(name, name === forced?.name ? forced.value : run(...passed.map(resolve)));
    }
    return graph.outputs.map(valueOf);
  }

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes;
  }

  // The number of each of the 65,536 patterns of float16.
  const halves = () => new Float32Array(65536).map((_, bits) => {
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const normal = exponent < 31 ? (1024 + fraction) * 2 ** (exponent - 25) : fraction ? NaN : Infinity;
    return (exponent ? normal : fraction * 2 ** -24) * (bits >> 15 ? -1 : 1);
  });

  // Makes room for floating-point weights in the memory of a kernel, behind space for some rows and their products.
  function kernelMemory(bytes, entries) {
    const longest = 4 * Math.ceil(Math.max(4, ...entries.flatMap(({ shape }) => shape)) / 4);
    let used = 8 * longest * ROWS;
    const size = used + 4 * sumOf(entries.map(({ shape }) => sizeOf(shape)));
    const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 65536) });
    const { multiply: run } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { '': { memory } }).exports;
    const [input, output] = [0, 1].map((part) => new Float32Array(memory.buffer, 4 * longest * ROWS * part, longest * ROWS));
    kernels.set(memory.buffer, (x, w, y, width) => {
      const numOut = w.length / width;
      for (let row = 0; row * width < x.length; row += ROWS) {
        const rows = x.subarray(row * width, (row + ROWS) * width);
        input.set(rows);
        run(input.byteOffset, w.byteOffset, output.byteOffset, numOut, 4 * width, rows.length / width);
        y.set(output.subarray(0, (rows.length / width) * numOut), row * numOut);
      }
    });
    return (length) => new Float32Array(memory.buffer, (used += 4 * length) - 4 * length, length);
  }

  // The weights by name, from their bytes side by side. A matrix in int8 is followed by a scale for each row.
  function weightsOf(entries, bytes, kernel) {
    const room = kernel ? kernelMemory(kernel, entries) : (length) => new Float32Array(length);
    const [weights, numbers] = [new Map(), halves()];
    let start = 0;
    const read = (Type, length) => new Type(bytes.slice(start, (start += length * Type.BYTES_PER_ELEMENT)).buffer);
    for (const { name, shape, dtype } of entries) {
      const length = sizeOf(shape);
      const isWhole = ['int32', 'bool'].includes(dtype);
      const data = isWhole ? read(typeNamed(dtype), length) : room(length);
      if (dtype === 'float32') data.set(read(Float32Array, length));
      if (dtype === 'float16') {
        const stored = read(Uint16Array, length);
        for (let i = 0; i < length; i++) data[i] = numbers[stored[i]];
      }
      if (dtype === 'int8') {
        const [stored, scales] = [read(Int8Array, length), read(Float32Array, shape[0])];
        for (let i = 0; i < length; i++) data[i] = stored[i] * scales[Math.floor(i / shape[1])];
      }
      weights.set(name, tensor(shape, data));
    }
    return weights;
  }

  // A model. `prepare` takes the ids of a sentence, EOS included, or of several, padded to one length, and
  // if the output copies those of the extended target vocabulary; `step` the id of
  // the token before, BOS at first, or that of each sentence. Log-probabilities and attention weights of several
  // sentences lie one after another. `force`: {weights} to use instead of the graph's attention weights, which changes
  // nothing where no context is made of them (no attention, several heads). `rows` picks sentences of memory or
  // state, some perhaps twice. `kernelBase64`: kernel.wasm, if products are to be made by it.
  function load(program, weightsBase64, kernelBase64) {
    const weights = weightsOf(program.weights, bytesOf(weightsBase64), kernelBase64 && bytesOf(kernelBase64));
    const rowsOf = (rows) => tensor([rows.length, rows[0].length], Int32Array.from(rows.flat()));
    return {
      prepare(ids, extended = ids) {
        const inputs = [ids, extended].map((each) => rowsOf(Array.isArray(each[0]) ? each : [each]));
        const outputs = evaluate(program.prepare, inputs, weights);
        return { memory: outputs.slice(0, program.memory.length), state: outputs.slice(program.memory.length) };
      },
      step(id, memory, state, force) {
        const ids = reshape(rowsOf([[id].flat()]), [-1]);
        const value = force && reshape(tensor([], Float32Array.from(force.weights)), [ids.shape[0], -1]);
        const forced = force && { name: program.step.outputs[1], value };
        const [logProbs, attention, ...next] = evaluate(program.step, [ids, ...memory, ...state], weights, forced);
        return { logProbs: logProbs.data, weights: attention.data, state: next };
      },
      rows: (tensors, numbers) => tensors.map((x) => lookUp(x, [tensor([numbers.length], Int32Array.from(numbers))])),
    };
  }

  return { load };
})();
