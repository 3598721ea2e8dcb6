// Runs exported graphs. A tensor is {shape, data}: Float32Array, Int32Array, or Uint8Array for booleans; row-major, and
// never changed once made, so that reshaped tensors share their data. export/program.py describes the format of graphs.
const Seq2Seq = (() => {
  const TYPES = { float32: Float32Array, int64: Int32Array, int32: Int32Array, bool: Uint8Array };
  const typeNamed = (name) => {
    if (!(name in TYPES)) throw new Error(`unknown dtype: ${name}`);
    return TYPES[name];
  };
  const tensor = (shape, data) => ({ shape, data });
  const isTensor = (value) => value?.data !== undefined;
  const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);
  const axisOf = (x, axis, extra = 0) => (axis < 0 ? axis + x.shape.length + extra : axis);
  const filled = (shape, Type, value) => tensor(shape, new Type(sizeOf(shape)).fill(value));
  const replaced = (list, index, ...items) => list.toSpliced(index, 1, ...items);

  function stridesOf(shape) {
    const strides = [];
    for (let axis = shape.length - 1, stride = 1; axis >= 0; stride *= shape[axis--]) strides[axis] = stride;
    return strides;
  }

  // Where each element lies, for any strides.
  function offsetsOf(shape, strides, start = 0) {
    const offsets = new Int32Array(sizeOf(shape));
    const last = shape.length - 1;
    let count = 0;
    const walk = (axis, from) => {
      const stride = strides[axis];
      for (let i = 0, at = from; i < shape[axis]; i++, at += stride) {
        if (axis === last) offsets[count++] = at;
        else walk(axis + 1, at);
      }
    };
    if (last < 0) offsets[0] = start;
    else walk(0, start);
    return offsets;
  }

  function take(data, shape, offsets) {
    const out = new data.constructor(offsets.length);
    for (let i = 0; i < out.length; i++) out[i] = data[offsets[i]];
    return tensor(shape, out);
  }
  const view = (x, shape, strides, start) => take(x.data, shape, offsetsOf(shape, strides, start));

  // Write a tensor into data of which it covers a part.
  function put(data, offsets, values) {
    for (let i = 0; i < offsets.length; i++) data[offsets[i]] = values[i];
  }

  // ---- elementwise

  function broadcastShape(tensors) {
    const shape = Array.from({ length: Math.max(...tensors.map((x) => x.shape.length)) }, () => 1);
    for (const x of tensors) {
      const skipped = shape.length - x.shape.length;
      x.shape.forEach((length, axis) => {
        if (length !== 1) shape[skipped + axis] = length;
      });
    }
    return shape;
  }

  function expand(x, wanted) {
    const skipped = wanted.length - x.shape.length;
    const shape = wanted.map((length, axis) => (length === -1 ? x.shape[axis - skipped] : length));
    if (sizeOf(shape) === x.data.length) return tensor(shape, x.data);
    const strides = stridesOf(x.shape);
    return view(x, shape, shape.map((_, axis) => (axis < skipped || x.shape[axis - skipped] === 1 ? 0 : strides[axis - skipped])));
  }

  function promote(...values) {
    const types = values.map((x) => (isTensor(x) ? x.data.constructor : Number.isInteger(x) ? Int32Array : Float32Array));
    return [Float32Array, Int32Array, Uint8Array].find((Type) => types.includes(Type));
  }

  // Apply a function to each element of tensors and numbers, with broadcasting; numbers alone make a number.
  function map(apply, Type, ...values) {
    const tensors = values.filter(isTensor);
    if (!tensors.length) return apply(...values);
    const shape = tensors.length === 1 ? tensors[0].shape : broadcastShape(tensors);
    const out = new (Type ?? promote(...values))(sizeOf(shape));
    const [a, b, c] = values.map((x) => (isTensor(x) ? expand(x, shape).data : new Float32Array(out.length).fill(x)));
    if (c) for (let i = 0; i < out.length; i++) out[i] = apply(a[i], b[i], c[i]);
    else if (b) for (let i = 0; i < out.length; i++) out[i] = apply(a[i], b[i]);
    else for (let i = 0; i < out.length; i++) out[i] = apply(a[i]);
    return tensor(shape, out);
  }
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const logAddExp = (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));
  const choose = (condition, a, b) => map((is, x, y) => (is ? x : y), promote(a, b), condition, a, b);

  // ---- products

  // y[r, o] = sum over i of x[r, i] weight[o, i], + bias[o]. Nearly all time is here: four rows of the weight at once.
  function multiply(x, weight, bias, width) {
    const [numRows, numOut] = [x.length / width, weight.length / width];
    if (numOut < 4 && numRows > numOut && !bias) return transposed(multiply(weight, x, null, width), numOut, numRows);
    const wide = new Float64Array(x);
    const out = new Float32Array(numRows * numOut);
    let o = 0;
    for (; o + 3 < numOut; o += 4) {
      const [w0, w1, w2, w3] = [o * width, (o + 1) * width, (o + 2) * width, (o + 3) * width];
      for (let r = 0; r < numRows; r++) {
        const at = r * numOut + o;
        let a = 0;
        let b = 0;
        let c = 0;
        let d = 0;
        for (let i = 0; i < width; i++) {
          const value = wide[r * width + i];
          a += value * weight[w0 + i];
          b += value * weight[w1 + i];
          c += value * weight[w2 + i];
          d += value * weight[w3 + i];
        }
        out[at] = a;
        out[at + 1] = b;
        out[at + 2] = c;
        out[at + 3] = d;
      }
    }
    for (; o < numOut; o++) {
      for (let r = 0; r < numRows; r++) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += wide[r * width + i] * weight[o * width + i];
        out[r * numOut + o] = sum;
      }
    }
    if (bias) for (let at = 0; at < out.length; at++) out[at] += bias[at % numOut];
    return out;
  }
  const transposed = (data, rows, columns) => view(tensor([rows, columns], data), [columns, rows], [1, columns]).data;

  function linear(x, weight, bias) {
    const data = multiply(x.data, weight.data, bias?.data, x.shape.at(-1));
    return tensor([...x.shape.slice(0, -1), weight.shape[0]], data);
  }

  function bmm(a, b) {
    const [batch, rows, inner] = a.shape;
    const columns = b.shape[2];
    const [out, sums] = [new Float32Array(batch * rows * columns), new Float64Array(columns)];
    for (let row = 0; row < batch * rows; row++) {
      sums.fill(0);
      for (let k = 0, at = Math.floor(row / rows) * inner * columns; k < inner; k++, at += columns) {
        const value = a.data[row * inner + k];
        for (let j = 0; j < columns; j++) sums[j] += value * b.data[at + j];
      }
      out.set(sums, row * columns);
    }
    return tensor([batch, rows, columns], out);
  }

  function matmul(a, b) {
    if (b.shape.length === 1) return tensor(a.shape.slice(0, -1), multiply(a.data, b.data, null, b.shape[0]));
    if (b.shape.length > 2) throw new Error(`matmul with ${b.shape.length} dimensions`);
    const flat = tensor([1, a.data.length / b.shape[0], b.shape[0]], a.data);
    return tensor([...a.shape.slice(0, -1), b.shape[1]], bmm(flat, tensor([1, ...b.shape], b.data)).data);
  }

  function einsum(equation, operands) {
    const [names, result] = equation.replaceAll(' ', '').split('->');
    const lengths = {};
    names.split(',').forEach((letters, k) => [...letters].forEach((letter, axis) => (lengths[letter] = operands[k].shape[axis])));
    const summed = Object.keys(lengths).filter((letter) => !result.includes(letter));
    const order = [...result, ...summed];
    const shape = order.map((letter) => lengths[letter]);
    const offsets = names.split(',').map((letters, k) => {
      const strides = stridesOf(operands[k].shape);
      return offsetsOf(shape, order.map((letter) => (letters.includes(letter) ? strides[letters.indexOf(letter)] : 0)));
    });
    const product = (i) => operands.reduce((value, x, k) => value * x.data[offsets[k][i]], 1);
    const terms = sizeOf(summed.map((letter) => lengths[letter]));
    const out = filled(shape.slice(0, result.length), Float32Array, 0);
    for (let o = 0, i = 0; o < out.data.length; o++) {
      let sum = 0;
      for (let k = 0; k < terms; k++) sum += product(i++);
      out.data[o] = sum;
    }
    return out;
  }

  // ---- along an axis

  // Replace each line of numbers along an axis by the numbers that a function makes of it.
  function along(x, axis, make, Type = Float32Array) {
    const wanted = Array.isArray(axis) && axis.length === 1 ? axis[0] : axis;
    if (!Number.isInteger(wanted)) throw new Error(`not one axis: ${axis}`);
    const [at, strides] = [axisOf(x, wanted), stridesOf(x.shape)];
    const starts = offsetsOf(replaced(x.shape, at), replaced(strides, at));
    const line = new Float64Array(x.shape[at]);
    let out = null;
    starts.forEach((start, count) => {
      for (let k = 0; k < line.length; k++) line[k] = x.data[start + k * strides[at]];
      const made = make(line);
      out ??= filled(replaced(x.shape, at, made.length), Type, 0);
      const inner = strides[at];
      const from = Math.floor(count / inner) * inner * made.length + (count % inner);
      for (let k = 0; k < made.length; k++) out.data[from + k * inner] = made[k];
    });
    return out;
  }

  function reduce(x, axis, keep, make, Type) {
    const out = along(x, axis, (line) => [make(line)], Type);
    return keep ? out : squeeze(out, [axis].flat()[0]);
  }
  const sumOf = (line) => line.reduce((sum, value) => sum + value, 0);
  const maxOf = (line) => line.reduce((a, b) => Math.max(a, b), -Infinity);
  const minOf = (line) => line.reduce((a, b) => Math.min(a, b), Infinity);
  const logSumExp = (line) => {
    const max = maxOf(line);
    return max === -Infinity ? max : max + Math.log(line.reduce((sum, value) => sum + Math.exp(value - max), 0));
  };
  const softmax = (x, axis) => along(x, axis, (line) => {
    const total = logSumExp(line);
    return line.map((value) => Math.exp(value - total));
  });
  const logSoftmax = (x, axis) => along(x, axis, (line) => {
    const total = logSumExp(line);
    return line.map((value) => value - total);
  });
  const whole = (x) => (x.data instanceof Float32Array ? Float32Array : Int32Array);

  function sort(x, axis, isDescending) {
    const sign = isDescending ? -1 : 1;
    const order = along(x, axis ?? -1, (line) => [...line.keys()].toSorted((i, j) => sign * (line[i] - line[j])), Int32Array);
    return [gather(x, axis ?? -1, order), order];
  }

  function layerNorm(x, lengths, weight, bias, epsilon) {
    const flat = tensor([x.data.length / sizeOf(lengths), sizeOf(lengths)], x.data);
    const normal = along(flat, 1, (line) => {
      const mean = sumOf(line) / line.length;
      const variance = line.reduce((sum, value) => sum + (value - mean) ** 2, 0) / line.length;
      return line.map((value) => (value - mean) / Math.sqrt(variance + (epsilon ?? 1e-5)));
    });
    const scaled = weight ? map((a, b) => a * b, null, tensor(x.shape, normal.data), weight) : tensor(x.shape, normal.data);
    return bias ? map((a, b) => a + b, null, scaled, bias) : scaled;
  }

  // ---- shapes and indices

  function reshape(x, wanted) {
    const known = sizeOf(wanted.filter((length) => length !== -1));
    return tensor(wanted.map((length) => (length === -1 ? x.data.length / known : length)), x.data);
  }
  const unsqueeze = (x, axis) => tensor(x.shape.toSpliced(axisOf(x, axis, 1), 0, 1), x.data);
  const squeeze = (x, axis) => (x.shape.at(axis) === 1 ? tensor(replaced(x.shape, axisOf(x, axis)), x.data) : x);
  const permute = (x, axes) => view(x, axes.map((axis) => x.shape.at(axis)), axes.map((axis) => stridesOf(x.shape).at(axis)));

  function transpose(x, first, second) {
    const axes = x.shape.map((_, axis) => axis);
    const [a, b] = [axisOf(x, first), axisOf(x, second)];
    return permute(x, axes.with(a, b).with(b, a));
  }

  // The shape, strides and start of a slice; negative ends count from the back.
  function section(x, axis, from, to, step) {
    const at = axisOf(x, axis ?? 0);
    const [strides, length] = [stridesOf(x.shape), x.shape[at]];
    const bound = (value) => Math.max(0, Math.min(value < 0 ? value + length : value, length));
    const [start, end] = [bound(from ?? 0), bound(to ?? length)];
    const shape = x.shape.with(at, Math.max(0, Math.ceil((end - start) / (step ?? 1))));
    return [shape, strides.with(at, strides[at] * (step ?? 1)), start * strides[at]];
  }
  const slice = (x, axis, from, to, step) => view(x, ...section(x, axis, from, to, step));

  function select(x, axis, index) {
    const at = axisOf(x, axis);
    const from = index < 0 ? index + x.shape[at] : index;
    return squeeze(slice(x, at, from, from + 1), at);
  }

  function sliceScatter(x, part, axis, from, to, step) {
    const data = x.data.slice();
    put(data, offsetsOf(...section(x, axis, from, to, step)), part.data);
    return tensor(x.shape, data);
  }

  function unfold(x, axis, length, step) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    const shape = x.shape.with(at, Math.floor((x.shape[at] - length) / step) + 1);
    return view(x, [...shape, length], [...strides.with(at, strides[at] * step), strides[at]]);
  }

  function split(x, lengths, axis) {
    const total = x.shape.at(axis ?? 0);
    const list = Array.isArray(lengths) ? lengths : Array.from({ length: Math.ceil(total / lengths) }, () => lengths);
    let from = 0;
    return list.map((length) => slice(x, axis ?? 0, from, (from += length)));
  }

  function cat(parts, axis) {
    const at = axisOf(parts[0], axis ?? 0);
    const length = parts.reduce((sum, part) => sum + part.shape[at], 0);
    const out = filled(parts[0].shape.with(at, length), promote(...parts), 0);
    const strides = stridesOf(out.shape);
    let start = 0;
    for (const part of parts) {
      put(out.data, offsetsOf(part.shape, strides, start), part.data);
      start += part.shape[at] * strides[at];
    }
    return out;
  }

  // The lengths to add before and after, in pairs, from the last axis.
  function pad(x, lengths, mode, value) {
    if ((mode ?? 'constant') !== 'constant') throw new Error(`unknown mode of pad: ${mode}`);
    const before = x.shape.map((_, axis) => lengths[2 * (x.shape.length - 1 - axis)] ?? 0);
    const after = x.shape.map((_, axis) => lengths[2 * (x.shape.length - 1 - axis) + 1] ?? 0);
    const out = filled(x.shape.map((length, axis) => before[axis] + length + after[axis]), x.data.constructor, value ?? 0);
    const strides = stridesOf(out.shape);
    put(out.data, offsetsOf(x.shape, strides, before.reduce((sum, length, axis) => sum + length * strides[axis], 0)), x.data);
    return out;
  }

  // Where the elements lie that an index of the same number of axes names along one of them.
  function indexed(x, axis, index) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    return offsetsOf(index.shape, strides.with(at, 0)).map((offset, i) => offset + index.data[i] * strides[at]);
  }
  const gather = (x, axis, index) => take(x.data, index.shape, indexed(x, axis, index));

  function scatter(x, axis, index, values, change) {
    const data = x.data.slice();
    indexed(x, axis, index).forEach((offset, i) => (data[offset] = change(data[offset], values.data?.[i] ?? values)));
    return tensor(x.shape, data);
  }

  // Rows of a tensor whose first axes are indexed by tensors.
  function lookUp(x, indices) {
    const shape = broadcastShape(indices);
    const rows = indices.map((index) => expand(index, shape).data);
    const [rest, strides] = [x.shape.slice(indices.length), stridesOf(x.shape)];
    const [size, out] = [sizeOf(rest), new x.data.constructor(sizeOf(shape) * sizeOf(rest))];
    for (let i = 0; i < rows[0].length; i++) {
      const start = rows.reduce((sum, row, axis) => sum + row[i] * strides[axis], 0);
      out.set(x.data.subarray(start, start + size), i * size);
    }
    return tensor([...shape, ...rest], out);
  }

  // ---- layers

  function conv1d(x, weight, bias, stride, padding) {
    const patches = unfold(pad(x, [padding?.[0] ?? 0, padding?.[0] ?? 0]), 2, weight.shape[2], stride?.[0] ?? 1);
    const out = einsum('bclk,ock->bol', [patches, weight]);
    return bias ? map((a, b) => a + b, null, out, unsqueeze(bias, 1)) : out;
  }

  function attend(query, key, value, mask) {
    const scale = 1 / Math.sqrt(query.shape.at(-1));
    const scores = map((score) => score * scale, null, einsum('bnqd,bnkd->bnqk', [query, key]));
    const bias = mask?.data instanceof Uint8Array ? choose(mask, 0, -Infinity) : (mask ?? 0);
    return einsum('bnqk,bnkd->bnqd', [softmax(map((a, b) => a + b, null, scores, bias), -1), value]);
  }

  function gruCell(x, hidden, inputWeight, hiddenWeight, inputBias, hiddenBias) {
    const size = hidden.shape[1];
    const [inputs, states] = [split(linear(x, inputWeight, inputBias), size, 1), split(linear(hidden, hiddenWeight, hiddenBias), size, 1)];
    const [reset, update] = [0, 1].map((gate) => map((a, b) => sigmoid(a + b), null, inputs[gate], states[gate]));
    const next = map((a, b, gate) => Math.tanh(a + gate * b), null, inputs[2], states[2], reset);
    return map((a, b, gate) => a + gate * (b - a), null, next, hidden, update);
  }

  // A graph for each element along the first axis; carried tensors, then what it makes of the elements, stacked.
  function scan(body, initial, elements, others) {
    let carried = initial;
    const made = [];
    for (let i = 0; i < elements[0].shape[0]; i++) {
      const outputs = evaluate(body, [...carried, ...elements.map((x) => select(x, 0, i)), ...others], new Map());
      carried = outputs.slice(0, initial.length);
      made.push(outputs.slice(initial.length));
    }
    return [...carried, ...made[0].map((_, k) => cat(made.map((outputs) => unsqueeze(outputs[k], 0)), 0))];
  }

  // ---- all operations, by name; each accepts as many arguments as it lists

  const OPERATIONS = { scan, linear, bmm, mm: matmul, matmul, einsum, conv1d, gru_cell: gruCell, expand, unsqueeze, permute };
  const define = (names, run) => names.split(' ').forEach((name) => (OPERATIONS[name] = run));
  const unary = (name, apply, Type = Float32Array) => define(name, (x) => map(apply, Type, x));
  const binary = (names, apply, Type) => define(names, (a, b) => map(apply, Type, a, b));
  const range = (start, end, step, dtype) => {
    const Type = dtype ? typeNamed(dtype) : promote(start, end, step);
    return tensor([Math.max(0, Math.ceil((end - start) / step))], new Type(Math.max(0, Math.ceil((end - start) / step))).map((_, i) => start + i * step));
  };
  const typeLike = (x, dtype) => (dtype ? typeNamed(dtype) : x.data.constructor);

  binary('add add.Tensor', (a, b) => a + b);
  binary('sub sub.Tensor', (a, b) => a - b);
  binary('mul mul.Tensor', (a, b) => a * b);
  binary('floordiv', (a, b) => Math.floor(a / b));
  binary('div.Tensor', (a, b) => a / b, Float32Array);
  binary('rsub.Scalar', (a, b) => b - a);
  binary('logaddexp', logAddExp, Float32Array);
  binary('__and__.Tensor', (a, b) => a & b);
  binary('__or__.Tensor', (a, b) => a | b);
  binary('eq.Scalar eq.Tensor', (a, b) => a === b, Uint8Array);
  binary('ne.Scalar ne.Tensor', (a, b) => a !== b, Uint8Array);
  binary('lt.Scalar lt.Tensor', (a, b) => a < b, Uint8Array);
  binary('le.Scalar le.Tensor', (a, b) => a <= b, Uint8Array);
  binary('gt.Scalar gt.Tensor', (a, b) => a > b, Uint8Array);
  binary('ge.Scalar ge.Tensor', (a, b) => a >= b, Uint8Array);
  unary('tanh', Math.tanh);
  unary('sigmoid', sigmoid);
  unary('log_sigmoid', (x) => -logAddExp(0, -x));
  unary('exp', Math.exp);
  unary('log', Math.log);
  unary('log1p', Math.log1p);
  unary('sqrt', Math.sqrt);
  unary('sin', Math.sin);
  unary('cos', Math.cos);
  unary('abs', Math.abs, null);
  unary('neg', (x) => -x, null);
  unary('square', (x) => x * x, null);
  unary('relu', (x) => Math.max(x, 0), null);
  define('bitwise_not', (x) => map(x.data instanceof Uint8Array ? (is) => 1 - is : (bits) => ~bits, null, x));
  define('clamp', (x, low, high) => map((value) => Math.min(Math.max(value, low ?? -Infinity), high ?? Infinity), null, x));
  define('clamp_min', (x, low) => map((value) => Math.max(value, low), null, x));
  define('lerp.Tensor', (a, b, weight) => map((x, y, w) => x + w * (y - x), null, a, b, weight));
  define('where.self where.ScalarOther where.ScalarSelf', choose);
  define('masked_fill.Scalar', (x, mask, value) => choose(mask, value, x));
  define('_to_copy', (x, dtype) => (dtype === 'bool' ? map((value) => value !== 0, Uint8Array, x) : tensor(x.shape, new (typeNamed(dtype))(x.data))));
  define('clone detach', (x) => x);
  define('addmm', (bias, a, b) => map((x, y) => x + y, null, matmul(a, b), bias));
  define('scaled_dot_product_attention', attend);

  define('sum.dim_IntList', (x, axis, keep) => reduce(x, axis, keep, sumOf, whole(x)));
  define('mean.dim', (x, axis, keep) => reduce(x, axis, keep, (line) => sumOf(line) / line.length));
  define('amax', (x, axis, keep) => reduce(x, axis, keep, maxOf, x.data.constructor));
  define('amin', (x, axis, keep) => reduce(x, axis, keep, minOf, x.data.constructor));
  define('argmax', (x, axis, keep) => reduce(x, axis, keep, (line) => line.indexOf(maxOf(line)), Int32Array));
  define('logsumexp', (x, axis, keep) => reduce(x, axis, keep, logSumExp));
  define('linalg_vector_norm', (x, order, axis, keep) => {
    if (order !== 2) throw new Error(`unknown norm: ${order}`);
    return reduce(x, axis, keep, (line) => Math.hypot(...line));
  });
  define('softmax.int', softmax);
  define('log_softmax.int', logSoftmax);
  define('cumsum', (x, axis) => {
    return along(x, axis, (line) => {
      let sum = 0;
      return line.map((value) => (sum += value));
    }, whole(x));
  });
  define('sort', sort);
  define('layer_norm', layerNorm);

  define('view _unsafe_view', reshape);
  define('squeeze.dim', squeeze);
  define('transpose.int', transpose);
  define('slice.Tensor', slice);
  define('select.int', select);
  define('slice_scatter', sliceScatter);
  define('select_scatter', (x, part, axis, index) => sliceScatter(x, unsqueeze(part, axis), axis, index, index + 1));
  define('unfold', unfold);
  define('split.Tensor split_with_sizes', split);
  define('cat', cat);
  define('stack', (parts, axis) => cat(parts.map((part) => unsqueeze(part, axis ?? 0)), axisOf(parts[0], axis ?? 0, 1)));
  define('pad', pad);
  define('gather', gather);
  define('scatter.value', (x, axis, index, value) => scatter(x, axis, index, value, (_, to) => to));
  define('scatter_add', (x, axis, index, source) => scatter(x, axis, index, source, (a, b) => a + b));
  define('index.Tensor', lookUp);
  define('embedding', (weight, ids) => lookUp(weight, [ids]));
  define('getitem', (list, index) => list[index]);
  define('sym_size.int', (x, axis) => x.shape.at(axis));

  define('arange', (end, dtype) => range(0, end, 1, dtype));
  define('arange.start', (start, end, dtype) => range(start, end, 1, dtype));
  define('arange.start_step', range);
  define('zeros', (shape, dtype) => filled(shape, typeNamed(dtype ?? 'float32'), 0));
  define('ones', (shape, dtype) => filled(shape, typeNamed(dtype ?? 'float32'), 1));
  define('full', (shape, value, dtype) => filled(shape, dtype ? typeNamed(dtype) : promote(value), value));
  define('new_zeros', (x, shape, dtype) => filled(shape, typeLike(x, dtype), 0));
  define('new_ones', (x, shape, dtype) => filled(shape, typeLike(x, dtype), 1));
  define('new_full', (x, shape, value, dtype) => filled(shape, typeLike(x, dtype), value));
  define('zeros_like', (x, dtype) => filled(x.shape, typeLike(x, dtype), 0));
  define('ones_like', (x, dtype) => filled(x.shape, typeLike(x, dtype), 1));
  define('fill.Tensor', (x, value) => filled(x.shape, x.data.constructor, value.data[0]));

  // ---- graphs

  const CONSTANTS = { inf: Infinity, '-inf': -Infinity, nan: NaN };

  // The outputs of a graph. `values` holds the weights by name, and values to use in place of the graph's own.
  function evaluate(graph, inputs, weights, forced) {
    const values = new Map(graph.inputs.map((name, i) => [name, inputs[i]]));
    const resolve = (argument) => {
      if (Array.isArray(argument)) return argument.map(resolve);
      const name = argument?.$;
      return name === undefined ? argument : (values.get(name) ?? weights.get(name) ?? CONSTANTS[name]);
    };
    for (const [operation, name, passed] of graph.nodes) {
      const run = OPERATIONS[operation];
      if (!run) throw new Error(`unknown operation: ${operation}`);
      if (passed.length > run.length) throw new Error(`${operation}: unknown argument ${passed[run.length]}`);
      values.set(name, name === forced?.name ? forced.value : run(...passed.map(resolve)));
    }
    return graph.outputs.map((name) => values.get(name) ?? weights.get(name));
  }

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes;
  }

  // float32 numbers of float16 ones, by a table of all 65,536.
  const widened = (() => {
    let table = null;
    return (halves) => {
      table ??= new Float32Array(65536).map((_, bits) => {
        const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
        const size = exponent === 31 ? (fraction ? NaN : Infinity) : exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
        return bits >> 15 ? -size : size;
      });
      const out = new Float32Array(halves.length);
      for (let i = 0; i < out.length; i++) out[i] = table[halves[i]];
      return out;
    };
  })();

  function weightsOf(entries, bytes) {
    const weights = new Map();
    let start = 0;
    for (const { name, shape, dtype } of entries) {
      const Type = dtype === 'float16' ? Uint16Array : typeNamed(dtype);
      const stored = new Type(bytes.slice(start, (start += sizeOf(shape) * Type.BYTES_PER_ELEMENT)).buffer);
      weights.set(name, tensor(shape, dtype === 'float16' ? widened(stored) : stored));
    }
    return weights;
  }

  // A model: `prepare(ids)` with the ids of a sentence, EOS included, or of several, padded to one length; then
  // `step(id, memory, state)` with the previous id, or that of each sentence, BOS at first. Log-probabilities and attention
  // weights of several sentences lie one after another. `step(..., {weights})` forces the attention weights.
  function load(program, weightsBase64) {
    const weights = weightsOf(program.weights, bytesOf(weightsBase64));
    return {
      prepare(ids) {
        const rows = Array.isArray(ids[0]) ? ids : [ids];
        const outputs = evaluate(program.prepare, [tensor([rows.length, rows[0].length], Int32Array.from(rows.flat()))], weights);
        return { memory: outputs.slice(0, program.memory.length), state: outputs.slice(program.memory.length) };
      },
      step(id, memory, state, force) {
        const ids = Int32Array.from([id].flat());
        const name = program.step.outputs[1];
        const forced = force && { name, value: tensor([ids.length, force.weights.length / ids.length], Float32Array.from(force.weights)) };
        const [logProbs, attention, ...next] = evaluate(program.step, [tensor([ids.length], ids), ...memory, ...state], weights, forced);
        return { logProbs: logProbs.data, weights: attention.data, state: next };
      },
    };
  }

  return { load };
})();
