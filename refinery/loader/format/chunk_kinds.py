"""What most of a chunk is (docs/code-lane.md). `chunk_kind` of packed rows is the place in this list. No library."""

CHUNK_KINDS = (
    "FUNC_BODY",
    "CLASS_DECL",
    "TYPEDEF",
    "NAMESPACE",
    "FUNC_SIGNATURE",
    "CLASS_MEMBER",
    "PREAMBLE",
    "COMMENT",
    "OTHER",
)
