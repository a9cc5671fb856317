"""Secrets in source code: literals are replaced, names and expressions stay, and so does what has the same letters."""

import pytest

from refinery.pipelines.lanes.code import LANE
from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.core.document import Document
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets
from refinery.transforms.redaction.pii_types.source_places import SourcePlaces
from refinery.transforms.redaction.secret_types.source_code import ENDINGS
from tests.beam import make_document

CODE, PROSE = SecretsParams(style="code", remains="fail"), SecretsParams()
BEGIN = "-----BEGIN PRIVATE " + "KEY-----"
DRAWN = "Kr8AcMe" + "12345x"
SHORT = "q7Vx2Lm" + "PzK"
PW = "pass" + "word"
END = BEGIN.replace("BEGIN", "END")
BODY = "MC4CAQAwBQYDK2VwBCIEI" + "JtZq7wK3xB9" + "fT2mVr5LsHd8nQyGc4PuEj6" + "AoXiWb1Kd9"
TOKENS = (
    "AKIA" + "QZEGWXB7MHKDNTVR",
    "ghp" + "_Zq7wK3xB9fT2mVr5LsHd8nQyGc4PuEj6AoX1",
    "sk_live" + "_Zq7wK3xB9fT2mVr5LsHd8nQy",
    "AIza" + "SyZq7wK3xB9fT2mVr5LsHd8nQyGc4PuEj6o",
    "github_pat" + "_11ABCDEFG0Zq7wK3xB9fT2_" + BODY[:59],
    "npm" + "_Zq7wK3xB9fT2mVr5LsHd8nQyGc4PuEj6AoX1",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJxN3Z4In0." + "Zq7wK3xB9fT2mVr5LsHd8nQyGc4PuEj6AoX1",
)


def pieces(size: int, glue: str) -> str:
    """A private key in pieces of so many characters."""
    rows = [BODY[at : at + size] for at in range(0, len(BODY), size)]
    return f"key = '{BEGIN}{glue}{glue.join(rows)}{glue}{END}'\n"


NO_SECRETS = [
    ("x.cc", "password = config2;"),
    ("x.cc", "if (hashed_key != kNullUniqueId64x2) {"),
    ("x.py", "password = newPassword1\n"),
    ("x.py", "pw = 2.0**self.frac_bits\n"),
    ("x.py", "login(user=baduser, password=badpw1, usenetrc=False)"),
    ("x.go", '\tPassword string `json:"password1,omitempty"`'),
    ("x.go", '\tPassword string `protobuf:"bytes,2,opt,name=password,proto3" json:"password,omitempty"`'),
    ("X.java", 'new Token("user", "password", "ROLE_1", "ROLE_2")'),
    ("X.java", "\"<user name='a' password='password' authorities='ROLE_A1,ROLE_B'/>\""),
    ("X.java", " * what to do with the password when it is non-{@code null}1, allowing"),
    ("x.py", "PASSWORD_ENV = 'KRB5_PASSWORD'"),
    ("x.py", """'<input type="password" name="password1" required>'"""),
    ("x.py", 'fields = ("password", "password1")'),
    ("x.py", 'password = f"{registry_id}-auth-token"'),
    ("x.py", """assert repr(pw) == "Password(user='foo1')\""""),
    ("x.py", '"AWS::IAM::AccessKey": "72c2d9dd90025459",'),
    ("x.go", 'h.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")'),
    ("x.go", "rs, err := s.sendV2SamplesWithBackoff(ctx)"),
    ("x.py", "password: debug2: channel 2: written 67"),
    ("X.java", f'byte[] begin = "{BEGIN}\\n".getBytes(CharsetUtil.US_ASCII);\nbyte[] end = other.getBytes(x);\n'),
    ("x.js", 'createElement("label",null,"Password:"),a?q.a.createElement("code",null,"***")'),
    ("x.py", "url = 'https://foo.com:123,foo:bar@bar.com/path'"),
    ("x.py", "url = 'postgres://a:123,b:456@host/db'"),
    (
        "X.java",
        f'if (s.startsWith("{BEGIN}")) {{ return "marks the beginning of what must not be shown to anybody"; }}',
    ),
    ("x.py", f"{PW} = 'get{PW.title()}(user)'"),
    ("x.cc", "#define PASSWORD kNullUniqueId64x2"),
    ("x.py", f"data = '{'A' * 40}QAAUgD6AABKKArwCM{'A' * 7}'"),
    ("x.cc", "hashed_key = kNullUniqueId64x2;"),
    ("x.py", f"{PW}_2 = 'FORM_{PW.upper()}'"),
]
SECRETS = [
    ("x.py", f"password = '{DRAWN}'"),
    ("x.py", f'"""Settings.\n\npassword = {DRAWN}\n"""'),
    ("x.py", f"# password: {DRAWN}"),
    ("x.c", f"/*\npassword = {DRAWN}\n*/"),
    ("x.js", f"const c = `\npassword: {DRAWN}\n`;"),
    ("x.js", f"const p = <p>Password: {DRAWN}</p>;"),
    ("x.rs", f'let c = r#"\npassword = {DRAWN}\n"#;'),
    ("x.cc", f'auto c = R"(\npassword = {DRAWN}\n)";'),
    ("settings.ini", f"password = {DRAWN}"),
    ("", f"password = {DRAWN}"),
    ("x.py", f'<input type="password" value="{DRAWN}">'),
    ("x.py", f'props.set("password", "{DRAWN}")'),
    ("x.py", "withEnv('MQ_APP_PASSWORD', 'admin123')"),
    *(("x.js", pieces(size, glue)) for size in (10, 20, 34) for glue in ("\\n", "' +\n '", "',\n'", "\n", "\\n'\n'")),
    *(("x.py", f"# {token}(expired)") for token in TOKENS),
    *(("x.py", f"f({token}(1))") for token in TOKENS),
    ("x.py", f"# {PW}: {SHORT}: do not tell"),
    ("x.yaml", f"{PW}: ab12cd:\n"),
    (".env", f"{PW}: hunter22:\n"),
    *((path, "DB_PASSWORD=k9=Zq7w\n") for path in (".env", "x.ini", "x.properties", "Dockerfile", "x.yaml")),
    ("x.py", f'{PW} = "P4ss(word)"'),
    ("x.py", f"{PW} = 'Winter(2019)'"),
    ("x.py", f"{PW} = ')x9Kd(2!'"),
    ("x.py", f"{PW} = 'PROD_PASS_2019'"),
    *(("x.py", f"{call}('{PW}', '{PW}1')") for call in ("define", "x.setProperty", "x.setdefault", "x.put", "x.set")),
    ("x.py", f"x.put('{PW}', 'winter!')"),
    ("x.py", f"{PW} = 'AAbA9AAcAA'"),
    ("x.py", "url = 'postgres://joe:" + "123,Zq7wK@host/db'"),
    ("x.c", f"#define PASSWORD {SHORT}"),
    ("x.cc", f'x = R"sql(\n{PW} = hunter22\n)sql";'),
    ("x.rs", f'let c = r##"\n{PW} = hunter22\n"##;'),
    ("x.c", f'char *c = "user = joe\\n\\\n{PW} = hunter22\\n";'),
    *(("x.rb", f"c = <<{tag}\n  {PW} = hunter22\n  EOS\n") for tag in ("EOS", "-EOS", "~EOS", "'EOS'", '~"EOS"')),
    ("x.php", f"$c = <<<'EOT'\n{PW} = hunter22\nEOT;\n"),
    ("x.lua", f"c = [[\n{PW} = hunter22\n]]"),
    ("x.lua", f"c = [==[\n{PW} = hunter22\n]==]"),
    ("x.ex", f"c = ~s(\n{PW} = hunter22\n)"),
    ("x.rb", f"puts 1\n__END__\n{PW} = hunter22\n"),
    ("x.py", f"{PW} = {DRAWN}\n"),
    ("x.py", f"{PW} = {SHORT}\n"),
]


