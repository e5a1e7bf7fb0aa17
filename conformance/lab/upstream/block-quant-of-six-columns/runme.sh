#!/bin/sh

cd $(dirname $0)
set -ex

: ${TRACT_RUN:=cargo run -p tract-cli $CARGO_OPTS --}

# `block_quant` takes weights whose rows are not made of whole blocks of 32
$TRACT_RUN --nnef-tract-core . -t block_quant -O --input-facts-from-bundle ./io.npz run --input-from-bundle io.npz --assert-output-bundle io.npz --approx super
