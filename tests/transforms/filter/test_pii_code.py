"""Personal data in source code: what takes its place, what is left alone, and a run that ends where some remains."""

import apache_beam as beam
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, FailClosed
from refinery.transforms.filter import pii, secrets_stage
from refinery.transforms.filter.pii import PII, PiiParams, find_pii, redact_pii
from refinery.transforms.filter.secrets_stage import SECRETS, SecretsParams, find_secrets, redact_secrets
from refinery.transforms.redaction.pii_types.pseudonyms import Pseudonyms
from tests.beam import make_document, run_and_collect
from tests.sampling import examples

CODE = PiiParams(style="code", remains="fail")
EMAIL, NETWORK, HOME = "<redacted-email>", "<redacted-network-address>", "<redacted-path>/"

REDACTED = [
    (" * @author Jane Doe <jane@doe.org>", f" * @author Jane Doe <{EMAIL}>"),
    ("git clone ssh://jane@build.doe.org/x", f"git clone ssh://{EMAIL}/x"),
    ("jane@doe.org(maintainer)", f"{EMAIL}(maintainer)"),
    ('connect("81.2.69.142", 80); // 2a00:1450:4001::200e', f'connect("{NETWORK}", 80); // {NETWORK}'),
    ("hwaddr = 00:1b:44:11:3a:b7", f"hwaddr = {NETWORK}"),
    ('open("/home/anna/src/x.c")', f'open("{HOME}src/x.c")'),
    ("at /Users/anna.b/x.js:3", f"at {HOME}x.js:3"),
    ("cwd is /home/anna.", f"cwd is {HOME}."),
    (r"C:\Users\anna\x.txt", f"{HOME}x.txt"),
    (r'"D:\\Users\\anna\\x.txt"', f'"{HOME}x.txt"'),
    ("cd /c/Users/anna/x; ls /mnt/d/Users/anna", f"cd {HOME}x; ls {HOME}"),
    ("/c/Users/anna/x", f"{HOME}x"),
    ("file:///home/anna/x file:///C:/Users/anna/x", f"file://{HOME}x file:///{HOME}x"),
    ("/home/anna/home/eve/x", f"{HOME}home/eve/x"),
    ("+49 30 1234567", "<redacted-phone>"),
]
KEPT = [
    "git clone git@github.com:owner/name.git; hg@hg.python.org",
    "jane@example.com a@mail.example.org b@host.test c@x.invalid d@sub.localhost",
    "@decorator @Override @types/node actions/checkout@v4 react@18.0.0-rc.one pkg@1.2.3-next.beta",
    "y = x@self.weight + a@b.transpose(0, 1) + u@v.cols[0]",
    "version 10.20.30.40, v1.2.3.4, 1.2.3.4, addr = 1.2.3.4, dns 8.8.8.8 and 208.67.222.222",
    "127.0.0.1:80 0.0.0.0 10.0.0.1 192.168.1.77 192.0.2.1 203.0.113.9 255.255.255.255 ::1 fe80::1 std::a::b",
    "/home/user/x /home/runner/work /Users/Shared/x https://example.org/Users/anna /abc/Users/anna ~/home/zoe",
    "0x4111111111111111 4111111111111112 crc 0x12345678 {0x77073096, 0xee0e612c}",
    "<div class=a@search-toggle.window @keydown.escape.window='x'> y = a@b.mean",
    "https://user:password@acme.com/x user:pass@acme.com '%s@acme.com' LIKE '%@aol.com' sd_IN@devanagari.UTF",
    "<4FD05F05-F98B-44DC-8111-C6009C925F0C@gmail.com> <hvalf7$1@dough.gmane.org> keepalive@golang.org",
    "https://lore.kernel.org/netdev/20240509-1-jane@doe.org/ https://www.mail-archive.com/list@doe.org/msg1",
    "if (at > this.length) at = 1; u@server.local",
    "see T277566778 and 1234567L; is_residue(13122380800), 4012888888881881*t**12, O(-.4012888888881881)",
    "// 15.9.5.43 Date.prototype.toISOString ( )\n/* 20.3.4.36 x */ ES5 15.4.4.36, (15.9.1.36) ECMA-262 15.9.5.44",
    "0:0:0:0:0:0:0:1 1:2:3:4:5:6:7:8 0:0:0:0:0:ffff:10.0.0.1 PDFKit.NET 4.0.102.0 %31%32%37.0.0.1",
    "-.02.02-.02.06.08 71(6), 065103 (2005). [01:10:2] -> 01 03 05 07 09 account 012345-567890-ABCDEF",
    "00CC; 0069 0307 0300; 00CC '0403060130' 07090000008 {'text': 'text 123 456 789'} (999) 999-9999 999-99-9999",
    "0030  41 41 41 41 41                 AAAAA\n",
    "'/home/test2.yml' HOME: '/home/web_user/'",
]
OF_SOMEBODY = [
    ("// his card: 4012888888881881", "card"),
    ("x = '4012888888881881'", "card"),
    ("KVNR: A123456780", "national_id"),
    ("x = 'A123456780'", "national_id"),
    ("host = '15.9.5.43'", "ip"),
    ("// at 81.2.69.142", "ip"),
    ("x(0:0:0:0:0:ffff:81.2.69.142)", "ip"),
    ("phone = '05321234567'", "phone"),
    ("tel: 01 23 45 67 89", "phone"),
    ("jane@doe.museum", "email"),
    ("'/home/jane.doe/x'", "user_path"),
]

