"""A licence file is allowed by what covers it, and a file's own terms are never its repository's licence."""

import numpy as np
import pytest

from refinery.transforms.code.licences.license_comments import head_comments
from refinery.transforms.code.licences.license_cover import DATA, SHINGLE, cover, known, shingle_hashes, split_words
from refinery.transforms.code.licences.license_expressions import licence_class
from refinery.transforms.code.licences.license_files import is_licence_file, licence_in, licences_of_tree
from refinery.transforms.code.licences.license_notices import UNKNOWN, declared
from refinery.transforms.code.licences.license_rules import DENIED
from refinery.transforms.code.licences.licenses import identify_file, licence_of
from refinery.transforms.code.license_stage import LicenseParams, judge_license
from refinery.transforms.core.document import Drop
from tests.beam import make_document

MIT = """MIT License

Copyright (c) 2020 Anna Berg, Old Mill Research GmbH

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
CONDITIONS = [
    MIT + "\nThe Software may only be run on devices that the licensor has sold.\n",
    MIT + "\nAny commercial use needs a written agreement.\n",
    MIT.replace("is hereby granted", "is hereby granted for evaluation").replace("MIT License", "Licence"),
    MIT.replace("to use, copy, modify, merge", "to use, copy, merge"),  # a right left out
    MIT.replace("Permission is hereby granted", "Permission is hereby not granted"),
    "Directories named ee/ are under the Enterprise License, see ee/LICENSE. All other content is under:\n\n" + MIT,
    "These are the terms of Nobody in Particular. You may look at the software, with MIT licensed parts in it.\n" * 9,
    "Dual licensed under the MIT license or a commercial license; contact us.\n",
    MIT.replace("to any person obtaining", "to any student obtaining"),
    MIT.replace("furnished to do so,", "furnished to do so on Sundays,"),
    MIT.replace("to deal\nin the Software", "to deal at home\nin the Software"),
    MIT + "\nKommerzielle Nutzung für Händler ist untersagt.\n",
    MIT + "\nБез согласия автора нельзя.\n",
    MIT + "\n禁止商用。\n",
    MIT + "\nN\u00ado com\u200bmercial u\u00adse.\n",
    MIT + "\nCopyright 2020 Anna Berg excludes big companies.\n",
    MIT + "\nBig firms owe Anna Berg ten crowns.\n",
    MIT + " " * 80_000 + "You may not use it.\n",
    MIT * 80,
    "Ask us.\n",
]


def test_a_known_text_is_its_licence_whoever_has_the_copyright() -> None:
    assert identify_file(MIT) == "MIT"
    assert identify_file("Gauges, a library of the Old Mill.\n\n" + MIT) == "MIT"
    assert identify_file("") == "" == identify_file("Copyright 2020 Anna Berg\n")


@pytest.mark.parametrize("text", CONDITIONS)
def test_what_is_left_may_be_a_condition(text: str) -> None:
    found = identify_file(text)
    assert found and licence_class(found) == DENIED


@pytest.mark.parametrize(
    "header",
    [
        "# Licensed under CC BY-NC 4.0",
        "# Licence: OSL-3.0",
        "// Licensed under the EUPL, see the text of the licence",
        "/* Ce logiciel est régi par la licence CeCILL */",
        "/* Copyright 2008 Somebody (GPL) */",
        "# for research purposes only",
        "// This code may not be used in products.",
        "# Released under the Llama 3 Community License Agreement",
        "// Licensed under the Functional Source License, Version 1.1",
        "# Use of this software is governed by the Business Source License",
        "// Licensed under the MIT license for non-commercial use",
        "__license__ = 'Proprietary'",
        'x\nMODULE_LICENSE("GPL v2");',
        "# spdx-license-identifier: LicenseRef-Ours",
        "// SPDX-License-Identifier: MIT OR LicenseRef-Ours",
        "x = 1\n" * 3_000 + "# SPDX-License-Identifier: GPL-2.0-only\n",
        "// Not public domain!\n",
        "// Die Nutzung in Firmen ist untersagt",
        "// 禁止商用",
        "# Toute reproduction est interdite",
        "# Использование в коммерческих целях запрещено",
        "// 無断転載を禁じます",
        "// Licensed under the MIT license for non\u200b-com\u00admercial use",
        f"__license__ = '{'MIT ' * 60}'",
    ],
)
def test_terms_of_its_own_are_not_the_licence_of_the_repository(header: str) -> None:
    doc = make_document(f"{header}\n\nint x;\n", meta={"repo_license": "MIT", "path": "a.c"})
    assert isinstance(judge_license(doc, LicenseParams()), Drop)


@pytest.mark.parametrize(
    "header",
    [
        "// This file is not covered by the GPL.",
        "# Parses headers such as the GNU General Public License and says which one it is.",
        "// See the accompanying LICENSE file for the terms.",
        "// Use of this source code is governed by a license that can be found in the LICENSE file.",
        '#include <stdio.h>\nstatic const char *text = "GNU General Public License";',
        "// intended only for internal use",
        'TAG = "SPDX-License-Identifier: GPL-2.0-only"',
        "int licenses = 3; // permission denied",
    ],
)
def test_a_mention_drops_nothing(header: str) -> None:
    assert licence_of(f"{header}\n\nint x;\n", "Zlib") == ("Zlib", "file")


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        ("MIT", "MIT"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("MIT/Apache-2.0", "MIT OR Apache-2.0"),
        ("Apache 2.0", "Apache-2.0"),
        ("Dual BSD/GPL", "BSD-3-Clause OR GPL-2.0-only"),
        ("GPL v3", "GPL-3.0-only"),
        ("Proprietary", UNKNOWN),
        ("MIT, non-commercial", UNKNOWN),
        ("UNLICENSED", UNKNOWN),
        ("MIT for hobbyists", UNKNOWN),
        ("not MIT", UNKNOWN),
        ("modified MIT", UNKNOWN),
        ("MIT, paid for companies", UNKNOWN),
        ("MIT " * 60, UNKNOWN),
        ("The MIT License", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("LGPL v2.1 or later", "LGPL-2.1-or-later"),
        ("GPL, for hobbyists", "GPL-2.0-only"),
    ],
)
def test_declarations(value: str, expression: str) -> None:
    assert declared(value) == expression


@pytest.mark.parametrize(
    ("path", "text", "expression"),
    [
        ("package.json", '{"license": "MIT"}', "MIT"),
        ("package.json", '{"licenses": [{"type": "MIT"}, {"type": "Zlib"}]}', "MIT AND Zlib"),
        ("package.json", '{"license": "SEE LICENSE IN LICENSE"}', ""),
        ("package.json", '{"license": "UNLICENSED"}', UNKNOWN),
        ("package.json", '["license"]', ""),
        ("package.json", "{", ""),
        ("Cargo.toml", '[package]\nlicense = "MIT OR Apache-2.0"\n', "MIT OR Apache-2.0"),
        ("pyproject.toml", '[project]\nlicense = {text = "BSD-3-Clause"}\n', "BSD-3-Clause"),
        ("pyproject.toml", '[tool.poetry]\nlicense = "GPL-3.0-only"\n', "GPL-3.0-only"),
        ("pyproject.toml", "[project]\nname = 'x'\n", ""),
        (
            "pom.xml",
            "<licenses><license><name>The Apache License, Version 2.0</name></license></licenses>",
            "Apache-2.0",
        ),
        ("pom.xml", "<licenses><license><name>Ours</name></license></licenses>", UNKNOWN),
        ("package.json", '{"license": {"name": "Ours"}}', UNKNOWN),
        ("package.json", '{"license": "MIT", "licenses": ["Ours"]}', UNKNOWN),
        ("package.json", '{"license": "SEE LICENSE IN EULA.txt"}', UNKNOWN),
        ("package.json", '{"license": "Ours",', UNKNOWN),
        ("package.json", '{"license": 5}', UNKNOWN),
        ("Cargo.toml", '[package]\nlicense-file = "EULA.txt"\n', UNKNOWN),
        ("Cargo.toml", '[package]\nlicense-file = "../LICENSE"\n', ""),
        ("Cargo.toml", "[package]\nlicense.workspace = true\n", ""),
        ("pyproject.toml", '[project]\nlicense = {file = "TERMS"}\n', UNKNOWN),
        ("pyproject.toml", '[project]\nlicense = {file = "LICENSE.txt"}\n', ""),
        ("pyproject.toml", '[project]\nclassifiers = ["License :: Other/Proprietary License"]\n', UNKNOWN),
        ("pyproject.toml", '[project]\nclassifiers = ["License :: OSI Approved :: MIT License"]\n', "MIT"),
        ("pyproject.toml", '[project]\nclassifiers = ["License :: OSI Approved :: Apache Software License"]\n', ""),
        ("pom.xml", "<license><name>MIT</name><comments>Not for commercial use</comments></license>", UNKNOWN),
        ("pom.xml", "<license><name>MIT</name><comments>A good one</comments></license>", "MIT"),
        ("pom.xml", "<license>" * 9_000, UNKNOWN),
        ("EULA.txt", "Ours alone; you may not use it.\n", UNKNOWN),
        ("TERMS.md", "Look, and buy.\n", UNKNOWN),
        ("LICENSE", "\n" + "-" * 79_000, ""),
        ("LICENSE", "SPDX-License-Identifier: MIT\n" + "alternatively " * 5_000, UNKNOWN),
        ("LICENSE", MIT + " \n" * 50_000, "MIT"),
        ("LICENSE", (MIT + " " * 80_000)[:80_000], UNKNOWN),
        ("license.py", "LICENCES = ['GPL', 'permission is denied']\n" * 9, ""),
        ("LICENSE", "Ours alone; you may not use it.\n", UNKNOWN),
        ("LICENSES/MIT.txt", MIT, "MIT"),
    ],
)
def test_what_files_say(path: str, text: str, expression: str) -> None:
    assert is_licence_file(path) and licence_in(path, text) == expression


@pytest.mark.parametrize(
    ("files", "allowed"),
    [
        ({"COPYING": "GNU GENERAL PUBLIC LICENSE Version 2", "LICENSE.Apache": "Apache License\nVersion 2.0"}, True),
        ({"LICENSE": "GNU GENERAL PUBLIC LICENSE Version 2", "LICENSE.Apache": "Apache License\nVersion 2.0"}, False),
        (
            {"LICENSE.AGPLv3": "GNU Affero General Public License", "LICENSE.APACHEv2": "Apache License\nVersion 2.0"},
            True,
        ),
        ({"LICENSE-MIT": MIT, "LICENSE-OURS": "You may not use this for commercial purposes."}, False),
        ({"LICENSE": "You may not use this for commercial purposes.", "package.json": '{"license": "MIT"}'}, False),
        ({"LICENSE": MIT, "package.json": '{"license": "UNLICENSED"}'}, False),
        ({"package.json": '{"license": "MIT"}'}, True),
        ({"LICENSES/MIT.txt": MIT, "LICENSES/Ours.txt": "You may not use this for commercial purposes."}, False),
        ({"LICENSES/MIT.txt": MIT}, True),
    ],
)
def test_several_files_of_a_folder(files: dict[str, str], allowed: bool) -> None:
    assert (licence_class(licences_of_tree(files.items())[""]) != DENIED) is allowed


def test_below_unknown_terms_the_licence_further_up_does_not_hold() -> None:
    folders = licences_of_tree([("LICENSE", MIT), ("ee/LICENSE", "You may not use this for commercial purposes.")])
    assert folders == {"": "MIT", "ee": UNKNOWN}


def test_the_data_says_whose_it_is_and_has_no_text() -> None:
    with np.load(DATA) as data:
        assert "CC-BY-4.0" in bytes(data["attribution"]).decode() and data["hashes"].dtype == np.uint32
    assert DATA.stat().st_size < 10 << 20
    assert all(licence_class(name) != DENIED or "gpl" in name.lower() for name in known().expressions)


def test_a_cut_is_seen() -> None:
    whole, less = split_words(MIT), split_words(MIT.replace("copy, modify, merge", "copy, merge"))
    assert not cover(whole).cut.any() and cover(less).cut.any()
    assert len(shingle_hashes(["a"] * 3)) == 0 and len(shingle_hashes(["a"] * SHINGLE)) == 1


def test_comments_of_many_languages() -> None:
    for text in (
        "# a\n",
        "// a\n",
        "/* a */\n",
        "/*\n * a\n */\n",
        '"""a"""\n',
        "'''\na\n'''\n",
        "-- a\n",
        "; a\n",
        "<!-- a -->",
    ):
        assert head_comments(text + "code a\n").split() == ["a"], text
    assert head_comments("#include <a>\n").strip() == ""
