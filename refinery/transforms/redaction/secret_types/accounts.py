"""Credentials of payment, mail, content and messages that came after those of services.py; private keys of wallets.

Forms as the issuers give them out in 2026; collected in gitleaks (MIT), TruffleHog (AGPL-3.0; facts alone are taken:
pkg/detectors) and CredSweeper (MIT). Wallets: Bitcoin's Base58Check (the wallet import format, BIP 32) with its
checksum, Bech32 of Nostr (NIP-19), Stellar's SEP-23.
"""

import hashlib

from refinery.transforms.redaction.secret_types.rules import (
    CREDSWEEPER,
    HEX_UUID,
    ISSUER,
    TRUFFLEHOG,
    A,
    H,
    W,
    decode_base64,
    is_mixed,
    token,
)

BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
B58 = rb"[1-9A-HJ-NP-Za-km-z]"
CHECKSUM_BYTES = 4
WIF_VERSIONS = (0x80, 0xEF, 0xB0, 0x9E)  # Bitcoin, its test net, Litecoin, Dogecoin


def decode_base58check(text: bytes) -> bytes:
    """The payload of Base58Check, whose last four bytes are those of a double SHA-256; b"" where they are not."""
    number = 0
    for byte in text:
        number = number * 58 + BASE58.index(byte)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    body, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    whole = hashlib.sha256(hashlib.sha256(body).digest()).digest()
    return body if body and whole[:CHECKSUM_BYTES] == checksum else b""


def is_wallet_key(text: bytes) -> bool:
    """Whether Base58Check holds a private key: 32 bytes (and one for compression), or BIP 32's 78 bytes."""
    payload = decode_base58check(text)
    return (len(payload) in (33, 34) and payload[0] in WIF_VERSIONS) or len(payload) == 78


def has_stellar_checksum(text: bytes) -> bool:
    """Whether a secret seed's last two bytes are the CRC-16/XModem of the others (SEP-23)."""
    value = 0
    for char in text:
        value = value << 5 | b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".index(char)
    data = value.to_bytes(35, "big")
    crc = 0
    for byte in data[:-2]:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 0xFFFF if crc & 0x8000 else crc << 1 & 0xFFFF
    return data[0] == 0x90 and crc.to_bytes(2, "little") == data[-2:]


def is_atlassian_pat(text: bytes) -> bool:
    """Whether the token begins with twelve digits and a colon, in base64: the id of a token of Jira or Confluence."""
    head = decode_base64(text[:20])
    return len(head) == 15 and head[:11].isdigit() and b":" in head[11:]


