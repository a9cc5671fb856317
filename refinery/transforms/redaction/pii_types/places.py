"""Where people live and where they work: street addresses (an option) and names of users in paths of files.

Sources: USPS Publication 28, appendix C (street suffixes and secondary units); the homes of users by the Filesystem
Hierarchy Standard 3.0, macOS and Windows.
"""

from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.scan import WORD_BYTES, compile_bytes

PATH_HINT = rb"/home/|/Users/|\\Users\\"
PATH = compile_bytes(rb"(?:/home/|/Users/|[A-Za-z]:(?:\\\\?|/)Users(?:\\\\?|/))([A-Za-z0-9_.-]{1,32})(?:[/\\]|\b)")
# Accounts of nobody in particular, and placeholders.
NOBODY = frozenset(
    (
        b"user users localuser username user_name your_username yourusername yourname your_name your-name name me"
        b" myself you someone somebody anyone shared public default all guest admin administrator root ubuntu debian"
        b" centos fedora ec2-user vagrant runner runneradmin travis circleci jenkins buildbot build builder ci docker"
        b" node app appuser developer dev vscode gitpod codespace git www www-data web site ftp mail mysql postgres"
        b" hadoop spark jovyan coder test testuser tester foo bar baz foobar xxx xyz example demo sample homebrew"
        b" linuxbrew local bin lib src opt dir directory folder path workspace project projects page pages index docs"
        b" help about login ..."
    ).split()
)

UNIT = rb"(?:[,.]?\s{1,3}(?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|Room|Rm|Bldg)\.?\s{1,2}#?[A-Z0-9-]{1,6})?"
NAME = rb"(?:[A-Z\xc3][\w\x80-\xff'.-]{0,24}|[0-9]{1,3}(?:st|nd|rd|th)|of|the|de|la|del|der)"
SUFFIX = (
    rb"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Drive|Dr|Lane|Ln|Court|Ct|Place|Pl|Square|Sq"
    rb"|Terrace|Ter|Parkway|Pkwy|Highway|Hwy"
    rb"|Circle|Cir|Trail|Trl|Way|Crescent|Cres|Close|Row|Alley|Walk|Mews|Plaza|Turnpike|Loop|Cove)"
)
ADDRESS = compile_bytes(
    rb"(?:\b[0-9]{1,6}[A-Za-z]?,?\s(?:"
    + NAME
    + rb" ){1,4}?"
    + SUFFIX
    + rb"\b(?:\.? (?:NW|NE|SW|SE|N|S|E|W)\b)?"
    + UNIT
    + rb"(?:,?\s{1,3}(?:[A-Z][\w.'-]{1,20} ?){1,3},?\s{1,2}[A-Z]{2}\.?\s{1,2}[0-9]{5}(?:-[0-9]{4})?)?"
    + rb"|\b(?i:P\.? ?O\.? Box|Postfach|Bo\xc3\xaete postale) [0-9]{1,6}\b"
    + rb"|\b[A-Z\xc3][\w\x80-\xff.-]{2,24}(?:stra(?:\xc3\x9f|ss)e|str\.|weg|gasse|platz|allee|damm|ring"
    rb"|gatan|v\xc3\xa4gen|veien|vej|gata|straat|laan)"
    rb" [0-9]{1,4}[a-z]?\b" + rb"|\b[0-9]{1,4}(?: bis| ter)?,? (?i:rue|avenue|boulevard|chemin|impasse|place|quai"
    rb"|all\xc3\xa9e)(?: (?:de|du|des|la|le|les|l'|d')){0,3} ?"
    rb"[A-Z\xc3][\w\x80-\xff'-]{1,24}(?: [A-Z\xc3][\w\x80-\xff'-]{1,24}){0,3}"
    + rb"|\b(?:Via|Viale|Piazza|Corso|Calle|Avenida|Av\.|Plaza|Rua|Travessa|ul\.|ulica)(?: (?:de|del"
    rb"|della|dei|la|las|los|do|da|dos)){0,2}"
    rb"(?: [A-Z\xc3\xc4\xc5][\w\x80-\xff'.-]{1,24}){1,4},? (?:n\.? ?)?[0-9]{1,4}[a-z]?\b)"
)


def user_names(data: bytes) -> Iterator[tuple[int, int]]:
    """Names of users in paths, without the path. Linear."""
    for match in PATH.finditer(data):
        start, end = match.span(1)
        name = data[start:end].rstrip(b".-")
        first = match.start()
        if first and (data[first - 1] in WORD_BYTES or data[first - 1] in b".-~}>)]%"):
            continue  # a part of a longer path, or of an address of the web
        if name and name.lower() not in NOBODY and not name.isdigit():
            yield start, start + len(name)


def addresses(data: bytes) -> Iterator[tuple[int, int]]:
    """Street addresses, with unit, town and postal code where they follow; post office boxes. Linear."""
    for match in ADDRESS.finditer(data):
        yield match.span()
