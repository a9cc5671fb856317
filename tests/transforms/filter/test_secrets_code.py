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

NO_SECRETS = [
    ("x.cc", "password = config2;"),
    ("x.cc", "if (hashed_key != kNullUniqueId64x2) {"),
    ("x.py", f"password = {DRAWN}\n"),
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
    text = "password = '{0}'\nx.{0}_y({0}, 'a {0}')\nsay('{0}')\n"
    assert redacted(text.format(DRAWN)) == text.replace("say('{0}')", "say('API_KEY_REDACTED')").replace(
        "'{0}'\nx", "'API_KEY_REDACTED'\nx"
    ).format(DRAWN)
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
