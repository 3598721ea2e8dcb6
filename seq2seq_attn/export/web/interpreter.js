// Runs exported graphs; export/program.py describes their format. A tensor is {shape, data}, row-major: Float32Array,
// Int32Array, or Uint8Array for booleans. Tensors never change once they are made, so several may share their data.
const Seq2Seq = (() => {
  const TYPES = { float32: Float32Array, int64: Int32Array, int32: Int32Array, int16: Int16Array, int8: Int8Array, bool: Uint8Array };
  const typeNamed = (name) => {
    if (!(name in TYPES)) throw new Error(`unknown dtype: ${name}`);
    return TYPES[name];
  };
  const tensor = (shape, data) => ({ shape, data });
  const isTensor = (value) => value?.data !== undefined;
  // The number of elements of the axes from an axis on.
  function sizeOf(shape, from = 0) {
    let size = 1;
    for (let axis = from; axis < shape.length; axis++) size *= shape[axis];
    return size;
  }

  // ---- the kernel
  // Functions of kernel.wat with their memory, which holds the weights of all models, and then tensors, one after another.
  let kernel = null;
  const SLACK = 1 << 20; // bytes that stay free, because the functions read and write beyond the last row
  const FULL = new Error('the memory of the kernel is full');
  const aligned = (size) => 16 * Math.ceil(size / 16);
  // A new tensor without values. The data of a float32 tensor is in the kernel's memory.
  function empty(shape, Type = Float32Array) {
    const [size, start, { buffer }] = [sizeOf(shape), kernel.taken, kernel.memory];
    if (Type !== Float32Array) return tensor(shape, new Type(size));
    kernel.taken += aligned(4 * size);
    if (kernel.taken + SLACK > buffer.byteLength) throw FULL;
    return tensor(shape, new Float32Array(buffer, start, size));
  }
  function copyOf({ shape, data }) {
    const copy = empty(shape);
    copy.data.set(data);
    return copy;
  }
  // The address of a tensor's data in the kernel's memory. Data outside this memory is copied into it.
  const placeOf = (x) => (x.data.buffer === kernel.memory.buffer ? x : copyOf(x)).data.byteOffset;
  // Call a function, copy the tensors that it returns out of the kernel's memory, and free the memory that it has taken.
  function computed(compute) {
    kernel.taken = kernel.start;
    try {
      return compute().map(({ shape, data }) => tensor(shape, data.slice()));
    } catch (error) {
      if (error !== FULL) throw error;
      kernel.memory.grow(kernel.memory.buffer.byteLength / 65536); // doubles the memory; tensors are lost, but weights are not
      return computed(compute);
    }
  }

  const filled = (shape, Type, value) => tensor(shape, new Type(sizeOf(shape)).fill(value));
  // The index of an axis from the front. The axis may be in a list. `more` is the number of axes that the result has more than x.
  function axisOf(x, axis, more = 0) {
    if (axis?.length > 1) throw new Error(`more than one axis: ${axis}`);
    const one = Number(axis ?? 0); // also converts a list with one number
    return one < 0 ? one + x.shape.length + more : one;
  }

  function stridesOf(shape) {
    const strides = [];
    for (let axis = shape.length - 1, stride = 1; axis >= 0; stride *= shape[axis--]) strides[axis] = stride;
    return strides;
  }

  // The offsets of the elements of a view.
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
    const [from, out] = [x.data, empty(shape, x.data.constructor)];
    for (let i = 0; i < out.data.length; i++) out.data[i] = from[offsets[i]];
    return out;
  }
  const view = (x, shape, strides, start) => take(x, shape, offsetsOf(shape, strides, start));
  // A copy with other values at some offsets. `values` is a tensor, or a number for all offsets.
  function put(x, offsets, values, merge = (_, value) => value) {
    const data = x.data.slice();
    offsets.forEach((offset, i) => (data[offset] = merge(data[offset], isTensor(values) ? values.data[i] : values)));
    return tensor(x.shape, data);
  }

  // ---- elementwise operations
  // Repeat axes of length 1, from the last to the first, a block at a time.
  function expand(x, wanted) {
    const added = wanted.length - x.shape.length;
    const shape = wanted.map((length, axis) => (length === -1 ? x.shape[axis - added] : length));
    let { data } = x;
    for (let axis = shape.length - 1, block = 1; data.length < sizeOf(shape); block *= shape[axis--]) {
      const length = shape[axis];
      if ((x.shape[axis - added] ?? 1) === length) continue;
      const repeated = empty([data.length * length], data.constructor).data;
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
    if (shapes.every((shape) => shape.length === shapes[0].length && shape.every((length, axis) => length === shapes[0][axis]))) return shapes[0];
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
    const shape = broadcastShape(values.filter(isTensor).map((x) => x.shape));
    const result = empty(shape, Type ?? promote(...values));
    const out = result.data;
    loop(out, ...values.map((x) => (isTensor(x) ? expand(x, shape).data : new Float32Array(out.length).fill(x))));
    return result;
  }
  // Apply a function to each element. If all arguments are numbers, the result is a number.
  function map(apply, Type, ...values) {
    if (!values.some(isTensor)) return apply(...values);
    return elementwise((out, a, b, c) => {
      for (let i = 0; i < out.length; i++) out[i] = apply(a[i], b?.[i], c?.[i]);
    }, Type, values);
  }
  // The kernel adds and multiplies floating-point numbers.
  function inKernel(isSum, apply, a, b) {
    if (![a, b].some(isTensor) || promote(a, b) !== Float32Array) return map(apply, null, a, b);
    const places = (parts) => parts.map((data) => placeOf(tensor([data.length], data)));
    return elementwise((out, ...parts) => kernel.merge(out.byteOffset, out.byteLength, ...places(parts), isSum), null, [a, b]);
  }
  const add = (a, b) => inKernel(1, (x, y) => x + y, a, b);
  const mul = (a, b) => inKernel(0, (x, y) => x * y, a, b);
  const lerp = (a, b, weight) => add(a, mul(weight, map((x, y) => y - x, null, a, b)));
  const where = (condition, a, b) => map((is, x, y) => (is ? x : y), promote(a, b), condition, a, b);
  const logAddExp = (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));

  // ---- products
  // x W^T + bias for each row of x. Further axes of W count as a single axis. Models spend most of their time here.
  function linear(x, weight, bias) {
    const [numOut, width] = [weight.shape[0], sizeOf(weight.shape, 1)];
    const shape = [...x.shape.slice(0, -1), numOut];
    const numRows = sizeOf(x.shape.slice(0, -1));
    if (width === 0 || width % 4) {
      const product = bmm(reshape(x, [1, numRows, width]), unsqueeze(transpose(reshape(weight, [numOut, width]), 0, 1), 0));
      return add(tensor(shape, product.data), bias ?? 0);
    }
    const places = [placeOf(x), weight.rows ?? placeOf(weight), bias ? placeOf(bias) : 0];
    const rounded = weight.rows && placeOf(empty([numRows * (aligned(width) / 2 + 4)])); // room for x as integers with a scale
    const out = empty(shape);
    const multiply = kernel[weight.rows ? 'multiplyIntegers' : 'multiply'];
    if (numRows) multiply(...places, placeOf(out), numOut, 4 * width, numRows, weight.scales, rounded);
    return out;
  }

  function bmm(a, b) {
    const [batch, rows, inner] = a.shape;
    const columns = b.shape[2];
    const [x, y, out] = [placeOf(a), placeOf(b), empty([batch, rows, columns])];
    for (let row = 0; row < batch * rows; row++) {
      const block = Math.floor(row / rows) * inner * columns;
      kernel.combine(x + 4 * row * inner, y + 4 * block, placeOf(out) + 4 * row * columns, inner, 4 * columns);
    }
    return out;
  }

  function matmul(a, b) {
    if (b.shape.length > 2) {
      const batch = broadcastShape([a, b].map((x) => x.shape.slice(0, -2)));
      const [x, y] = [a, b].map((part) => expand(part, [...batch, ...part.shape.slice(-2)]));
      const [left, right] = [x, y].map((part) => reshape(part, [sizeOf(batch), ...part.shape.slice(-2)]));
      return tensor([...batch, a.shape.at(-2), b.shape.at(-1)], bmm(left, right).data);
    }
    const shape = [...a.shape.slice(0, -1), ...b.shape.slice(1)];
    if (b.shape.length === 1) return tensor(shape, linear(a, unsqueeze(b, 0)).data);
    return tensor(shape, bmm(reshape(a, [1, -1, b.shape[0]]), unsqueeze(b, 0)).data);
  }

  // ---- along an axis
  // Apply a function to each line of numbers along an axis.
  function along(x, axis, make, Type = Float32Array) {
    const [at, last] = [axisOf(x, axis), x.shape.length - 1];
    const { data, shape } = transpose(x, at, last);
    const line = empty([shape[last]], data.constructor).data;
    let out = null;
    for (let from = 0, to = 0; from < data.length; from += line.length) {
      line.set(data.subarray(from, from + line.length));
      const made = make(line);
      out ??= empty(shape.with(last, made.length), Type);
      out.data.set(made, to);
      to += made.length;
    }
    return transpose(out, at, last);
  }

  function reduce(x, axis, keep, make, Type) {
    if (Array.isArray(axis) && axis.length !== 1) { // several axes, from the last to the first; an empty list stands for all axes
      const axes = axis.length > 0 ? axis.map((one) => axisOf(x, one)) : [...x.shape.keys()];
      return axes.toSorted((a, b) => b - a).reduce((part, one) => reduce(part, one, keep, make, Type), x);
    }
    const out = along(x, axis, (line) => [make(line)], Type);
    return keep ? out : squeeze(out, axisOf(x, axis));
  }
  const flat = (x) => tensor([x.data.length], x.data);
  const wholeType = (x) => (x.data instanceof Float32Array ? Float32Array : Int32Array);
  const sumOf = (line) => line.reduce((a, b) => a + b, 0);
  function maxOf(line) {
    let max = -Infinity;
    for (let i = 0; i < line.length; i++) if (line[i] > max) max = line[i];
    return max;
  }
  function logSumExp(line) {
    const max = maxOf(line);
    const powers = empty([line.length + 3]).data.fill(-Infinity); // the kernel reads four numbers at once
    powers.set(line);
    const sum = kernel.exponentials(powers.byteOffset, 4 * line.length, max);
    return max === -Infinity ? max : max + Math.log(sum);
  }
  function logSoftmaxOf(line) {
    const total = logSumExp(line);
    for (let i = 0; i < line.length; i++) line[i] -= total;
    return line;
  }
  const softmax = (x, axis) => along(x, axis, (line) => logSoftmaxOf(line).map(Math.exp));

  function cumulate(line, merge) {
    let total = null;
    return line.map((value) => (total = total === null ? value : merge(total, value)));
  }

  function varianceOf(line, correction) {
    const mean = sumOf(line) / line.length;
    return sumOf(line.map((value) => (value - mean) ** 2)) / (line.length - correction);
  }

  function sort(x, axis, isDescending) {
    const compare = (line) => [...line.keys()].toSorted((i, j) => (isDescending ? line[j] - line[i] : line[i] - line[j]));
    const order = along(x, axis ?? -1, compare, Int32Array);
    return [gather(x, axis ?? -1, order), order];
  }

  function layerNorm(x, lengths, weight, bias, epsilon) {
    const normal = along(reshape(x, [-1, sizeOf(lengths)]), 1, (line) => {
      const [mean, variance] = [sumOf(line) / line.length, varianceOf(line, 0)];
      return line.map((value) => (value - mean) / Math.sqrt(variance + (epsilon ?? 1e-5)));
    });
    return add(mul(tensor(x.shape, normal.data), weight ?? 1), bias ?? 0);
  }

  // scale / (1 + exp(factor x)) + offset
  function logistic(x, factor, scale, offset) {
    const out = copyOf(x);
    kernel.logistic(placeOf(out), out.data.byteLength, factor, scale, offset);
    return out;
  }
  const tanh = (x) => logistic(x, 2, -2, 1);
  const sigmoid = (x) => logistic(x, -1, 1, 0);

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

  // The shape, strides and start of a slice. Negative positions count from the end.
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
    const [block, whole] = [shape, x.shape].map((lengths) => sizeOf(lengths, axisOf(x, axis)));
    if (whole === x.data.length) return tensor(shape, x.data.subarray(start, start + block));
    const out = empty(shape, x.data.constructor);
    for (let at = 0, begin = start; at < out.data.length; at += block, begin += whole) {
      out.data.set(x.data.subarray(begin, begin + block), at);
    }
    return out;
  }
  const endOf = (index) => (index === -1 ? null : index + 1);
  const select = (x, axis, index) => squeeze(slice(x, axis, index, endOf(index)), axisOf(x, axis));

  function unfold(x, axis, length, step) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    const shape = x.shape.with(at, Math.floor((x.shape[at] - length) / step) + 1);
    return view(x, [...shape, length], [...strides.with(at, strides[at] * step), strides[at]]);
  }

  function split(x, lengths, axis) {
    let from = 0;
    return lengths.map((length) => slice(x, axis, from, (from += length)));
  }

  function cat(parts, axis) {
    const at = axisOf(parts[0], axis);
    const out = empty(parts[0].shape.with(at, sumOf(parts.map((part) => part.shape[at]))), promote(...parts));
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

  // `lengths` has the padding before and after each axis, in pairs, from the last axis on.
  function pad(x, lengths, mode, value) {
    if ((mode ?? 'constant') !== 'constant') throw new Error(`unknown mode of pad: ${mode}`);
    const added = (axis, side) => lengths[2 * (x.shape.length - 1 - axis) + side] ?? 0;
    const shape = x.shape.map((length, axis) => added(axis, 0) + length + added(axis, 1));
    const strides = stridesOf(shape);
    const start = sumOf(strides.map((stride, axis) => stride * added(axis, 0)));
    return put(filled(shape, x.data.constructor, value ?? 0), offsetsOf(x.shape, strides, start), x);
  }

  // The offsets of the elements that an index names along an axis. The index has as many axes as the tensor.
  function indexed(x, axis, index) {
    const [at, strides] = [axisOf(x, axis), stridesOf(x.shape)];
    return offsetsOf(index.shape, strides.with(at, 0)).map((offset, i) => offset + index.data[i] * strides[at]);
  }
  const gather = (x, axis, index) => take(x, index.shape, indexed(x, axis, index));

  // The parts of a tensor whose first axes are indexed by tensors.
  function lookUp(x, indices) {
    const first = indices.findIndex((index) => index !== null);
    if (first > 0) { // the axes before the first indexed axis come first
      const [axes, last] = [[...x.shape.keys()], indices.length];
      const found = lookUp(permute(x, [...axes.slice(first, last), ...axes.slice(0, first), ...axes.slice(last)]), indices.slice(first));
      const moved = [...found.shape.keys()];
      const behind = moved.length - axes.length + last - first;
      return permute(found, [...moved.splice(behind, first), ...moved]);
    }
    const shape = broadcastShape(indices.map((index) => index.shape));
    const [rest, strides] = [x.shape.slice(indices.length), stridesOf(x.shape)];
    const starts = new Int32Array(sizeOf(shape));
    indices.forEach((index, axis) => expand(index, shape).data.forEach((at, i) => (starts[i] += at * strides[axis])));
    const block = sizeOf(rest);
    const out = empty([...shape, ...rest], x.data.constructor);
    starts.forEach((start, i) => out.data.set(x.data.subarray(start, start + block), i * block));
    return out;
  }

  // ---- layers
  function conv1d(x, weight, bias, stride, padding) {
    const patches = unfold(pad(x, [padding?.[0] ?? 0, padding?.[0] ?? 0]), 2, weight.shape[2], stride?.[0] ?? 1);
    const rows = reshape(permute(patches, [0, 2, 1, 3]), [x.shape[0], -1, sizeOf(weight.shape, 1)]);
    return transpose(linear(rows, weight, bias), 1, 2);
  }

  // Run a graph for each element along the first axis. Return the last carried tensors, then the stacked outputs.
  function scan(body, carried, elements, others) {
    const steps = [{ next: carried }];
    for (let i = 0; i < elements[0].shape[0]; i++) {
      const outputs = evaluate(body, [...steps[i].next, ...elements.map((x) => select(x, 0, i)), ...others]);
      steps.push({ next: outputs.slice(0, carried.length), made: outputs.slice(carried.length) });
    }
    return [...steps.at(-1).next, ...steps[1].made.map((_, k) => stack(steps.slice(1).map((step) => step.made[k])))];
  }

  function arange(start, end, step, dtype) {
    const by = step ?? 1;
    const Type = dtype ? typeNamed(dtype) : promote(start, end, by);
    const data = new Type(Math.max(0, Math.ceil((end - start) / by))).map((_, i) => start + i * by);
    return tensor([data.length], data);
  }

  // ---- operations by name, each with all arguments that it accepts
  const OPERATIONS = {
    add, 'add.Tensor': add, 'add.Scalar': add, mul, 'mul.Tensor': mul, 'mul.Scalar': mul, 'lerp.Tensor': lerp, tanh, sigmoid,
    clone: (x) => x, detach: (x) => x,
    copy: (x, y) => map((_, value) => value, x.data.constructor, x, y),
    floordiv: (a, b) => Math.floor(a / b),
    'sub.Tensor': (a, b) => map((x, y) => x - y, null, a, b),
    'div.Tensor': (a, b) => map((x, y) => x / y, Float32Array, a, b),
    'div.Tensor_mode': (a, b, mode) => map((x, y) => Math[mode](x / y), null, a, b), // the mode is `floor` or `trunc`
    logaddexp: (a, b) => map(logAddExp, Float32Array, a, b),
    logical_and: (a, b) => map((x, y) => x && y, Uint8Array, a, b),
    logical_or: (a, b) => map((x, y) => x || y, Uint8Array, a, b),
    logical_not: (x) => map((value) => !value, Uint8Array, x),
    isnan: (x) => map(Number.isNaN, Uint8Array, x),
    abs: (x) => map(Math.abs, null, x),
    neg: (x) => map((value) => -value, null, x),
    relu: (x) => map((value) => Math.max(value, 0), null, x),
    log_sigmoid: (x) => map((value) => -logAddExp(0, -value), Float32Array, x),
    bitwise_not: (x) => map(x.data instanceof Uint8Array ? (is) => 1 - is : (bits) => ~bits, null, x),
    'clamp.Tensor': (x, low, high) =>
      map((value, least, most) => Math.min(Math.max(value, least), most), x.data.constructor, x, low ?? -Infinity, high ?? Infinity),
    leaky_relu: (x, slope) => map((value) => (value > 0 ? value : value * (slope ?? 0.01)), null, x),
    round: (x) => map((value) => (Math.abs(value % 1) === 0.5 ? 2 * Math.round(value / 2) : Math.round(value)), null, x),
    rsqrt: (x) => map((value) => 1 / Math.sqrt(value), Float32Array, x),
    reciprocal: (x) => map((value) => 1 / value, Float32Array, x),
    'where.self': where,
    _to_copy: (x, dtype) => map(dtype === 'bool' ? Boolean : Number, typeNamed(dtype), x),

    linear, bmm, mm: matmul, matmul, conv1d, scan,
    addmm: (bias, a, b) => add(matmul(a, b), bias),
    'sum.dim_IntList': (x, axis, keep) => reduce(x, axis, keep, sumOf, wholeType(x)),
    'mean.dim': (x, axis, keep) => reduce(x, axis, keep, (line) => sumOf(line) / line.length),
    amax: (x, axis, keep) => reduce(x, axis, keep, maxOf, x.data.constructor),
    amin: (x, axis, keep) => reduce(x, axis, keep, (line) => -maxOf(line.map((value) => -value)), x.data.constructor),
    any: (x) => reduce(flat(x), 0, false, maxOf, Uint8Array),
    'any.dim': (x, axis, keep) => reduce(x, axis, keep, maxOf, Uint8Array),
    argmax: (x, axis, keep) => reduce(axis === undefined ? flat(x) : x, axis, keep, (line) => line.indexOf(maxOf(line)), Int32Array),
    argmin: (x, axis, keep) => OPERATIONS.argmax(OPERATIONS.neg(x), axis, keep),
    max: (x) => OPERATIONS.amax(flat(x), 0),
    min: (x) => OPERATIONS.amin(flat(x), 0),
    'max.dim': (x, axis, keep) => [OPERATIONS.amax(x, axis, keep), OPERATIONS.argmax(x, axis, keep)],
    'min.dim': (x, axis, keep) => [OPERATIONS.amin(x, axis, keep), OPERATIONS.argmin(x, axis, keep)],
    mean: (x) => reduce(flat(x), 0, false, (line) => sumOf(line) / line.length),
    'prod.dim_int': (x, axis, keep) => reduce(x, axis, keep, (line) => line.reduce((a, b) => a * b, 1), wholeType(x)),
    'var.correction': (x, axis, correction, keep) => reduce(x, axis, keep, (line) => varianceOf(line, correction ?? 1)),
    linalg_vector_norm: (x, order, axis, keep) =>
      reduce(x, axis, keep, (line) => sumOf(line.map((value) => Math.abs(value) ** order)) ** (1 / order)),
    'softmax.int': softmax,
    'log_softmax.int': (x, axis) => along(x, axis, logSoftmaxOf),
    cumsum: (x, axis) => along(x, axis, (line) => cumulate(line, (a, b) => a + b), wholeType(x)),
    cumprod: (x, axis) => along(x, axis, (line) => cumulate(line, (a, b) => a * b), wholeType(x)),
    topk: (x, count, axis, isLargest) => sort(x, axis, isLargest ?? true).map((part) => slice(part, axis ?? -1, 0, count)),
    flip: (x, axes) => axes.reduce((part, axis) => along(part, axis, (line) => line.toReversed(), x.data.constructor), x),
    layer_norm: layerNorm, sort,

    view: reshape, _unsafe_view: reshape, expand, permute, unsqueeze, unfold, cat, stack, pad, gather,
    'squeeze.dim': (x, axis) => squeeze(x, axisOf(x, axis)),
    'squeeze.dims': (x, axes) => axes.map((axis) => axisOf(x, axis)).toSorted((a, b) => b - a).reduce(squeeze, x),
    index_select: (x, axis, index) => transpose(lookUp(transpose(x, 0, axis), [index]), 0, axis),
    'transpose.int': transpose, 'slice.Tensor': slice, 'select.int': select,
    slice_scatter: (x, part, axis, from, to, step) => put(x, offsetsOf(...section(x, axis, from, to, step)), part),
    select_scatter: (x, part, axis, index) => OPERATIONS.slice_scatter(x, part, axis, index, endOf(index)),
    split_with_sizes: split, 'index.Tensor': lookUp,
    embedding: (weight, ids) => (weight.rows ? weight.numbersOf(ids) : lookUp(weight, [ids])),
    'scatter.value': (x, axis, index, value) => put(x, indexed(x, axis, index), value),
    'scatter.src': (x, axis, index, values) => put(x, indexed(x, axis, index), values),
    scatter_add: (x, axis, index, values) => put(x, indexed(x, axis, index), values, (a, b) => a + b),
    getitem: (list, index) => list[index],
    'sym_size.int': (x, axis) => x.shape.at(axis),

    'arange.start_step': arange,
    full: (shape, value, dtype) => filled(shape, dtype ? typeNamed(dtype) : promote(value), value),
    full_like: (x, value, dtype) => filled(x.shape, dtype ? typeNamed(dtype) : x.data.constructor, value),
    scalar_tensor: (value, dtype) => filled([], typeNamed(dtype ?? 'float32'), value),
  };
  for (const name of ['exp', 'expm1', 'log', 'log1p', 'log2', 'log10', 'sqrt', 'sin', 'cos', 'tan', 'sinh', 'cosh', 'asin', 'acos', 'atan']) {
    OPERATIONS[name] = (x) => map(Math[name], Float32Array, x);
  }
  for (const name of ['floor', 'ceil', 'trunc', 'sign']) OPERATIONS[name] = (x) => map(Math[name], null, x);
  const PAIRS = { pow: (x, y) => x ** y, fmod: (x, y) => x % y, remainder: (x, y) => x - y * Math.floor(x / y) };
  Object.assign(PAIRS, { maximum: (x, y) => Math.max(x, y), minimum: (x, y) => Math.min(x, y) });
  for (const [name, bits] of [['and', (x, y) => x & y], ['or', (x, y) => x | y], ['xor', (x, y) => x ^ y]]) {
    Object.assign(PAIRS, { [`__${name}__`]: bits, [`bitwise_${name}`]: bits });
  }
  for (const [name, apply] of Object.entries(PAIRS)) {
    for (const kind of ['', '.Tensor', '.Scalar', '.Tensor_Tensor', '.Tensor_Scalar']) OPERATIONS[name + kind] = (a, b) => map(apply, null, a, b);
  }
  const COMPARISONS = { eq: (a, b) => a === b, ne: (a, b) => a !== b, lt: (a, b) => a < b, le: (a, b) => a <= b };
  Object.assign(COMPARISONS, { gt: (a, b) => a > b, ge: (a, b) => a >= b });
  for (const [name, compare] of Object.entries(COMPARISONS)) {
    OPERATIONS[`${name}.Tensor`] = OPERATIONS[`${name}.Scalar`] = (a, b) => map(compare, Uint8Array, a, b);
  }

  OPERATIONS.clamp = OPERATIONS['clamp.Tensor'];
  OPERATIONS['any.dims'] = OPERATIONS['any.dim'];

  // ---- graphs
  const NUMBERS = { inf: Infinity, '-inf': -Infinity, nan: NaN };

  // The outputs of a graph. `forced` has the name of a node, and the value that replaces the value of this node.
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

  // The names of the nodes that explain a step: the scores, whose softmax are the attention weights, and the context, the
  // weighted sum of values. A graph may lack these nodes.
  function explained({ nodes, outputs: [, weights] }) {
    const [operation, , [scores]] = nodes.find(([, name]) => name === weights) ?? ['', '', []];
    let user = ['', weights];
    const reads = ([name, , passed]) => ['unsqueeze', 'bmm'].includes(name) && passed[0]?.$ === user[1];
    do user = nodes.find(reads); while (user?.[0] === 'unsqueeze');
    return [operation === 'softmax.int' ? scores.$ : undefined, user?.[0] === 'bmm' ? user[1] : undefined];
  }

  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes;
  }

  // Rows of integers in the kernel's memory, each with a scale. They become float32 when an operation reads the numbers.
  function integers(shape, stored, scales) {
    const [width, count] = [sizeOf(shape, 1), shape[0]];
    const pitch = aligned(width); // the kernel reads 16 numbers at once
    const rows = placeOf(empty([(count * pitch) / 2]));
    const row = (number) => new Int16Array(kernel.memory.buffer, rows + 2 * number * pitch, width);
    for (let i = 0; i < count; i++) row(i).set(stored.subarray(i * width, (i + 1) * width));
    function numbersOf(ids = tensor([count], [...scales.keys()])) {
      const data = new Float32Array(ids.data.length * width);
      ids.data.forEach((id, at) => row(id).forEach((number, i) => (data[at * width + i] = number * scales[id])));
      return tensor([...ids.shape, ...shape.slice(1)], data);
    }
    let all = null;
    return { shape, rows, scales: placeOf(tensor([count], scales)), numbersOf, get data() { return (all ??= numbersOf().data); } };
  }

  // The weights by name, from the bytes of all weights. Rows in int16 or int8 are followed by the scales of all rows.
  function weightsOf(entries, bytes) {
    let start = 0;
    const read = (Type, length) => new Type(bytes.slice(start, (start += length * Type.BYTES_PER_ELEMENT)).buffer);
    return new Map(entries.map(({ name, shape, dtype }) => {
      const stored = read(typeNamed(dtype), sizeOf(shape));
      if (['int16', 'int8'].includes(dtype)) return [name, integers(shape, stored, read(Float32Array, shape[0]))];
      if (dtype !== 'float32') return [name, tensor(shape, stored)];
      const place = placeOf(tensor(shape, stored));
      return [name, { shape, get data() { return new Float32Array(kernel.memory.buffer, place, sizeOf(shape)); } }];
    }));
  }

  // The models of runs, {program, weights in base64}. All models use the same kernel. `prepare` takes the ids of sentences,
  // EOS included, padded to equal length, and the ids in the extended target vocabulary, which outputs that copy read. `step`
  // takes the id of each sentence's previous token, BOS at first. It returns the log-probabilities and attention weights of
  // all sentences one after another. `force` has weights that replace the attention weights, without effect if no context is
  // computed from these (no attention, several heads). `rows` selects sentences of memory or state, with repetitions.
  function load(runs, kernelBase64) {
    const sizeAtMost = ({ shape }) => 4 * sizeOf(shape) + 64 * (shape[0] ?? 1); // the size of a weight in bytes
    const size = sumOf(runs.flatMap(({ program }) => program.weights.map(sizeAtMost)));
    const room = new WebAssembly.Memory({ initial: Math.ceil(size / 65536) + 256 });
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytesOf(kernelBase64)), { '': { memory: room } });
    kernel = { ...exports, memory: room, taken: 16 }; // the address 0 stands for no bias
    const whole = (shape, numbers) => tensor(shape, Int32Array.from(numbers));
    return runs.map(({ program, weights: text }) => {
      const weights = weightsOf(program.weights, bytesOf(text));
      kernel.start = kernel.taken;
      const numMemory = program.memory.length;
      const names = explained(program.step);
      const { outputs } = program.step;
      const graph = { ...program.step, outputs: [...names.map((name) => name ?? outputs[1]), ...outputs] };
      return {
        prepare(ids, extended) {
          const inputs = [ids, extended].map((rows) => whole([rows.length, rows[0].length], rows.flat()));
          const prepared = computed(() => evaluate(program.prepare, inputs, weights));
          return { memory: prepared.slice(0, numMemory), state: prepared.slice(numMemory) };
        },
        step(ids, memory, state, force) {
          const value = force && tensor([ids.length, force.length / ids.length], Float32Array.from(force));
          const forced = force && { name: outputs[1], value };
          const inputs = [whole([ids.length], ids), ...memory, ...state];
          const [scores, context, logProbs, attention, ...next] = computed(() => evaluate(graph, inputs, weights, forced));
          const found = { scores: names[0] && scores.data, context: names[1] && context.data };
          return { ...found, logProbs: logProbs.data, weights: attention.data, state: next };
        },
        rows: (tensors, numbers) => computed(() => tensors.map((x) => lookUp(x, [whole([numbers.length], numbers)]))),
      };
    });
  }

  return { load, operations: OPERATIONS, dtypes: TYPES };
})();
