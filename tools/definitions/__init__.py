"""The pages of the operators' definitions, which the site gets when it is built."""
