#!/bin/sh

cd $(dirname $0)
set -ex

: ${TRACT_RUN:=cargo run -p tract-cli $CARGO_OPTS --}

# `tract_transformers_window_kv_sdpa` is not causal for more than one token a call
$TRACT_RUN --nnef-tract-core --nnef-tract-transformers . -O --input-facts-from-bundle ./io.npz run --input-from-bundle io.npz --assert-output-bundle io.npz --approx close
