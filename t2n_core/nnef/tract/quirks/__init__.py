"""Operations that some releases compute wrongly or abort on, each with its replacement; `table.py` lists them."""