@pytest.mark.parametrize(("path", "text"), NO_SECRETS)
def test_names_and_expressions_stay(path: str, text: str) -> None:
    assert find_secrets(text, CODE, path) == []


@pytest.mark.parametrize(("path", "text"), SECRETS)
def test_literals_comments_and_settings_are_found(path: str, text: str) -> None:
    assert (
        [span.rule for span in find_secrets(text, CODE, path)]
        == [span.rule for span in find_secrets(text, PROSE)]
        != []
    )


def redacted(text: str, path: str = "x.py", params: SecretsParams = CODE) -> str:
    answer = redact_secrets(make_document(text, meta={"path": path}), params)
    assert isinstance(answer, Document)
    return answer.text


def test_a_value_is_replaced_elsewhere_where_it_stands_for_itself() -> None:
    """In prose everywhere; in code neither in a longer name nor as a name."""
    text = "{0} = '{1}'\nx.{1}_y({1}, 'a {1}')\nsay('{1}')\n# old: {1}\n/*\n{1} */ {1}\n".replace("{0}", PW)
    kept = "x.{1}_y({1}, 'a ".replace("{1}", DRAWN)
    gone = "API_KEY_REDACTED"
    assert redacted(text.replace("{1}", DRAWN)) == (
        f"{PW} = '{gone}'\n{kept}{gone}')\nsay('{gone}')\n# old: {gone}\n/*\n{gone} */ {DRAWN}\n"
    )
    text = text.replace("{1}", "{0}")
    assert DRAWN not in redacted(text.format(DRAWN), params=PROSE)
    signs = "password = '{0}'\n# {0} or {0}x\n"
    assert redacted(signs.format("a1!b2?c3")) == "password = 'API_KEY_REDACTED'\n# API_KEY_REDACTED or a1!b2?c3x\n"
    named = "password = 'password1'\nform.fields['password1']\n"
    assert redacted(named) == "password = 'API_KEY_REDACTED'\nform.fields['password1']\n"


def test_the_lane_redacts_code_as_code() -> None:
    assert LANE.defaults["secrets"] == CODE
    assert {ending for one in LANGUAGES.values() for ending in one.endings} <= set(ENDINGS)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = @", True),
        ("x = '@'", False),
        ('x = "a \\" @"', False),
        ('f("a", @)', True),
        ("x  # @", False),
        ("#define X @", True),
        ("// @", False),
        ("/* a\n b @ */", False),
        ("/* a */ @", True),
        ('"""\nx = @\n"""', False),
        ('"""\n"""\nx = @', True),
        ("`\nx = @`", False),
        (" * @", False),
        ("x" * 500 + "@", False),
        ('R"x(\n@\n)x"', False),
        ('R"x(\n)")x"; @', True),
        ("c = <<EOS\nx\nEOS\nx = @", True),
        ("cout <<EOS\nx = @", True),
        ("x = [[\n@\n]]", False),
        ("x = [[\n]]; @", True),
        ('"a \\\n@"', False),
        ("#define X \\\n@", True),
        ("__END__\n@", False),
    ],
)
def test_places(text: str, code: bool) -> None:
    data = text.encode()
    assert SourcePlaces(data).is_code(data.index(b"@")) is code


def test_places_are_asked_one_after_the_other() -> None:
    data = b"a @ /* b @ */ c @\n'''\nd @\n''' ; e @"
    places = SourcePlaces(data)
    found = [places.is_code(at) for at in range(len(data)) if data[at : at + 1] == b"@"]
    assert found == [True, False, True, False, True]
