"""A user's choices about capture and names. Imports nothing, so that options can be read without PyTorch."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

CaptureWay: TypeAlias = Literal["export", "trace"]
CAPTURE_WAYS: tuple[CaptureWay, ...] = get_args(CaptureWay)
NamingScheme: TypeAlias = Literal["natural", "raw", "numeric"]
NAMING_SCHEMES: tuple[NamingScheme, ...] = get_args(NamingScheme)
TrainingWay: TypeAlias = Literal["evaluate", "refuse"]
TRAINING_WAYS: tuple[TrainingWay, ...] = get_args(TrainingWay)
