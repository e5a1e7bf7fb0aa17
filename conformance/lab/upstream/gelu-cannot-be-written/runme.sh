#!/bin/sh

cd $(dirname $0)
set -ex

: ${TRACT_RUN:=cargo run -p tract-cli $CARGO_OPTS --}

# A model with an exact `gelu` cannot be written as NNEF
$TRACT_RUN --nnef-tract-core . --nnef-cycle-declutter -O --input-facts-from-bundle ./io.npz run --input-from-bundle io.npz --assert-output-bundle io.npz --approx super
