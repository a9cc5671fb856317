"""Languages of the code lane: one entry each with its file names, its grammar, and what its syntax nodes are.

A language is added by an entry of `LANGUAGES`, and its grammar by a line in setup.py; nothing else knows them. Node
types are those of the grammar's node-types.json at the pinned version; an unknown type is OTHER, never an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import tree_sitter
import tree_sitter_c
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript

from refinery.loader.format.chunk_kinds import CHUNK_KINDS

KINDS = CHUNK_KINDS
FUNC_BODY, CLASS_DECL, TYPEDEF, NAMESPACE, FUNC_SIGNATURE, CLASS_MEMBER, PREAMBLE, COMMENT, OTHER = KINDS
SELF_CONTAINED = frozenset({FUNC_BODY, CLASS_DECL, TYPEDEF, NAMESPACE})
"""Kinds that mean the same wherever they stand; whole ones may be compared only with each other."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class SourceLanguage:
    """A programming language. Compared by identity of its parts.

    endings: of file names, lower case. grammar: the capsule of its tree-sitter grammar. kinds: node type -> kind.
    wrappers: node types that are what their largest child is. declarations: node types that are a FUNC_SIGNATURE where
    a function is declared in them. declarators: node types that show this. leading: node types that belong to
    what follows them. trailing: node types that belong to what stands before them. comments: node types of comments.
    line_comment: the sign of those that end with their line; "" where it is not known, and the tree alone tells them.
    block_comment: signs of the others: "", "/* */", or "/* /* */ */" where they nest.
    """

    name: str
    endings: tuple[str, ...]
    grammar: Callable[[], object]
    kinds: Mapping[str, str]
    wrappers: frozenset[str] = frozenset()
    declarations: frozenset[str] = frozenset()
    declarators: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset()
    trailing: frozenset[str] = frozenset({"else_clause", "catch_clause", "finally_clause", "except_clause"})
    comments: frozenset[str] = field(default_factory=lambda: frozenset({"comment"}))
    line_comment: str = ""
    block_comment: str = ""

    def parser(self) -> tree_sitter.Parser:
        """A new parser."""
        return tree_sitter.Parser(load_grammar(self.name))


@cache
def load_grammar(name: str) -> tree_sitter.Language:
    """The grammar of one of LANGUAGES, loaded once per process."""
    return tree_sitter.Language(LANGUAGES[name].grammar())


def _kinds(**types: str) -> Mapping[str, str]:
    """Node type -> kind, from kind -> node types."""
    return MappingProxyType({one: kind for kind, text in types.items() for one in text.split()})


_C_WRAPPERS = "preproc_ifdef preproc_if preproc_elif preproc_else linkage_specification declaration_list ERROR"
_C_PREAMBLE = "preproc_include preproc_call"
_C_COMMON: dict[str, Any] = {
    "declarations": _words("declaration"),
    "declarators": _words("function_declarator abstract_function_declarator operator_cast"),
}
_JS_KINDS = {
    "FUNC_BODY": "function_declaration generator_function_declaration function_expression arrow_function",
    "PREAMBLE": "import_statement hash_bang_line",
    "CLASS_MEMBER": "method_definition field_definition public_field_definition class_static_block",
}
_JS_WRAPPERS = _words("export_statement lexical_declaration variable_declaration variable_declarator ERROR")
_TS_KINDS = _kinds(
    **_JS_KINDS,
    CLASS_DECL="class_declaration abstract_class_declaration interface_declaration enum_declaration",
    TYPEDEF="type_alias_declaration",
    NAMESPACE="internal_module module",
    FUNC_SIGNATURE="function_signature method_signature abstract_method_signature",
)
_TS_WRAPPERS = _JS_WRAPPERS | _words("ambient_declaration expression_statement")

