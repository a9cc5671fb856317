# ruff: noqa: E501 - a rule is a line
"""Which words say which licence, and what may be done with code under each.

Names are those of SPDX; a LicenseRef is what it has none for. Phrases are compared with normalised text: small letters,
digits and "+", everything else one space.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

PERMISSIVE, WEAK, KERNEL, DENIED = "permissive", "weak-copyleft", "gpl-2.0-kernel", "denied"

_PERMISSIVE = """
0BSD AAL Adobe-2006 Adobe-Glyph AFL-1.1 AFL-1.2 AFL-2.0 AFL-2.1 AFL-3.0 ANTLR-PD Apache-1.0 Apache-1.1 Apache-2.0
Artistic-2.0 bcrypt-Solar-Designer Beerware Bitstream-Charter Bitstream-Vera blessing BlueOak-1.0.0 Boehm-GC
Boehm-GC-without-fee Brian-Gladman-2-Clause Brian-Gladman-3-Clause BSD-1-Clause BSD-2-Clause BSD-2-Clause-Darwin
BSD-2-Clause-first-lines BSD-2-Clause-Patent BSD-2-Clause-pkgconf-disclaimer BSD-2-Clause-Views BSD-3-Clause
BSD-3-Clause-acpica BSD-3-Clause-Attribution BSD-3-Clause-Clear BSD-3-Clause-flex BSD-3-Clause-HP BSD-3-Clause-LBNL
BSD-3-Clause-Modification BSD-3-Clause-Open-MPI BSD-3-Clause-Sun BSD-4-Clause BSD-4-Clause-Shortened BSD-4-Clause-UC
BSD-4.3RENO BSD-4.3TAHOE BSD-Advertising-Acknowledgement BSD-Attribution-HPND-disclaimer BSD-Inferno-Nettverk
BSD-Source-beginning-file BSD-Source-Code BSD-Systemics BSL-1.0 bzip2-1.0.6 CC-BY-1.0 CC-BY-2.0 CC-BY-3.0 CC-BY-4.0
CC-PDDC CC-PDM-1.0 CC0-1.0 CDLA-Permissive-2.0 Clips CMU-Mach CMU-Mach-nodoc CNRI-Jython CNRI-Python
CNRI-Python-GPL-Compatible curl DOC DocBook-DTD DocBook-Schema DocBook-Stylesheet DocBook-XML dtoa ECL-1.0 ECL-2.0
EFL-1.0 EFL-2.0 eGenix Entessa EPICS Fair FreeBSD-DOC FSFAP FSFUL FSFULLR FSFULLRSD FSFULLRWD FTL GD GLWTPL HPND
HPND-DEC HPND-doc HPND-doc-sell HPND-Fenneberg-Livingston HPND-INRIA-IMAG HPND-Intel HPND-Kevlin-Henney
HPND-Markus-Kuhn HPND-merchantability-variant HPND-MIT-disclaimer HPND-Netrek HPND-Pbmplus
HPND-sell-MIT-disclaimer-xserver HPND-sell-regexpr HPND-sell-variant HPND-sell-variant-MIT-disclaimer
HPND-sell-variant-MIT-disclaimer-rev HPND-UC ICU IJG ImageMagick Info-ZIP Intel ISC ISC-Veillard JasPer-2.0 Latex2e
Leptonica Libpng libpng-1.6.35 libpng-2.0 libselinux-1.0 libtiff libutil-David-Nugent LicenseRef-public-domain
Linux-OpenIB lsof LZMA-SDK-9.22 Martin-Birgmeier metamail Minpack MirOS MIT MIT-0 MIT-advertising MIT-Click MIT-CMU
MIT-enna MIT-feh MIT-Festival MIT-Khronos-old MIT-Modern-Variant MIT-open-group MIT-testregex MIT-Wu MITNFA mpich2
MulanPSL-1.0 MulanPSL-2.0 Multics NAIST-2003 Naumen NCSA NetCDF NIST-PD NIST-PD-fallback NIST-Software NRL NTP NTP-0
OLDAP-2.7 OLDAP-2.8 OpenSSL OpenSSL-standalone PDDL-1.0 PHP-3.0 PHP-3.01 pkgconf PostgreSQL PSF-2.0 psutils Python-2.0
Python-2.0.1 python-ldap radvd RSA-MD Ruby SAX-PD SAX-PD-2.0 SGI-B-2.0 SMLNJ snprintf softSurfer Soundex Spencer-86
Spencer-94 Spencer-99 ssh-keyscan SSH-OpenSSH SSH-short SSLeay-standalone Sun-PPP Sun-PPP-2000 SunPro SWL swrule
Symlinks TCL TCP-wrappers TermReadKey TU-Berlin-2.0 UCAR ulem UMich-Merit Unicode-3.0 Unicode-DFS-2015
Unicode-DFS-2016 Unlicense UPL-1.0 Vim W3C W3C-19980720 W3C-20150513 Widget-Workshop WTFPL X11
X11-distribute-modifications-variant X11-swapped Xfig XFree86-1.1 xinetd xlock Xnet xpp Zed Zend-2.0 Zlib
zlib-acknowledgement ZPL-1.1 ZPL-2.0 ZPL-2.1
"""
_WEAK = """
APSL-2.0 CDDL-1.0 CDDL-1.1 CPL-1.0 EPL-1.0 EPL-2.0 IPL-1.0 LGPL-2.0 LGPL-2.0-only LGPL-2.0-or-later LGPL-2.1 LGPL-2.1-only
LGPL-2.1-or-later LGPL-3.0 LGPL-3.0-only LGPL-3.0-or-later MPL-1.0 MPL-1.1 MPL-2.0 MPL-2.0-no-copyleft-exception MS-PL
"""
CLASSES: Mapping[str, str] = MappingProxyType(
    {name.lower(): PERMISSIVE for name in _PERMISSIVE.split()} | {name.lower(): WEAK for name in _WEAK.split()}
)
"""SPDX identifier in small letters -> PERMISSIVE or WEAK; every other one is DENIED."""

KERNEL_NOTE = "linux-syscall-note"
WEAK_EXCEPTIONS = frozenset(
    [
        "classpath-exception-2.0",
        "gcc-exception-2.0",
        "gcc-exception-3.1",
        "autoconf-exception-2.0",
        "autoconf-exception-3.0",
        "bison-exception-2.2",
        "libtool-exception",
        "ocaml-lgpl-linking-exception",
        "additionref-linking-exception",
    ]
)
# The last one: "with a linking exception", without its text; SPDX has no name for it.
"""Exceptions that make weak copyleft of a GPL: what uses such code may have another licence."""

_BSD = r"redistributions? (?:and|or) use in source (?:and|or) binary forms"
_CLAUSES = r".{0,4000}"  # behind it, in which its clauses stand: the licence has 1,500 characters; bounds the search

# SPDX identifier, words without one of which the expression is not tried, expression on normalised text. All that are
# found count; a rule does not see what one before it took.
_RULES = (
    ("AGPL-3.0-or-later", "affero|agpl", r"affero general public licen[sc]e|\bagpl ?v?3"),
    ("LGPL", "lesser|library general|lgpl", r"(?:lesser|library) general public licen[sc]e|lesser public licen[sc]e|\blgpl\b|\blgpl ?v?[23]"),
    ("GPL", "gnu public|general public|gpl", r"gnu public licen[sc]e|general public licen[sc]e|\bgnu gpl|\bgpl ?v ?[123]|\bgpl [23]|under (?:the )?gpl\b"),
    ("SSPL-1.0", "server side public", r"server side public licen[sc]e"),
    ("BUSL-1.1", "business source", r"business source licen[sc]e"),
    ("Elastic-2.0", "elastic", r"\belastic licen[sc]e"),
    ("LicenseRef-commons-clause", "commons clause", r"commons clause"),
    ("LicenseRef-noncommercial", "commercial", r"non ?commercial use only|for non ?commercial|not for commercial use|noncommercial licen[sc]e"),
    ("LicenseRef-proprietary", "proprietary", r"proprietary and confidential|confidential and proprietary|is proprietary (?:to|software)"),
    ("LicenseRef-proprietary", "strictly prohibited", r"(?:copying|distribution|reproduction|use) of this (?:file|software|code|program)[\w ]{0,60}strictly prohibited"),
    ("JSON", "for good not evil", r"the software shall be used for good not evil"),
    ("CC-BY-NC-4.0", "by nc|noncommercial", r"creativecommons org licenses by nc|attribution noncommercial"),
    ("CC-BY-SA-4.0", "by sa|sharealike", r"creativecommons org licenses by sa|cc by sa|attribution sharealike"),
    ("MPL-1.1", "mozilla", r"mozilla public licen[sc]e version 1 1"),
    ("MPL-2.0", "mozilla|mpl", r"mozilla public licen[sc]e|mozilla org mpl|\bmpl (?:v ?)?2"),
    ("EPL-2.0", "eclipse public", r"eclipse public licen[sc]e"),
    ("CPL-1.0", "common public", r"common public licen[sc]e"),
    ("CDDL-1.0", "common development and", r"common development and distribution licen[sc]e"),
    ("Apache-2.0", "apache", r"apache (?:software )?licen[sc]e (?:version )?v? ?2|apache 2(?: 0)? licen[sc]e|apache org licenses license 2|under (?:the )?apache 2"),
    ("Apache-1.1", "apache", r"apache software licen[sc]e version 1 1"),
    ("BSL-1.0", "boost", r"boost software licen[sc]e|boost org license 1 0"),
    ("BSD-4-Clause", "use in source", _BSD + r"(?=" + _CLAUSES + r"all advertising materials mentioning)"),
    ("BSD-3-Clause", "use in source", _BSD + r"(?=" + _CLAUSES + r"(?:neither the names?|may not be used to endorse|names? of [\w ]{1,80} may not be used))"),
    ("BSD-2-Clause", "use in source", _BSD),
    ("BSD-3-Clause", "bsd", r"\b(?:new|modified|3 clause|three clause) bsd licen[sc]e|bsd 3 clause|bsd style licen[sc]e|\bbsd licen[sc]e"),
    ("BSD-2-Clause", "bsd 2|simplified|freebsd|clause bsd|two clause|2 clause", r"bsd 2 clause|(?:simplified|freebsd|2 clause|two clause) (?:bsd )?licen[sc]e"),
    ("MIT", "permission is hereby granted", r"permission is hereby granted free of charge to any person obtaining|permission is hereby granted without written agreement"),
    ("MIT", "mit |expat", r"\bmit (?:x11 )?licen[sc]e|opensource org licenses mit|expat licen[sc]e|\bmit licensed|licen[sc]ed? under (?:the )?mit\b"),
    ("ISC", "permission to use|isc licen", r"permission to use copy modify and(?: or)? distribute this software for any purpose with or without fee|\bisc licen[sc]e"),
    ("HPND", "permission to use", r"permission to use copy modify(?: and)? distribute (?:and sell )?this software and its documentation"),
    ("Zlib", "in no event will the author|zlib licen", r"in no event will the authors? be held liable for any damages arising from the use of this software|\bzlib licen[sc]e"),
    ("Unlicense", "unencumbered|unlicense org", r"free and unencumbered software released into the public domain|unlicense org"),
    ("CC0-1.0", "publicdomain zero|cc0", r"creativecommons org publicdomain zero|\bcc0\b"),
    ("WTFPL", "do what the", r"do what the fuck you want to"),
    ("Beerware", "beer", r"the beer ?ware licen[sc]e|buy me a beer in return"),
    ("NCSA", "university of illinois", r"university of illinois (?:ncsa )?open source licen[sc]e"),
    ("PostgreSQL", "postgresql licen", r"\bpostgresql licen[sc]e"),
    ("Python-2.0", "software foundation licen|psf licen", r"python software foundation licen[sc]e|psf licen[sc]e"),
    ("OpenSSL", "openssl licen", r"\bopenssl licen[sc]e"),
    ("Artistic-2.0", "artistic", r"artistic licen[sc]e 2"),
    ("UPL-1.0", "universal permissive", r"universal permissive licen[sc]e"),
    ("LicenseRef-public-domain", "public domain|copyright is claimed", r"(?:placed|released|dedicated|donated|put|provided|is|are) (?:\w+ ){0,3}?(?:in|in ?to|to) (?:the )?public domain|no copyright is claimed"),
)  # fmt: skip
RULES = tuple((name, tuple(words.split("|")), re.compile(pattern)) for name, words, pattern in _RULES)

# Whole licences that speak of others, by the title they begin with.
TITLES = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("AGPL-3.0-only", r"gnu affero general public license"),
        ("LGPL", r"gnu (?:lesser|library) general public license"),
        ("GPL", r"gnu general public license"),
        ("MPL", r"mozilla public license"),
        ("Apache-2.0", r"apache license version 2 0"),
        ("EPL", r"eclipse public license"),
    )
)
TITLE_CHARS = 200  # of a licence file, normalised, in which a title stands

# Words that offer a choice between the licences that a header names.
CHOICE = re.compile(
    r"dual licen[sc]ed|(?:under|terms of|using) either|either (?:of the|licen[sc]e)|licen[sc]ed under both|alternatively"
    r"|your choice of|you may choose|\bor (?:the )?(?:apache|mit|bsd|mpl|boost)\b|(?:apache|mit|bsd|mpl) (?:licen[sc]e )?or\b"
)

# What other languages forbid, and what is forbidden: both within NEAR_FORBIDDEN characters, in small letters.
NEAR_FORBIDDEN = 80
_FORBIDDEN = (
    "verboten|untersagt|nicht gestattet|nicht erlaubt|interdit|proscrit|prohibid|vietat|proibi|verboden|zabronion|zakázán"
    "|förbjud|forbudt|kielletty|yasak|запрещ|запрет|заборон|απαγορε|禁止|不得|严禁|嚴禁|不可|禁じ|禁ず|금지|ممنوع|يحظر|cấm|dilarang"
    "|निषिद्ध|ห้าม|אסור"
)
_USES = (
    "nutz|verwend|kopier|vervielf|weiterg|kommerzi|utilis|copi|distribu|usage|reprodu|commerci|comerci|uso|utiliz"
    "|gebruik|użyc|użytk|kopiow|použit|använd|brug|kaytt|käyttö|kullan|использ|копир|распростран|коммерч|використ|χρήση"
    "|使用|复制|複製|传播|傳播|商业|商業|商用|转载|轉載|転載|利用|配布|사용|복제|배포|상업|استخدام|نسخ|sử dụng|penggunaan|उपयोग|ใช้|שימוש"
)
FORBIDDEN, USES = re.compile(_FORBIDDEN), re.compile(_USES)
NOT_FOR_SALE = re.compile(
    r"禁转|禁商|仅供学习|僅供學習|非商用|非商业|nicht[ -]?kommerzi|некоммерч|no comercial|non commerciale|비상업"
)

RESTRICTED = ("LicenseRef-commons", "LicenseRef-non", "LicenseRef-prop", "SSPL", "BUSL", "Elastic", "JSON", "CC-BY-NC")
"""How names begin that no choice takes away."""
