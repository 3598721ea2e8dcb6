;; y[r, o] = sum over i of x[r, i] w[o, i], for `numRows` rows of x and `numOut` of w, four of them at once: they stay in
;; the cache while the rows of x pass. `numOut` is at least 4 and `size`, the bytes of a row, a multiple of 16; the last
;; four overlap those before if `numOut` is no multiple of 4.
(module
  (memory (import "" "memory") 1)
  (func $sum (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))
  (func (export "multiply") (param $x i32) (param $w i32) (param $y i32) (param $numOut i32) (param $size i32) (param $numRows i32)
    (local $o i32) (local $i i32) (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $out i32) (local $in i32) (local $left i32)
    (local $v v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $groups
      (local.set $i (i32.sub (local.get $numOut) (i32.const 4)))
      (local.set $i (select (local.get $o) (local.get $i) (i32.lt_u (local.get $o) (local.get $i))))
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
        (f32.store offset=0 (local.get $out) (call $sum (local.get $a)))
        (f32.store offset=4 (local.get $out) (call $sum (local.get $b)))
        (f32.store offset=8 (local.get $out) (call $sum (local.get $c)))
        (f32.store offset=12 (local.get $out) (call $sum (local.get $d)))
        (local.set $in (i32.add (local.get $in) (local.get $size)))
        (local.set $out (i32.add (local.get $out) (i32.shl (local.get $numOut) (i32.const 2))))
        (br_if $rows (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (br_if $groups (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $numOut))))))
