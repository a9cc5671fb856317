"""Source files made for measuring: credentials and personal data where programs and their comments have them.

Nothing here knows the rules of transforms/redaction; the values are those of made_secrets.py and made_personal.py.
"""

import string
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.made_personal import made_personal
from benchmarks.made_secrets import Forms, made_secrets

WORD_PASSWORDS = ("hunter22", "Summer2024!", "Passw0rd!", "s3cr3t", "admin123", "P@ssw0rd", "letmein1", "qwerty123")
FILES = {
    "x.py": (
        'password = "{}"\n', "PASSWORD = '{}'\n", 'connect(user="joe", password="{}", port=1)\n',
        'SETTINGS = {"user": "joe", "password": "{}"}\n', 'os.environ["DB_PASSWORD"] = "{}"\n',
        'config.set("password", "{}")\n', '"""Usage.\n\npassword: {}\n"""\n', "# password: {}\n",
        'def f():\n    """The password is {}."""\n', "x = 1  # the password is {}\n", 'CFG = """\npassword = {}\n"""\n',
    ),
    "x.js": (
        'const password = "{}";\n', "login({ user: 'joe', password: '{}' });\n", "process.env.DB_PASSWORD = '{}';\n",
        "// password: {}\n", "/* password: {} */\n", "/**\n * password: {}\n */\n", "const c = `\npassword: {}\n`;\n",
        "this.password = '{}';\n", "const p = <p>Password: {}</p>;\n", "/*\npassword = {}\n*/\n",
    ),
    "X.java": (
        'String password = "{}";\n', 'props.setProperty("password", "{}");\n', " * password: {}\n",
        'private static final String DB_PASSWORD = "{}";\n', 'new Login("joe").password("{}");\n',
    ),
    "x.go": (
        'cfg := Config{User: "joe", Password: "{}"}\n', 'password := "{}"\n', "const c = `\npassword: {}\n`\n",
        "// the password is {}\n",
    ),
    "x.c": (
        '#define PASSWORD "{}"\n', 'static const char password[] = "{}";\n', "/* password: {} */\n",
        'curl_easy_setopt(curl, CURLOPT_PASSWORD, "{}");\n', 'setenv("DB_PASSWORD", "{}", 1);\n',
    ),
    "x.rs": (
        'let password = "{}";\n', 'Config { password: "{}".to_string() }\n', 'let c = r#"\npassword = {}\n"#;\n',
        "/// password: {}\n",
    ),
    "settings.ini": ("password = {}\n", "[db]\nDB_PASSWORD={}\n"),
    "x.rb": ("c = <<~EOS\n  password = {}\nEOS\n", "puts 1\n__END__\npassword = {}\n"),
    "x.lua": ("c = [[\npassword = {}\n]]\n",),
    "x.cc": ('auto c = R"x(\npassword = {}\n)x";\n',),
    "x.yaml": ("password: {}\n", "db:\n  password: '{}'\n"),
}  # fmt: skip
"""places for a password, by the file's name"""
LITERALS = {
    "x.py": ('x = "{}"\n', "# {}\n", '"""\n{}\n"""\n'),
    "x.js": ("f('{}');\n", "// {}\n", "/*\n * {}\n */\n"),
    "x.c": ('f("{}");\n', "/* {} */\n"),
}
"""places for a text"""


class Planted(NamedTuple):
    """A file with a value in it. kind: of the table that it comes from; secret: a credential, no personal data."""

    path: str
    text: str
    value: str
    kind: str
    secret: bool


def planted(count: int, seed: int) -> Iterator[Planted]:
    """`count` passwords in every place of FILES; the keys of made_secrets and the data of made_personal as LITERALS."""
    forms = Forms(seed)
    for path, places in FILES.items():
        for place in places:
            drawn = [forms.draw(4) + forms.draw(3, string.digits) + forms.draw(4) for _ in range(count)]
            for value in (*drawn, *WORD_PASSWORDS):
                yield Planted(path, place.replace("{}", value), value, f"password: {path}", True)
    for made in made_secrets(1, seed):
        if made.secret and made.kind != "password" and '"' not in made.text:
            yield from _in_literals(made.text, made.secret, "keys", True)
    for person in made_personal(1, seed):
        if person.type:
            value = person.text[person.start : person.end]
            yield from _in_literals(person.text, value, f"personal: {person.type}", False)


def _in_literals(text: str, value: str, kind: str, secret: bool) -> Iterator[Planted]:
    for path, places in LITERALS.items():
        for place in places:
            yield Planted(path, place.replace("{}", text), value, kind, secret)
