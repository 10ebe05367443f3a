"""The values that settings and options of inference can have."""

from __future__ import annotations

from typing import Literal, get_args

Mode = Literal["single", "multi", "text", "tools", "desktop"]
MODES: tuple[Mode, ...] = get_args(Mode)

Feedback = Literal["row-exec", "react-exec", "row-react-exec"]
DEFAULT_FEEDBACK: Feedback = "row-react-exec"

ContentForm = Literal["pandas", "markdown", "csv", "addresses", "info"]
CONTENT_FORMS: tuple[ContentForm, ...] = get_args(ContentForm)
"""How the cells of a workbook are written in a prompt; ``info`` describes the columns."""

PictureForm = Literal["each", "stitched", "none"]
PICTURE_FORMS: tuple[PictureForm, ...] = get_args(PictureForm)
"""How pictures are shown: one by one, joined into one picture, or only by their names."""

PICTURE_TYPES = ("png", "jpeg", "webp", "gif")
"""The types of pictures that chat models accept; not every server accepts all of them."""

CODE_WITH_ANSWER_CHOICES = ("end", "run")
"""How a program in a reply that also announces the answer is treated: it is not run, or it is
run."""