ACCOUNTS = (
    token(
        "adafruit-key",
        "Adafruit IO keys",
        TRUFFLEHOG,
        rb"aio_" + A + rb"{28}",
        "",
        is_mixed,
        hint=rb"aio_" + A + rb"{28}",
    ),
    token(
        "airtable-token",
        "Airtable tokens",
        "gitleaks; TruffleHog",
        rb"pat" + A + rb"{14}\." + H + rb"{64}|\b" + A + rb"{16,40}\.v1\." + W + rb"{20,60}\." + H + rb"{40,128}",
        "pat .v1.",
        hint=rb"pat" + A + rb"{14}\." + H + rb"{64}|\.v1\." + W + rb"{20,60}\." + H + rb"{40}",
    ),
    token(
        "asana-token",
        "Asana tokens",
        ISSUER,
        rb"\b[012]/[0-9]{15,17}(?:/[0-9]{15,17})?:" + H + rb"{32}\b",
        "",
        hint=rb"/[0-9]{15,17}:" + H + rb"{32}",
    ),
    token(
        "bitcoin-key",
        "private keys of wallets: WIF and BIP 32",
        "Bitcoin, Base58Check; BIP 32",
        rb"\b(?:[5KLT69Qc]" + B58 + rb"{50,51}|[xyztuv]prv" + B58 + rb"{107})\b",
        "",
        is_wallet_key,
        hint=rb"\b(?:[5KLT69Qc]" + B58 + rb"{50,51}|[xyztuv]prv" + B58 + rb"{20})",
    ),
    token(
        "clickup-token",
        "ClickUp tokens",
        ISSUER,
        rb"pk_[0-9]{5,10}_[A-Z0-9]{32}\b",
        "",
        hint=rb"pk_[0-9]{5,10}_[A-Z0-9]{32}",
    ),
    token(
        "close-key",
        "Close keys",
        TRUFFLEHOG,
        rb"api_" + A + rb"{20,24}\." + A + rb"{20,24}\b",
        "",
        is_mixed,
        hint=rb"api_" + A + rb"{20,24}\.",
    ),
    token("contentful-token", "Contentful tokens", TRUFFLEHOG, rb"CFPAT-" + W + rb"{43}", "CFPAT-"),
    token("flexport-token", "Flexport tokens", TRUFFLEHOG, rb"shltm_" + W + rb"{40}", "shltm_"),
    token(
        "gocardless-token",
        "GoCardless, Mollie and Lob keys",
        "gitleaks; TruffleHog",
        rb"(?:live_" + W + rb"{40}|(?:live|test)_(?:" + A + rb"{30}|" + H + rb"{35}))\b",
        "",
        is_mixed,
        hint=rb"(?:live|test)_" + W + rb"{30}",
    ),
    token(
        "hubspot-token",
        "HubSpot tokens",
        TRUFFLEHOG,
        rb"pat-(?:eu|na|ap)[0-9]-" + HEX_UUID,
        "pat-eu pat-na pat-ap",
        hint=rb"pat-(?:eu|na|ap)[0-9]-[0-9a-fA-F]{8}",
    ),
    token("instagram-token", "Instagram tokens", ISSUER, rb"IGAA[A-Za-z0-9]{80,}", "IGAA"),
    token(
        "jira-token",
        "tokens of Jira and Confluence on own servers",
        CREDSWEEPER,
        rb"\b[MNO][ADQTgjwz][AEIMQUYcgk][012345wxyz][A-Za-z0-9+/]{40}\b",
        "",
        is_atlassian_pat,
        hint=rb"\b[MNO][ADQTgjwz][AEIMQUYcgk][012345wxyz][A-Za-z0-9+/]{40}",
    ),
    token(
        "klaviyo-key",
        "Klaviyo keys",
        TRUFFLEHOG,
        rb"pk_(?:" + A + rb"{6}_)?" + H + rb"{34}\b",
        "",
        hint=rb"pk_(?:" + A + rb"{6}_)?" + H + rb"{34}",
    ),
    token(
        "linear-oauth", "Linear's other tokens", ISSUER, rb"lin_(?:oauth|wh)_[A-Za-z0-9]{32,64}", "lin_oauth_ lin_wh_"
    ),
    token("mailersend-token", "MailerSend tokens", ISSUER, rb"mlsn\." + H + rb"{64}", "mlsn."),
    token(
        "mapbox-token",
        "secret tokens of Mapbox",
        TRUFFLEHOG,
        rb"\b[st]k\.eyJ" + W + rb"{60,}\." + W + rb"{20,24}",
        "sk.eyJ tk.eyJ",
    ),
    token(
        "nightfall-key",
        "Nightfall keys",
        TRUFFLEHOG,
        rb"NF-" + A + rb"{32}",
        "",
        is_mixed,
        hint=rb"NF-" + A + rb"{32}",
    ),
    token("nostr-key", "private keys of Nostr", "NIP-19", rb"nsec1[ac-hj-np-z02-9]{58}\b", "nsec1"),
    token(
        "paddle-key",
        "Paddle keys",
        ISSUER,
        rb"pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_" + A + rb"{22}_" + A + rb"{3}",
        "pdl_",
    ),
    token("pagarme-key", "Pagar.me keys", TRUFFLEHOG, rb"ak_(?:live|test)_" + A + rb"{30}", "ak_live_ ak_test_"),
    token("photoroom-key", "Photoroom keys", TRUFFLEHOG, rb"sk_pr_" + A + rb"{1,64}_" + H + rb"{40}", "sk_pr_"),
    token(
        "polar-token",
        "Polar tokens",
        ISSUER,
        rb"polar_[a-z]{2,4}_" + A + rb"{36,48}",
        "polar_",
        is_mixed,
        hint=rb"polar_[a-z]{2,4}_" + A + rb"{36}",
    ),
    token("pubnub-key", "secret keys of PubNub", TRUFFLEHOG, rb"sec-c-[A-Za-z0-9]{40,80}", "sec-c-"),
    token("ramp-secret", "Ramp secrets", TRUFFLEHOG, rb"ramp_sec_" + A + rb"{48}", "ramp_sec_"),
    token("razorpay-key", "Razorpay keys", TRUFFLEHOG, rb"rzp_(?:live|test)_" + A + rb"{14}\b", "rzp_", is_mixed),
    token(
        "recharge-key",
        "Recharge keys",
        TRUFFLEHOG,
        rb"sk(?:_test)?_[0-9]{1,2}x[123]_" + H + rb"{64}",
        "",
        hint=rb"sk(?:_test)?_[0-9]{1,2}x[123]_",
    ),
    token(
        "resend-key",
        "Resend keys",
        ISSUER,
        rb"re_" + A + rb"{8}_" + A + rb"{24}\b",
        "",
        is_mixed,
        hint=rb"re_" + A + rb"{8}_" + A + rb"{24}",
    ),
    token("robinhood-key", "Robinhood keys", TRUFFLEHOG, rb"rh-api-" + HEX_UUID, "rh-api-"),
    token(
        "sanity-token",
        "Sanity tokens",
        TRUFFLEHOG,
        rb"sk" + A + rb"{79,178}\b",
        "",
        is_mixed,
        hint=rb"sk" + A + rb"{79}",
    ),
    token(
        "stellar-seed",
        "secret seeds of Stellar",
        "SEP-23",
        rb"\bS[A-Z2-7]{55}\b",
        "",
        has_stellar_checksum,
        hint=rb"\bS[A-Z2-7]{55}\b",
    ),
    token(
        "storyblok-token",
        "Storyblok tokens",
        TRUFFLEHOG,
        rb"\b" + A + rb"{22}tt-[0-9]{5,7}-" + W + rb"{20}",
        "tt-",
        hint=rb"tt-[0-9]{5}",
    ),
    token(
        "stripe-secret",
        "client secrets of Stripe's payments",
        TRUFFLEHOG,
        rb"(?:pi|seti|cs)_[A-Za-z0-9]{20,28}_secret_" + A + rb"{20,30}",
        "_secret_",
        hint=rb"(?:pi|seti|cs)_[A-Za-z0-9]{20,28}_secret_",
    ),
    token("telnyx-key", "Telnyx keys", ISSUER, rb"\bKEY[0-9A-F]{32}_" + W + rb"{22}", "", hint=rb"\bKEY[0-9A-F]{32}_"),
    token(
        "trello-token", "Trello tokens", ISSUER, rb"ATTA[a-f0-9]{64}[A-F0-9]{8}\b", "ATTA", hint=rb"ATTA[a-f0-9]{64}"
    ),
    token("ubidots-token", "Ubidots tokens", TRUFFLEHOG, rb"BBFF-" + A + rb"{30}", "BBFF-"),
    token("wakatime-key", "WakaTime keys", ISSUER, rb"waka_" + HEX_UUID, "waka_"),
    token(
        "x-bearer-token",
        "bearer tokens of X",
        "CredSweeper; gitleaks",
        rb"\bA{20,22}[A-Za-z0-9%]{60,110}\b",
        "AAAAAAAAAAAAAAAAAAAA",
        is_mixed,
    ),
    token(
        "zoho-token",
        "Zoho tokens",
        TRUFFLEHOG,
        rb"\b1000\." + H + rb"{32}\." + H + rb"{32}\b",
        "1000.",
        hint=rb"\b1000\." + H + rb"{32}\.",
    ),
)
