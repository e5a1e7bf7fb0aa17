"""Cases of the suite `generative`: models of transformers that generate tokens, small and with random weights."""