_ALL = (
    SourceLanguage(
        name="c",
        endings=(".c", ".h"),
        grammar=tree_sitter_c.language,
        line_comment="//",
        block_comment="/* */",
        kinds=_kinds(
            FUNC_BODY="function_definition",
            CLASS_DECL="struct_specifier union_specifier enum_specifier",
            TYPEDEF="type_definition",
            PREAMBLE=_C_PREAMBLE,
            CLASS_MEMBER="field_declaration",
        ),
        wrappers=_words(_C_WRAPPERS),
        **_C_COMMON,
    ),
    SourceLanguage(
        name="cpp",
        endings=(".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".inl", ".ipp", ".tcc"),
        grammar=tree_sitter_cpp.language,
        line_comment="//",
        block_comment="/* */",
        kinds=_kinds(
            FUNC_BODY="function_definition",
            CLASS_DECL="class_specifier struct_specifier union_specifier enum_specifier",
            TYPEDEF="type_definition alias_declaration concept_definition",
            NAMESPACE="namespace_definition",
            PREAMBLE=f"{_C_PREAMBLE} using_declaration namespace_alias_definition",
            CLASS_MEMBER="field_declaration friend_declaration access_specifier",
        ),
        wrappers=_words(f"{_C_WRAPPERS} template_declaration"),
        leading=_words("access_specifier template_parameter_list requires_clause"),
        **_C_COMMON,
    ),
    SourceLanguage(
        name="python",
        endings=(".py", ".pyi", ".pyw"),
        grammar=tree_sitter_python.language,
        line_comment="#",
        kinds=_kinds(
            FUNC_BODY="function_definition",
            CLASS_DECL="class_definition",
            TYPEDEF="type_alias_statement",
            PREAMBLE="import_statement import_from_statement future_import_statement",
        ),
        wrappers=_words("decorated_definition ERROR"),
        leading=_words("decorator"),
        trailing=_words("else_clause elif_clause except_clause finally_clause"),
    ),
    SourceLanguage(
        name="java",
        endings=(".java",),
        grammar=tree_sitter_java.language,
        line_comment="//",
        block_comment="/* */",
        kinds=_kinds(
            FUNC_BODY="method_declaration constructor_declaration compact_constructor_declaration",
            CLASS_DECL="class_declaration interface_declaration enum_declaration record_declaration"
            " annotation_type_declaration",
            PREAMBLE="package_declaration import_declaration",
            NAMESPACE="module_declaration",
            CLASS_MEMBER="field_declaration static_initializer",
        ),
        wrappers=_words("ERROR"),
        comments=_words("line_comment block_comment"),
    ),
    SourceLanguage(
        name="javascript",
        endings=(".js", ".mjs", ".cjs", ".jsx"),
        grammar=tree_sitter_javascript.language,
        line_comment="//",
        block_comment="/* */",
        kinds=_kinds(**_JS_KINDS, CLASS_DECL="class_declaration class"),
        wrappers=_JS_WRAPPERS,
        leading=_words("decorator"),
    ),
    SourceLanguage(
        name="typescript",
        endings=(".ts", ".mts", ".cts"),
        grammar=tree_sitter_typescript.language_typescript,
        line_comment="//",
        block_comment="/* */",
        kinds=_TS_KINDS,
        wrappers=_TS_WRAPPERS,
        leading=_words("decorator"),
    ),
    SourceLanguage(
        name="tsx",
        endings=(".tsx",),
        grammar=tree_sitter_typescript.language_tsx,
        line_comment="//",
        block_comment="/* */",
        kinds=_TS_KINDS,
        wrappers=_TS_WRAPPERS,
        leading=_words("decorator"),
    ),
    SourceLanguage(
        name="go",
        endings=(".go",),
        grammar=tree_sitter_go.language,
        line_comment="//",
        block_comment="/* */",
        kinds=_kinds(
            FUNC_BODY="function_declaration method_declaration",
            TYPEDEF="type_declaration",
            PREAMBLE="package_clause import_declaration",
        ),
        wrappers=_words("ERROR"),
    ),
    SourceLanguage(
        name="rust",
        endings=(".rs",),
        grammar=tree_sitter_rust.language,
        line_comment="//",
        block_comment="/* /* */ */",
        kinds=_kinds(
            FUNC_BODY="function_item",
            CLASS_DECL="struct_item enum_item union_item trait_item impl_item",
            TYPEDEF="type_item",
            NAMESPACE="mod_item foreign_mod_item",
            FUNC_SIGNATURE="function_signature_item",
            PREAMBLE="use_declaration extern_crate_declaration inner_attribute_item",
        ),
        wrappers=_words("ERROR"),
        leading=_words("attribute_item"),
        comments=_words("line_comment block_comment"),
    ),
)
LANGUAGES: Mapping[str, SourceLanguage] = MappingProxyType({one.name: one for one in _ALL})
LIBRARIES = ("tree-sitter", *sorted({one.grammar.__module__.split(".")[0].replace("_", "-") for one in _ALL}))
"""Distributions whose versions decide what a tree looks like."""
_BY_ENDING = {ending: one.name for one in _ALL for ending in one.endings}

# What C does not have. A header of C with `extern "C"` under __cplusplus stays C.
_CPP_WORDS = re.compile(
    r"^[ \t]*(?:namespace\b|template[ \t]*<|class[ \t]+\w|using[ \t]+\w|(?:public|private|protected)[ \t]*:|constexpr\b"
    r"|#[ \t]*include[ \t]*<\w+>)|\w::[~\w]",
    re.MULTILINE,
)


def language_of(path: str, text: str) -> str:
    """Name of a file's language, by the ending of its name; "" for none. Linear in `text`, which decides for .h."""
    name = path.rsplit("/", 1)[-1].lower()
    ending = name[name.rfind(".") :] if "." in name else ""
    if ending == ".h" and _CPP_WORDS.search(text):
        return "cpp"
    return _BY_ENDING.get(ending, "")
