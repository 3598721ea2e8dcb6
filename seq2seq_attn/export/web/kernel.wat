;; Products and exponentials of float32, four numbers at once. Sizes are in bytes. `multiply` needs rows of a multiple of 16
;; bytes; the other two functions work in place, up to three numbers behind the end.
(module
  (memory (import "" "memory") 1)
  ;; y[r, o] = bias[o] + sum over i of x[r, i] w[o, i], for `numRows` rows of x and `numOut` of w. Four rows of w stay in the cache while
  ;; those of x pass. The last four overlap those before if `numOut` is no multiple of 4; if it is below 4, rows behind w
  ;; are read, and what they make is overwritten by the next row of y.
  (func (export "multiply") (param $x i32) (param $w i32) (param $bias i32) (param $y i32) (param $numOut i32) (param $size i32) (param $numRows i32)
    (local $o i32) (local $i i32) (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $out i32) (local $in i32) (local $left i32)
    (local $added v128) (local $v v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $groups
      (local.set $i (i32.sub (local.get $numOut) (i32.const 4)))
      (local.set $i (select (local.get $o) (local.get $i) (i32.lt_u (local.get $o) (local.get $i))))
      (local.set $added (v128.load (i32.add (local.get $bias) (i32.shl (local.get $i) (i32.const 2)))))
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
        ;; the sums of a, b, c and d: halves first, then pairs
        (local.set $v (f32x4.add
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
        (local.set $c (f32x4.add
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $c) (local.get $d))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $c) (local.get $d))))
        (v128.store (local.get $out) (f32x4.add (local.get $added) (f32x4.add
          (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $v) (local.get $c))
          (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $v) (local.get $c)))))
        (local.set $in (i32.add (local.get $in) (local.get $size)))
        (local.set $out (i32.add (local.get $out) (i32.shl (local.get $numOut) (i32.const 2))))
        (br_if $rows (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (br_if $groups (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $numOut)))))

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

  ;; scale / (1 + exp(factor x)) + offset for each x.
  (func (export "logistic") (param $at i32) (param $size i32) (param $factor f32) (param $scale f32) (param $offset f32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $size)))
    (loop $numbers
      (v128.store (local.get $at) (f32x4.add (f32x4.splat (local.get $offset)) (f32x4.div (f32x4.splat (local.get $scale))
        (f32x4.add (v128.const f32x4 1 1 1 1) (call $exp (f32x4.mul (f32x4.splat (local.get $factor)) (v128.load (local.get $at))))))))
      (br_if $numbers (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end)))))

  ;; exp(x - shift) for each x; the sum of all, in double precision, as small numbers would be lost beside 1.
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