PIECES = (
    *("jane@doe.org", "81.2.69.142", "/home/anna/", "C:\\Users\\anna\\", "+49", "30", "1234567", "00:1b:44:11:3a:b7"),
    *("ip", "tel", "x", "@", ".", "/", ":", "(", "-"),
)


def redacted(text: str, params: PiiParams = CODE) -> str:
    answer = redact_pii(make_document(text), params)
    assert isinstance(answer, Document)
    return answer.text


@pytest.mark.parametrize(("text", "expected"), REDACTED)
def test_redacted(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert find_secrets(expected, SecretsParams()) == []


@pytest.mark.parametrize("text", KEPT)
def test_what_is_nobodys_stays(text: str) -> None:
    assert find_pii(text, CODE) == []


@pytest.mark.parametrize(("text", "kind"), OF_SOMEBODY)
def test_what_only_looks_like_code_is_found(text: str, kind: str) -> None:
    assert [span.kind for span in find_pii(text, CODE)] == [kind]


def test_replacements_that_are_given_are_taken() -> None:
    params = CODE.replace(email_replacement="nobody", phone_replacement="<PHONE>")
    assert redacted("jane@doe.org +49 30 1234567", params) == "nobody <redacted-phone>"  # the other is the default
    assert redacted("a@b.org /home/anna/x", PiiParams()) == "<EMAIL> /home/<USER>/x"


def test_a_pseudonym_is_that_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pii, "load_pseudonyms", lambda params: Pseudonyms(b"x" * 16))
    token = Pseudonyms(b"x" * 16).token("user_path", "anna")
    assert redacted(r"/home/anna/x C:\Users\anna\x") == f"<redacted-path_{token}>/x <redacted-path_{token}>/x"
    assert redacted("/home/anna/x", PiiParams()) == f"/home/<USER_{token}>/x"


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, "version ", " ", "\n", "é", "4111 1111 1111 1111"]), max_size=12).map("".join)
)
@example("/home/anna//home/eve/")
def test_nothing_is_found_after_redaction(text: str) -> None:
    assert find_pii(redacted(text), CODE) == []


def test_what_remains_ends_the_run_and_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pii, "find_pii", lambda text, params: [pii.Span(0, 5, "email")])
    doc = make_document("value", "f@7")
    with pytest.raises(FailClosed, match=rf"^pii: email is still found .* {doc.id.hex()} \(f@7\)") as caught:
        redact_pii(doc, CODE)
    assert "value" not in str(caught.value)
    assert isinstance(redact_pii(doc, PiiParams()), Document)  # is not searched again
    with pytest.raises(Exception, match="email is still found after redaction"):
        run_and_collect(lambda p: [p | beam.Create([doc]) | PII(CODE)])

    monkeypatch.setattr(secrets_stage, "find", lambda data, off: [secrets_stage.Found(0, 5, "key")] if data else [])
    failing = SecretsParams.model_construct(**(SecretsParams.model_construct().model_dump() | {"remains": "fail"}))
    with pytest.raises(FailClosed, match=rf"^secrets: .* {doc.id.hex()} \(f@7\)") as caught:
        redact_secrets(doc, failing)
    assert "value" not in str(caught.value)
    with pytest.raises(Exception, match="a secret is still found after redaction"):
        run_and_collect(lambda p: [p | beam.Create([doc]) | SECRETS(failing)])


def test_one_hostile_file_need_not_end_the_run() -> None:
    doc = make_document("a@b.com" + "".join(f"_{name}@{name}.com" for name in "cdefg"), "f@7")  # one a round
    with pytest.raises(FailClosed, match=r"^pii: email is still .* \(f@7\); `remains: drop` refuses such documents"):
        redact_pii(doc, CODE)
    assert redact_pii(doc, CODE.replace(remains="drop")) == Drop("pii-remains")
    assert isinstance(redact_pii(make_document("a@b.com_c@d.com", "f@7"), CODE.replace(remains="drop")), Document)


def test_a_replacement_that_is_personal_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^email_replacement: 'a@b.org' given, with `remains: fail` a text"):
        PiiParams(email_replacement="a@b.org", remains="fail")
    assert PiiParams(email_replacement="a@b.org").email_replacement == "a@b.org"
