"""Secrets made for measuring: forms as their issuers give them out, in texts with and without a cue, and look-alikes.

Nothing here knows the rules of transforms/redaction/secret_types: lengths and alphabets are written down again.
"""

import base64
import hashlib
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Made(NamedTuple):
    """A text and the secret in it; None: there is none. kind: of the table that it comes from."""

    text: str
    secret: str | None
    kind: str


class Forms:
    """Draws secrets of every form from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, size: int, alphabet: str = ALNUM) -> str:
        return "".join(self.random.choices(alphabet, k=size))

    def uuid(self) -> str:
        return "-".join(self.draw(size, HEX) for size in (8, 4, 4, 4, 12))

    def jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        return f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part({'iss': self.draw(8)})}.{self.draw(342, WORD)}"

    def wallet(self, version: bytes, size: int) -> str:
        body = version + self.random.randbytes(size)
        whole = body + hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4]
        number, text = int.from_bytes(whole, "big"), ""
        while number:
            number, digit = divmod(number, 58)
            text = BASE58[digit] + text
        return text

    def number(self, size: int) -> str:
        return str(self.random.randrange(10 ** (size - 1), 10**size))

    def all(self) -> dict[str, Callable[[], str]]:
        """Name of the issuer -> what draws one of its keys."""
        draw, number = self.draw, self.number
        return {
            "anthropic": lambda: f"sk-ant-api03-{draw(93, WORD)}AA",
            "openai": lambda: f"sk-proj-{draw(74, WORD)}T3BlbkFJ{draw(74, WORD)}",
            "openrouter": lambda: f"sk-or-v1-{draw(64, HEX)}",
            "deepseek": lambda: f"sk-{draw(32, HEX)}",
            "groq": lambda: f"gsk_{draw(52)}",
            "hugging face": lambda: f"hf_{draw(34, string.ascii_letters)}",
            "replicate": lambda: f"r8_{draw(37)}",
            "langsmith": lambda: f"lsv2_pt_{draw(32, HEX)}_{draw(10, HEX)}",
            "nvidia": lambda: f"nvapi-{draw(64, WORD)}",
            "pinecone": lambda: f"pcsk_{draw(5)}_{draw(63)}",
            "elevenlabs": lambda: f"sk_{draw(48, HEX)}",
            "fireworks": lambda: f"fw_{draw(24)}",
            "xai": lambda: f"xai-{draw(80)}",
            "together": lambda: f"tgp_v1_{draw(43, WORD)}",
            "figma": lambda: f"figd_{draw(40, WORD)}",
            "airtable": lambda: f"pat{draw(14)}.{draw(64, HEX)}",
            "google": lambda: f"AIzaSy{draw(33, WORD)}",
            "github": lambda: f"github_pat_{draw(22)}_{draw(59)}",
            "github app": lambda: f"ghs_{number(7)}_{self.jwt()}",
            "gitlab": lambda: f"glpat-{draw(20, WORD)}",
            "slack bot": lambda: f"xoxb-{number(12)}-{number(13)}-{draw(24)}",
            "slack workspace": lambda: f"xoxs-{number(11)}-{number(11)}-{number(11)}-{draw(10, HEX)}",
            "aws": lambda: f"AKIA{draw(16, string.ascii_uppercase + '234567')}",
            "azure": lambda: f"{draw(3)}8Q~{draw(34, ALNUM + '_~.-')}",
            "stripe": lambda: f"sk_live_{draw(24)}",
            "twilio": lambda: f"SK{draw(32, HEX)}",
            "sendgrid": lambda: f"SG.{draw(22, WORD)}.{draw(43, WORD)}",
            "npm": lambda: f"npm_{draw(36)}",
            "pypi": lambda: f"pypi-AgEIcHlwaS5vcmc{draw(130, WORD)}",
            "digitalocean": lambda: f"dop_v1_{draw(64, HEX)}",
            "netlify": lambda: f"nfp_{draw(36)}",
            "neon": lambda: f"napi_{draw(64, LOWER)}",
            "render": lambda: f"rnd_{draw(28)}",
            "tailscale": lambda: f"tskey-auth-{draw(17)}-{draw(32)}",
            "notion": lambda: f"ntn_{number(11)}{draw(35)}",
            "linear": lambda: f"lin_api_{draw(40)}",
            "resend": lambda: f"re_{draw(8)}_{draw(24)}",
            "hubspot": lambda: f"pat-na1-{self.uuid()}",
            "telegram": lambda: f"{number(10)}:AA{draw(33, WORD)}",
            "vault": lambda: f"hvs.{draw(95, WORD)}",
            "jwt": self.jwt,
            "wallet": lambda: self.wallet(b"\x80", 33),
        }


PLAIN = (
    "The line is\n{}\nas found.",
    "We saw {} in the log, and went on.",
    'call("{}", 3)',
    "\x1b[93m{}\x1b[0m",
    "a%3D{}&b=1",
)
"""texts without a word that says what it is"""
PASSWORDS = (
    "password: {}", "DB_PASSWORD={}", 'password = "{}"', "The password is {}.", "the admin password for db01 is {}",
    "Passwort: {}", "Das Passwort lautet {}", "Contraseña: {}", "La contraseña es {}", "Mot de passe : {}",
    "Le mot de passe est {}", "Senha: {}", "Hasło: {}", "Пароль: {}", "пароль от базы: {}", "密码：{}", "密码是{}",
    "パスワード：{}", "パスワードは {} です", "비밀번호: {}", "비밀번호는 {} 입니다", "كلمة المرور: {}", "رمز عبور: {}",
    "סיסמה: {}", "पासवर्ड: {}", "পাসওয়ার্ড: {}", "รหัสผ่าน: {}", "Mật khẩu: {}", "Kata sandi: {}", "Şifre: {}",
    "Wachtwoord: {}", "Lösenord: {}", "Heslo: {}", "Jelszó: {}", "Κωδικός: {}",
    "machine api.example.com login joe password {}", "db.example.com:5432:shop:joe:{}", "sshpass -p {} ssh joe@db01",
    "mysql -u root -p{} shop", "curl -u joe:{} https://api.example.com/v1", "docker login -u joe -p {} registry.test",
    "redis-cli -h cache -a {}", "ID/PW: joe/{}", "postgres://joe:{}@db.example.com/shop",
    "CREATE USER joe IDENTIFIED BY '{}';", "echo 'joe:{}' | chpasswd",
)  # fmt: skip
"""places for a password"""
CLEAN = (
    "password = userPassword1;", "let token = csrfToken2;", "const apiKey = config.apiKey2;", "key=AES256GcmKey2Bytes,",
    "key = sha256WithRSA4096Key", "conn = connect(user=user1, password=password1)", "self.password = pwd2hash",
    "if (password != confirmPassword2) {", "secret := mySecret42", "private_key: X25519PublicKey,",
    "password = os.environ['DB_PASSWORD2']", "The password is incorrect.", "The password is SHA256-hashed.",
    "The key is RSA2048 or AES256.", "The token is base64url encoded.", "The password must be at least 8 characters.",
    "Password: ********", "api_key: YOUR_API_KEY", "password: ${DB_PASS1}", "mysql -u root -p mydatabase",
    "docker run -p 8080:80 nginx1", "ssh -p 2222 user1@host", 'curl -u "$USER:$PASS" https://x.example',
    "task-1234567890abcdef1234567890abcdef", "xoxo-indieweb-2018-was-held-in-portland", "re_compile_regex_function_v2",
    "r8_unorm_format_for_textures_in_vulkan_gpu", "hf_transfer_is_a_library_for_downloads", "fw_update_image_header_v2",
    "main.c:10:5:error:undefined1", "localhost:5432:mydb:myuser:mypassword", "密码是必填项",
    "パスワードは8文字以上です",
    "пароль: не менее 8 символов", "Mot de passe : obligatoire", "비밀번호는 8자 이상이어야 합니다",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id = 123e4567-e89b-12d3-a456-426614174000", "AKIAIOSFODNN7EXAMPLE", "Authorization: Bearer <token>",
)  # fmt: skip
"""what only looks like one"""


def made_secrets(count: int, seed: int) -> Iterator[Made]:
    """`count` keys of every form in every plain text, as many passwords in every place, and the look-alikes."""
    forms = Forms(seed)
    for name, form in forms.all().items():
        for text in PLAIN:
            for _ in range(count):
                secret = form()
                yield Made(text.format(secret), secret, f"key: {name}")
    for text in PASSWORDS:
        for _ in range(count):
            secret = forms.draw(4) + forms.draw(3, string.digits) + forms.draw(4)
            yield Made(text.format(secret), secret, "password")
    yield from (Made(text, None, "clean") for text in CLEAN)
