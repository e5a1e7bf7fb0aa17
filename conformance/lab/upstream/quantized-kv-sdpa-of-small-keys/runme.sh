#!/bin/sh

cd $(dirname $0)
set -ex

: ${TRACT_RUN:=cargo run -p tract-cli $CARGO_OPTS --}

# `tract_transformers_quantized_kv_sdpa` rounds keys in steps of at least 1
$TRACT_RUN --nnef-tract-core --nnef-tract-transformers . -O --input-facts-from-bundle ./io.npz run --input-from-bundle io.npz --assert-output-bundle io.npz --approx close
