"""Credentials of services: models, messages, mail, payment, monitoring. Tokens that say themselves what they are.

See secret_types/rules.py for where these grammars come from.
"""

from refinery.transforms.redaction.secret_types.rules import (
    B64,
    CREDSWEEPER,
    DETECT,
    GITLEAKS,
    HEX_UUID,
    W,
    has_six_digits,
    is_discord,
    token,
)

SERVICES = (
    token("adobe-secret", "Adobe client secrets", GITLEAKS, rb"p8e-[A-Za-z0-9]{32}", "p8e-"),
    token(
        "atlassian-token",
        "Atlassian and Bitbucket tokens",
        "gitleaks; CredSweeper",
        rb"ATATT3[A-Za-z0-9_=-]{60,200}|ATCTT3"
        + W
        + rb"{60,200}=[A-F0-9]{8}|ATBB[A-Za-z0-9]{24}[A-F0-9]{8}|BBDC-[NMO][ADgjQTwz]"
        + B64
        + rb"{42}",
        "ATATT3 ATCTT3 ATBB BBDC-",
    ),
    token(
        "authress-key",
        "Authress access keys",
        GITLEAKS,
        rb"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
        ".acc",
        hint=rb"\.acc[_-][A-Za-z0-9-]{10}",
    ),
    token(
        "defined-key", "Defined Networking keys", GITLEAKS, rb"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", "dnkey-"
    ),
    token(
        "discord-token",
        "Discord bot tokens and webhooks",
        DETECT,
        rb"\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}|discord(?:app)?\.com/api/webhooks(/[0-9]{17,20}/"
        + W
        + rb"{60,80})",
        check=is_discord,
        hint=rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}|api/webhooks",
    ),
    token("duffel-token", "Duffel tokens", GITLEAKS, rb"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}", "duffel_"),
    token("easypost-key", "EasyPost keys", GITLEAKS, rb"EZ[AT]K[A-Za-z0-9]{54}", "EZAK EZTK"),
    token(
        "facebook-token",
        "Facebook tokens",
        GITLEAKS,
        rb"\b[0-9]{15,16}(?:\||%)[A-Za-z0-9_-]{27,40}|EAA[MC][A-Za-z0-9]{100,}|IGQV[A-Za-z0-9_-]{100,}",
        "EAAM EAAC IGQV | %",
        hint=rb"[0-9]{15}[|%]|EAA[MC]|IGQV",
    ),
    token(
        "flutterwave-key",
        "Flutterwave keys",
        GITLEAKS,
        rb"FLWSECK(?:_TEST)?-(?:[A-Ha-h0-9]{32}-X|[A-Ha-h0-9]{12})",
        "FLWSECK",
    ),
    token("frameio-token", "Frame.io tokens", GITLEAKS, rb"fio-u-[A-Za-z0-9_=-]{64}", "fio-u-"),
    token("intra42-secret", "42 client secrets", GITLEAKS, rb"s-s4t2(?:ud|af)-[a-f0-9]{64}", "s-s4t2", hint=rb"s-s4t2"),
    token("linear-key", "Linear keys", GITLEAKS, rb"lin_api_[A-Za-z0-9]{40}", "lin_api_"),
    token("mailchimp-key", "Mailchimp keys", DETECT, rb"\b[0-9a-f]{32}-us[0-9]{1,2}", "-us", hint=rb"[0-9a-f]-us[0-9]"),
    token(
        "mailgun-key",
        "Mailgun keys",
        GITLEAKS,
        rb"\bkey-[0-9a-f]{32}|\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
        "key- -",
        hint=rb"key-[0-9a-f]{8}|[0-9a-f]-[0-9a-f]{8}-[0-9a-f]{8}\b",
    ),
    token("maxmind-key", "MaxMind licence keys", GITLEAKS, rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", "_mmk"),
    token(
        "notion-token",
        "Notion tokens",
        GITLEAKS,
        rb"ntn_[0-9]{9,11}[A-Za-z0-9]{35,37}|secret_[A-Za-z0-9]{43}",
        "ntn_ secret_",
        hint=rb"ntn_[0-9]|secret_[A-Za-z0-9]{20}",
    ),
    token(
        "onepassword-token",
        "1Password keys and tokens",
        GITLEAKS,
        rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}|ops_eyJ[A-Za-z0-9+/_-]{200,}={0,3}",
        "A3- ops_eyJ",
        hint=rb"A3-[A-Z0-9]{6}|ops_eyJ",
    ),
    token(
        "paypal-token",
        "Braintree tokens",
        CREDSWEEPER,
        rb"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-z]{32}",
        "access_token$",
    ),
    token(
        "plaid-token",
        "Plaid tokens",
        GITLEAKS,
        rb"access-(?:sandbox|development|production)-" + HEX_UUID,
        "access-",
        hint=rb"access-(?:sandbox|development|production)-",
    ),
    token(
        "posthog-key",
        "PostHog keys",
        CREDSWEEPER,
        rb"ph[acrsx]_[A-Za-z0-9]{40,64}",
        "phc_ pha_ phr_ phs_ phx_",
        hint=rb"ph[acrsx]_[A-Za-z0-9]{20}",
    ),
    token(
        "postman-key",
        "Postman keys",
        GITLEAKS,
        rb"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}|PMAT-[0-9A-Z]{26}",
        "PMAK- PMAT-",
    ),
    token("readme-key", "ReadMe keys", GITLEAKS, rb"rdme_[a-z0-9]{70}", "rdme_"),
    token(
        "salesforce-token",
        "Salesforce session ids and client ids",
        CREDSWEEPER,
        rb"\b00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{60,140}|\b3MVG[A-Za-z0-9_.]{80,90}",
        "00D 3MVG",
        hint=rb"00D[A-Za-z0-9]{12,15}!|3MVG[A-Za-z0-9_.]{20}",
    ),
    token(
        "sendgrid-key",
        "SendGrid keys",
        "gitleaks; detect-secrets",
        rb"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        "SG.",
        hint=rb"SG\.[A-Za-z0-9_-]{16}",
    ),
    token("sendinblue-key", "Brevo keys", GITLEAKS, rb"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}", "xkeysib-"),
    token(
        "sentry-token",
        "Sentry tokens",
        GITLEAKS,
        rb"sntrys_eyJ[A-Za-z0-9+/]{20,400}={0,2}_[A-Za-z0-9+/]{43}|sntryu_[a-f0-9]{64}",
        "sntrys_eyJ sntryu_",
    ),
    token("settlemint-token", "SettleMint tokens", GITLEAKS, rb"sm_[aps]at_[A-Za-z0-9]{16}", "sm_aat_ sm_pat_ sm_sat_"),
    token("shippo-token", "Shippo tokens", GITLEAKS, rb"shippo_(?:live|test)_[a-fA-F0-9]{40}", "shippo_"),
    token(
        "shopify-token",
        "Shopify tokens",
        GITLEAKS,
        rb"shp(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{32}",
        "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_",
    ),
    token(
        "sidekiq-secret",
        "Sidekiq passwords",
        GITLEAKS,
        rb"(?i:CONTRIBSYS__COM[\"']?\s{0,3}[=:]\s{0,3}[\"']?)([a-fA-F0-9]{8}:[a-fA-F0-9]{8})|://([a-f0-9]{8}:[a-f0-9]{8})@(?:gems|enterprise)\.contribsys\.com",
        hint=rb"(?i)contribsys",
    ),
    token(
        "slack-token",
        "Slack tokens",
        "gitleaks; detect-secrets; CredSweeper",
        rb"xox[a-z]-[0-9A-Za-z-]{20,250}|xox[ar]-(?:[0-9]-)?[0-9A-Za-z]{10,48}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{32,}|xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,}",
        "xox xapp-",
        has_six_digits,
        hint=rb"xox[a-z][-.]|xapp-",
    ),
    token(
        "slack-webhook",
        "Slack webhooks",
        GITLEAKS,
        rb"hooks\.slack\.com(/(?:services|workflows|triggers)/[A-Za-z0-9+/]{36,80})",
        "hooks.slack.com/",
    ),
    token(
        "square-token",
        "Square tokens",
        GITLEAKS,
        rb"EAAA" + W + rb"{60}|sq0[a-z]{3}-" + W + rb"{22,60}",
        "EAAA sq0",
        hint=rb"EAAA|sq0[a-z]{3}-",
    ),
    token(
        "stripe-key",
        "Stripe keys",
        GITLEAKS,
        rb"\b[rs]k_(?:test|live|prod)_[A-Za-z0-9-]{10,250}|\bwhsec_[A-Za-z0-9+/]{24,160}",
        "sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_ whsec_",
    ),
    token(
        "sumologic-id",
        "Sumo Logic access ids",
        GITLEAKS,
        rb"(?i:sumo(?:logic)?[._-]?access_?id[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(su[A-Za-z0-9]{12})",
        hint=rb"(?i)sumo(?:logic)?[._-]?access_?id",
    ),
    token(
        "teams-webhook",
        "Microsoft Teams webhooks",
        GITLEAKS,
        rb"webhook\.office\.com/webhookb2(/"
        + HEX_UUID
        + rb"@"
        + HEX_UUID
        + rb"/IncomingWebhook/[a-zA-Z0-9]{32}/"
        + HEX_UUID
        + rb")",
        "webhook.office.com/",
    ),
    token(
        "telegram-token",
        "Telegram bot tokens",
        DETECT,
        rb"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
        ":AA",
        hint=rb"[0-9]:AA[A-Za-z0-9_-]",
    ),
    token(
        "twilio-key",
        "Twilio keys and account ids",
        "gitleaks; detect-secrets",
        rb"\b(?:SK|AC)[0-9a-f]{32}\b",
        hint=rb"\b(?:SK|AC)[0-9a-f]{12}",
    ),
    token(
        "typeform-token",
        "Typeform tokens",
        GITLEAKS,
        rb"tfp_[A-Za-z0-9_.=-]{59}",
        "tfp_",
        hint=rb"tfp_[A-Za-z0-9_.=-]{30}",
    ),
    token("wechat-id", "WeChat app ids", CREDSWEEPER, rb"\bwx[0-9a-f]{16}\b", hint=rb"\bwx[0-9a-f]{16}"),
)
