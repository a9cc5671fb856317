"""What a recipe of the lane chat says about its sources."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.task import AUTO, CHAT


class ConversationsParams(SourceParams):
    """A source of conversations, or of texts that bring their spans; as `SourceParams` with other defaults."""

    TEXT_FIELDS: ClassVar[Mapping[str, str]] = {}

    content: Literal["chat", "spans"] = CHAT  # type: ignore[assignment]  # other contents than pages and texts
    """`chat`: conversations, as `messages` of OpenAI or `conversations` of ShareGPT; `spans`: texts, beside which
    `loss_spans` names the characters that are trained, as pairs of start and end"""
    text_field: Annotated[str, Field(min_length=1)] = AUTO
    """field of the turns, or of the text; `auto`: `messages` or `conversations`, whichever a record has, or `text`"""
