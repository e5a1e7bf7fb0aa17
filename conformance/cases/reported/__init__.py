"""The nets of suite `reported`: small ones with what public reports say that other exporters refuse or get wrong.

Each is right at all its sizes, most of which differ from the traced ones.
"""
