"""Source files for tests: one that each rule of the stages for source code meets, and ones that all of them keep."""

from collections.abc import Iterator

from refinery.transforms.core.document import Document, document_id


def source_files() -> tuple[Document, ...]:
    """The files as documents."""
    return tuple(
        Document(document_id(text), text, f"a/b@0/{path}", "repos", f"files@{i}", i, {"path": path, **more})
        for i, (path, text, more) in enumerate(code_files())
    )


def code_files() -> Iterator[tuple[str, str, dict[str, str]]]:
    """(path, text, notes) of files that every rule of the stages for source code meets, and of ones that it keeps."""
    body = "".join(f"int f{i}(int a)\n{{\n    // adds {i}\n    return a + {i};\n}}\n\n" for i in range(40))
    for name, text in (
        ("src/a.c", body),
        ("src/a.h", "#pragma once\n" + body.replace("{\n    // adds", ";\n/* {")),
        ("src/a.cpp", f"#include <map>\nnamespace n {{\nclass A {{\n  int b;\n  void c();\n}};\n{body}}}\n"),
        ("src/a.py", "".join(f"def f{i}(a):\n    # adds {i}\n    return a + {i}\n\n\n" for i in range(40))),
        ("vendor/a.c", body),
        ("src/b.c", "/* automatically generated */\n" + body),
        ("src/c.c", "// a word of comment\n" * 30 + "".join(f"// line {i} of comment\n" for i in range(90))),
        ("src/d.c", "int t[] = {\n" + "".join(f"{i * 7919}, {i * 104729},\n" for i in range(400)) + "};\n"),
        ("src/e.c", body + "x" * 2000),
        ("src/f.js", "\n".join("var a" + "=b,c" * 60 + f"{i};" for i in range(20))),
        ("src/g.c", "int a;\n" * 60),
        ("src/h.c", "int a;\n"),
        ("src/i.txt", body),
    ):
        yield name, text, {"repo_license": "MIT"}
    yield "src/a.c", "// SPDX-License-Identifier: Apache-2.0\n" + body, {}
    yield "src/a.c", "/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */\n" + body, {}
    yield (
        "src/a.c",
        "// GNU General Public License, version 3 of the License\n" + body,
        {"repo_license": "GPL-3.0-only"},
    )
    yield "src/a.c", body, {}
    yield "src/a.c", "// SPDX-License-Identifier: LGPL-2.1-or-later\n" + body, {}
