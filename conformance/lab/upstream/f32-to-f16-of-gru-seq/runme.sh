#!/bin/sh

cd $(dirname $0)
set -ex

: ${TRACT_RUN:=cargo run -p tract-cli $CARGO_OPTS --}

# `f32_to_f16` leaves `tract_core_gru_seq` with weights of float16 that it packs as float32
$TRACT_RUN --nnef-tract-core . -t f32_to_f16 -O --input-facts-from-bundle ./io.npz run --input-from-bundle io.npz --assert-output-bundle io.npz --approx super --allow-float-casts
