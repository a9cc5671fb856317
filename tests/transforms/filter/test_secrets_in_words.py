"""Passwords that sentences, calls of programs and files give away; names of code, which are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_secrets import PASSWORDS
from refinery.transforms.core.document import Document
from refinery.transforms.filter.secrets_stage import SecretsParams, find_secrets, redact_secrets
from refinery.transforms.redaction.secret_types import commands, sentences
from refinery.transforms.redaction.secret_types.identifiers import is_of_words, is_wordy
from refinery.transforms.redaction.secret_types.languages import PASSWORD_WORDS, PASSWORD_WORDS_UNSPACED
from tests.beam import make_document

PARAMS = SecretsParams()
VALUES = ("s3cr3tPW9", "Xk29dkQ1", "winter9Berg4x")


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text, PARAMS)]


def redacted(text: str) -> str:
    answer = redact_secrets(make_document(text, "f@0"), PARAMS)
    assert isinstance(answer, Document)
    return answer.text


PLACES = (
    *PASSWORDS,
    "my password for the staging box is \"{}\".",
    "password in vault2 was {}, they say",
    "the root password was changed to {} yesterday",
    "Kata sandinya adalah {}",
    "пароль: {}\nлогин: joe",
    "密码为{}。",
    "暗証番号は{}です",
    "machine api.example.com\n  login joe\n  password {}\n",
    "*:*:*:joe:{}",
    "sshpass -p '{}' ssh -p 2222 joe@db01",
    "mysqldump --single-transaction -u joe -p{} shop > x.sql",
    "mysql -u root -p {} -h db01",
    "curl -sS \\\n  --user 'joe:{}' https://api.example.com",
    "curl -ujoe:{} https://api.example.com",
    "PGPASSWORD={} psql -h db01",
    "ldapsearch -x -D cn=admin -w {}",
    "sqlcmd -S srv -U sa -P {}",
    "smbclient //srv/share -U joe%{}",
    "echo {} | sudo -S apt update",
    "htpasswd -bc .htpasswd joe {}",
    "net user joe {} /add",
    "net use Z: \\\\srv\\share {} /user:joe",
    "unzip -P {} a.zip",
    "7z x -p{} a.7z",
    "ConvertTo-SecureString \"{}\" -AsPlainText -Force",
    "ALTER USER joe IDENTIFIED BY {};",
    "user/pass: joe, {}",
    "ssh joe@10.0.0.7 (pw:{})",
    "Server=db;Database=x;User Id=sa;Password={};",
    "<a title=\"password: &quot;{}&quot;\">",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_password_in_its_place_is_gone(place: str) -> None:
    for value in VALUES:
        assert value not in redacted(place.replace("{}", value))


@pytest.mark.parametrize("word", [*sorted(PASSWORD_WORDS), *sorted(PASSWORD_WORDS_UNSPACED)])
def test_every_word_for_a_password_is_known(word: str) -> None:
    for text in (f"{word}: {VALUES[0]}", f"{word.capitalize()} : {VALUES[0]}\n", f"a\n{word}：{VALUES[0]} b"):
        assert found(text) == [VALUES[0]]


HARMLESS = (
    "password = userPassword1;",
    "password = newPassword2",
    "let token = csrfToken2;",
    "const apiKey = config.apiKey2;",
    "key = sha256WithRSA4096Key",
    "self.password = pwd2hash",
    "conn = connect(user=user1, password=password1)",
    "secret := mySecret42",
    "String secret = OAuth2ClientSecret;",
    "token == nextToken2",
    "if (password != confirmPassword2) {",
    "key=AES256GcmKey2Bytes,",
    "{ password: hashedPassword2, user }",
    "auth_token = b64Token2",
    "password: Sha256Digest,",
    "private_key: X25519PublicKey,",
    "pass: int32_t",
    "AMSWAPW: 0x070C0 << 15,",
    "hash := s.ReadUint16LengthPrefixed(&x)",
    "password=argv[i+1];",
    "PWD=%s\\nwant=%s1",
    "The password is incorrect.",
    "Login with user admin and password Required2 set",
    "The password is SHA256-hashed with PBKDF2.",
    "The key is RSA2048 or AES256.",
    "The password must be at least 8 characters.",
    "Enter the password for user2 on host3.",
    "parole: 2019-05-01",
    "mysql -u root -p mydatabase",
    "docker run -p 8080:80 nginx1",
    "ssh -p 2222 user1@host",
    "sshpass -e ssh user@host",
    "default login anonymous password user@domain",
    "localhost:5432:mydb:myuser:mypassword",
    "main.c:10:5:error:undefined1",
    "2345:0425:2CA1:0000:0000:0567:5673:23b5",
    "Serial: MORGA607054SM9IJ",
    "identified by `__uuidof(Q)`",
    "ID/Password: username/password",
    "비밀번호는 8자 이상이어야 합니다",
    "パスワードは8文字以上です",
    "密码：请输入密码",
    "пароль: не менее 8 символов",
    "csrf-token is Mj2qykJO5rELyHgezQ69nzUX0i3OH67V",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_names_of_code_and_words_of_sentences_stay(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("word", ["DB_PASSWORD", "APP_SECRET_TOKEN"])
def test_an_environment_has_no_quotes(word: str) -> None:
    """What would be a name in code is a value in a file of settings."""
    assert found(f"{word}=Xy12abC9dQ") == ["Xy12abC9dQ"]
    assert found("DB_PASSWORD=admin123x") == ["admin123x"]
    assert found("db_password = admin123x;") == []


def test_names_are_told_by_their_words() -> None:
    assert is_wordy(b"newPassword1") and is_wordy(b"b64Token2") and is_wordy(b"config.apiKey2")
    assert not any(map(is_wordy, (b"KrAcMe12345", b"hunter2", b"fsop7139GMd", b"2bkJgt", b"a-b", b"")))
    assert is_of_words(b"Sha256Digest") and not is_of_words(b"IhqSb1Gg")


PIECES = st.sampled_from(
    ["password", " is ", ": ", "is", "пароль", "密码", "は", "(", '"', "“", "s3cr3tPW9", "for the", "\n", " ", "é",
     "mysql", " -p", "sshpass", "login", "id", "/", "pw", "&quot;", "\x1b[1m", "\\n", "@", "a:1:b:c:",
     "machine x login y "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_spans_lie_in_the_text_and_nothing_is_left(text: str) -> None:
    data = text.encode()
    for finder in (sentences.passwords, sentences.keys, sentences.pairs, commands.in_calls, commands.in_netrc):
        for start, end in finder(data):
            assert 0 <= start < end <= len(data)
            data[start:end].decode()  # no part of a character
    answer = redact_secrets(make_document(text, "f@0"), PARAMS)
    if isinstance(answer, Document):
        assert find_secrets(answer.text, PARAMS) == []
