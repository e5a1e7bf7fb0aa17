"""The sizes of a captured model: what is declared, decided and refused."""
