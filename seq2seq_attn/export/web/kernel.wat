;; Products, sums and exponentials of float32, four numbers at once. Sizes are in bytes. `multiply` and `multiplyIntegers`
;; need rows of x whose size is a multiple of 16 bytes. All other functions write up to three numbers beyond the end.
(module
  (memory (import "" "memory") 1)
  ;; y[r, o] = bias[o] + sum over i of x[r, i] w[o, i], for `numRows` rows of x and `numOut` of w. The address 0 is no bias.
  ;; Four rows of w stay in the cache while all rows of x are read. If `numOut` is not a multiple of 4, the last four rows
  ;; overlap the four rows before. If `numOut` is below 4, rows beyond w are read; their results are overwritten by the next
  ;; row of y, or lie beyond the last row.
  (func (export "multiply") (param $x i32) (param $w i32) (param $bias i32) (param $y i32) (param $numOut i32) (param $size i32) (param $numRows i32)
    (local $o i32) (local $i i32) (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $out i32) (local $in i32) (local $left i32)
    (local $added v128) (local $v v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $groups
      (local.set $i (i32.sub (local.get $numOut) (i32.const 4)))
      (local.set $i (select (local.get $o) (local.get $i) (i32.lt_u (local.get $o) (local.get $i))))
      (if (local.get $bias) (then (local.set $added (v128.load (i32.add (local.get $bias) (i32.shl (local.get $i) (i32.const 2)))))))
      (local.set $out (i32.add (local.get $y) (i32.shl (local.get $i) (i32.const 2))))
      (local.set $w0 (i32.add (local.get $w) (i32.mul (local.get $i) (local.get $size))))
      (local.set $w1 (i32.add (local.get $w0) (local.get $size)))
      (local.set $w2 (i32.add (local.get $w1) (local.get $size)))
      (local.set $w3 (i32.add (local.get $w2) (local.get $size)))
      (local.set $in (local.get $x))
      (local.set $left (local.get $numRows))
      (loop $rows
        (local.set $a (v128.const f32x4 0 0 0 0))
        (local.set $b (local.get $a)) (local.set $c (local.get $a)) (local.set $d (local.get $a))
        (local.set $i (i32.const 0))
        (loop $numbers
          (local.set $v (v128.load (i32.add (local.get $in) (local.get $i))))
          (local.set $a (f32x4.add (local.get $a) (f32x4.mul (local.get $v) (v128.load (i32.add (local.get $w0) (local.get $i))))))
          (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $v) (v128.load (i32.add (local.get $w1) (local.get $i))))))
          (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $v) (v128.load (i32.add (local.get $w2) (local.get $i))))))
          (local.set $d (f32x4.add (local.get $d) (f32x4.mul (local.get $v) (v128.load (i32.add (local.get $w3) (local.get $i))))))
          (br_if $numbers (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $size))))
        (v128.store (local.get $out) (f32x4.add (local.get $added)
          (call $sums (local.get $a) (local.get $b) (local.get $c) (local.get $d))))
        (local.set $in (i32.add (local.get $in) (local.get $size)))
        (local.set $out (i32.add (local.get $out) (i32.shl (local.get $numOut) (i32.const 2))))
        (br_if $rows (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (br_if $groups (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $numOut)))))

  ;; The sums of a, b, c and d: halves first, then pairs.
  (func $sums (param $a v128) (param $b v128) (param $c v128) (param $d v128) (result v128)
    (local.set $b (f32x4.add
      (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
      (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
    (local.set $d (f32x4.add
      (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $c) (local.get $d))
      (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $c) (local.get $d))))
    (f32x4.add
      (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $b) (local.get $d))
      (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $b) (local.get $d))))

  ;; The same product for w of 16-bit integers with a scale for each row. A row has a multiple of 16 integers; zeros fill the
  ;; row. First, `integers` rounds the rows of x to 15 bits, each followed by its scale, so that the sum of four products fits
  ;; into 32 bits. Integers take half the memory of float32, and eight products are computed at once.
  (func (export "multiplyIntegers") (param $x i32) (param $w i32) (param $bias i32) (param $y i32) (param $numOut i32) (param $size i32) (param $numRows i32) (param $scales i32) (param $integers i32)
    (local $o i32) (local $i i32) (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $out i32) (local $in i32) (local $left i32)
    (local $added v128) (local $scale v128) (local $u v128) (local $v v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $in (local.get $integers))
    (local.set $left (local.get $numRows))
    (local.set $i (local.get $size))
    (local.set $size (i32.and (i32.add (i32.shr_u (local.get $size) (i32.const 1)) (i32.const 31)) (i32.const -32)))
    (loop $rows
      (v128.store (i32.add (local.get $in) (local.get $size)) (call $round (local.get $x) (local.get $i) (local.get $in)))
      (local.set $x (i32.add (local.get $x) (local.get $i)))
      (local.set $in (i32.add (local.get $in) (i32.add (local.get $size) (i32.const 16))))
      (br_if $rows (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (loop $groups
      (local.set $i (i32.sub (local.get $numOut) (i32.const 4)))
      (local.set $i (select (local.get $o) (local.get $i) (i32.lt_u (local.get $o) (local.get $i))))
      (local.set $w0 (i32.add (local.get $w) (i32.mul (local.get $i) (local.get $size))))
      (local.set $w1 (i32.add (local.get $w0) (local.get $size)))
      (local.set $w2 (i32.add (local.get $w1) (local.get $size)))
      (local.set $w3 (i32.add (local.get $w2) (local.get $size)))
      (local.set $i (i32.shl (local.get $i) (i32.const 2)))
      (if (local.get $bias) (then (local.set $added (v128.load (i32.add (local.get $bias) (local.get $i))))))
      (local.set $scale (v128.load (i32.add (local.get $scales) (local.get $i))))
      (local.set $out (i32.add (local.get $y) (local.get $i)))
      (local.set $in (local.get $integers))
      (local.set $left (local.get $numRows))
      (loop $rows
        (local.set $a (v128.const f32x4 0 0 0 0))
        (local.set $b (local.get $a)) (local.set $c (local.get $a)) (local.set $d (local.get $a))
        (local.set $i (i32.const 0))
        (loop $numbers
          (local.set $u (v128.load (i32.add (local.get $in) (local.get $i))))
          (local.set $v (v128.load offset=16 (i32.add (local.get $in) (local.get $i))))
          (local.set $a (f32x4.add (local.get $a) (f32x4.convert_i32x4_s (i32x4.add
            (i32x4.dot_i16x8_s (local.get $u) (v128.load (i32.add (local.get $w0) (local.get $i))))
            (i32x4.dot_i16x8_s (local.get $v) (v128.load offset=16 (i32.add (local.get $w0) (local.get $i))))))))
          (local.set $b (f32x4.add (local.get $b) (f32x4.convert_i32x4_s (i32x4.add
            (i32x4.dot_i16x8_s (local.get $u) (v128.load (i32.add (local.get $w1) (local.get $i))))
            (i32x4.dot_i16x8_s (local.get $v) (v128.load offset=16 (i32.add (local.get $w1) (local.get $i))))))))
          (local.set $c (f32x4.add (local.get $c) (f32x4.convert_i32x4_s (i32x4.add
            (i32x4.dot_i16x8_s (local.get $u) (v128.load (i32.add (local.get $w2) (local.get $i))))
            (i32x4.dot_i16x8_s (local.get $v) (v128.load offset=16 (i32.add (local.get $w2) (local.get $i))))))))
          (local.set $d (f32x4.add (local.get $d) (f32x4.convert_i32x4_s (i32x4.add
            (i32x4.dot_i16x8_s (local.get $u) (v128.load (i32.add (local.get $w3) (local.get $i))))
            (i32x4.dot_i16x8_s (local.get $v) (v128.load offset=16 (i32.add (local.get $w3) (local.get $i))))))))
          (br_if $numbers (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 32))) (local.get $size))))
        (local.set $in (i32.add (local.get $in) (local.get $size)))
        (v128.store (local.get $out) (f32x4.add (local.get $added) (f32x4.mul
          (f32x4.mul (local.get $scale) (v128.load (local.get $in)))
          (call $sums (local.get $a) (local.get $b) (local.get $c) (local.get $d)))))
        (local.set $in (i32.add (local.get $in) (i32.const 16)))
        (local.set $out (i32.add (local.get $out) (i32.shl (local.get $numOut) (i32.const 2))))
        (br_if $rows (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (br_if $groups (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $numOut)))))

  ;; Round numbers to integers from -16383 to 16383 with a common scale. The result is the scale, four times.
  (func $round (param $x i32) (param $size i32) (param $to i32) (result v128)
    (local $at i32) (local $end i32) (local $largest v128) (local $factor v128)
    (local.set $end (i32.add (local.get $x) (local.get $size)))
    (local.set $at (local.get $x))
    (loop $numbers
      (local.set $largest (f32x4.max (local.get $largest) (f32x4.abs (v128.load (local.get $at)))))
      (br_if $numbers (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
    (local.set $largest (f32x4.max (local.get $largest)
      (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $largest) (local.get $largest))))
    (local.set $largest (f32x4.max (local.get $largest)
      (i8x16.shuffle 4 5 6 7 0 1 2 3 12 13 14 15 8 9 10 11 (local.get $largest) (local.get $largest))))
    (local.set $factor (f32x4.div (v128.const f32x4 16383 16383 16383 16383) (local.get $largest)))
    (loop $numbers
      (v128.store64_lane 0 (local.get $to) (i16x8.narrow_i32x4_s
        (i32x4.trunc_sat_f32x4_s (f32x4.nearest (f32x4.mul (v128.load (local.get $x)) (local.get $factor))))
        (v128.const i32x4 0 0 0 0)))
      (local.set $to (i32.add (local.get $to) (i32.const 8)))
      (br_if $numbers (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end))))
    (f32x4.mul (local.get $largest) (v128.const f32x4 6.10388817e-5 6.10388817e-5 6.10388817e-5 6.10388817e-5)))

  ;; y[j] = sum over i of x[i] w[i, j], for `numIn` numbers of x, in double precision.
  (func (export "combine") (param $x i32) (param $w i32) (param $y i32) (param $numIn i32) (param $size i32)
    (local $end i32) (local $i i32) (local $at i32) (local $v v128) (local $factor v128) (local $low v128) (local $high v128)
    (local.set $end (i32.add (local.get $y) (local.get $size)))
    (loop $columns
      (local.set $low (v128.const f64x2 0 0))
      (local.set $high (local.get $low))
      (local.set $at (local.get $w))
      (local.set $i (i32.const 0))
      (block $none
        (br_if $none (i32.eqz (local.get $numIn)))
        (loop $numbers
          (local.set $factor (f64x2.promote_low_f32x4 (v128.load32_splat (i32.add (local.get $x) (i32.shl (local.get $i) (i32.const 2))))))
          (local.set $v (v128.load (local.get $at)))
          (local.set $low (f64x2.add (local.get $low) (f64x2.mul (local.get $factor) (f64x2.promote_low_f32x4 (local.get $v)))))
          (local.set $v (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $v) (local.get $v)))
          (local.set $high (f64x2.add (local.get $high) (f64x2.mul (local.get $factor) (f64x2.promote_low_f32x4 (local.get $v)))))
          (local.set $at (i32.add (local.get $at) (local.get $size)))
          (br_if $numbers (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $numIn)))))
      (v128.store (local.get $y) (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23
        (f32x4.demote_f64x2_zero (local.get $low)) (f32x4.demote_f64x2_zero (local.get $high))))
      (local.set $w (i32.add (local.get $w) (i32.const 16)))
      (br_if $columns (i32.lt_u (local.tee $y (i32.add (local.get $y) (i32.const 16))) (local.get $end)))))

  ;; x + y if `isSum`, otherwise x y, number by number.
  (func (export "merge") (param $out i32) (param $size i32) (param $x i32) (param $y i32) (param $isSum i32)
    (local $at i32) (local $v v128) (local $w v128)
    (loop $numbers
      (local.set $v (v128.load (i32.add (local.get $x) (local.get $at))))
      (local.set $w (v128.load (i32.add (local.get $y) (local.get $at))))
      (v128.store (i32.add (local.get $out) (local.get $at)) (select
        (f32x4.add (local.get $v) (local.get $w))
        (f32x4.mul (local.get $v) (local.get $w))
        (local.get $isSum)))
      (br_if $numbers (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $size)))))

  ;; e to the power of each number: 2^n e^rest with a polynomial for the rest, as in Cephes' expf; 0 below -87.
  (func $exp (param $x v128) (result v128)
    (local $n v128) (local $rest v128) (local $sum v128)
    (local.set $rest (f32x4.max (f32x4.min (local.get $x) (v128.const f32x4 87 87 87 87)) (v128.const f32x4 -87 -87 -87 -87)))
    (local.set $n (f32x4.nearest (f32x4.mul (local.get $rest) (v128.const f32x4 1.44269504 1.44269504 1.44269504 1.44269504))))
    (local.set $rest (f32x4.sub (local.get $rest) (f32x4.mul (local.get $n) (v128.const f32x4 0.693359375 0.693359375 0.693359375 0.693359375))))
    (local.set $rest (f32x4.add (local.get $rest) (f32x4.mul (local.get $n) (v128.const f32x4 2.12194440e-4 2.12194440e-4 2.12194440e-4 2.12194440e-4))))
    (local.set $sum (v128.const f32x4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4))
    (local.set $sum (f32x4.add (f32x4.mul (local.get $sum) (local.get $rest)) (v128.const f32x4 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3)))
    (local.set $sum (f32x4.add (f32x4.mul (local.get $sum) (local.get $rest)) (v128.const f32x4 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3)))
    (local.set $sum (f32x4.add (f32x4.mul (local.get $sum) (local.get $rest)) (v128.const f32x4 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2)))
    (local.set $sum (f32x4.add (f32x4.mul (local.get $sum) (local.get $rest)) (v128.const f32x4 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1)))
    (local.set $sum (f32x4.add (f32x4.mul (local.get $sum) (local.get $rest)) (v128.const f32x4 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1)))
    (local.set $sum (f32x4.add (f32x4.mul (f32x4.mul (local.get $sum) (local.get $rest)) (local.get $rest)) (local.get $rest)))
    (local.set $sum (f32x4.add (local.get $sum) (v128.const f32x4 1 1 1 1)))
    (v128.andnot
      (f32x4.mul (local.get $sum) (i32x4.shl (i32x4.add (i32x4.trunc_sat_f32x4_s (local.get $n)) (v128.const i32x4 127 127 127 127)) (i32.const 23)))
      (f32x4.lt (local.get $x) (v128.const f32x4 -87 -87 -87 -87))))

  ;; scale / (1 + exp(factor x)) + offset for each x, in place.
  (func (export "logistic") (param $at i32) (param $size i32) (param $factor f32) (param $scale f32) (param $offset f32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (loop $numbers
      (v128.store (local.get $at) (f32x4.add (f32x4.splat (local.get $offset)) (f32x4.div (f32x4.splat (local.get $scale))
        (f32x4.add (v128.const f32x4 1 1 1 1) (call $exp (f32x4.mul (f32x4.splat (local.get $factor)) (v128.load (local.get $at))))))))
      (br_if $numbers (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end)))))

  ;; exp(x - shift) for each x, in place. The result is their sum in double precision, in which small numbers are not lost.
  (func (export "exponentials") (param $at i32) (param $size i32) (param $shift f32) (result f64)
    (local $end i32) (local $power v128) (local $total v128)
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (loop $numbers
      (local.set $power (call $exp (f32x4.sub (v128.load (local.get $at)) (f32x4.splat (local.get $shift)))))
      (v128.store (local.get $at) (local.get $power))
      (local.set $total (f64x2.add (local.get $total) (f64x2.promote_low_f32x4 (local.get $power))))
      (local.set $power (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $power) (local.get $power)))
      (local.set $total (f64x2.add (local.get $total) (f64x2.promote_low_f32x4 (local.get $power))))
      (br_if $numbers (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
    (f64.add (f64x2.extract_lane 0 (local.get $total)) (f64x2.extract_lane 1 (local.get $total)))))
