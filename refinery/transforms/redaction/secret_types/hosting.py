"""Credentials of hosting, databases, build services and registries that came after those of platforms.py.

Forms as the issuers give them out in 2026; collected in gitleaks (MIT), TruffleHog (AGPL-3.0; facts alone are taken:
pkg/detectors), CredSweeper (MIT) and, for Azure, Microsoft's security-utilities (MIT; keys that identify themselves).
"""

from refinery.transforms.redaction.secret_types.rules import (
    B64,
    CREDSWEEPER,
    HEX_UUID,
    ISSUER,
    TRUFFLEHOG,
    A,
    H,
    W,
    has_digit,
    is_mixed,
    token,
)

HOSTING = (
    token("aiven-password", "Aiven passwords and tokens", ISSUER, rb"AVNS_" + W + rb"{15,24}", "AVNS_"),
    token(
        "akamai-key",
        "Akamai keys",
        CREDSWEEPER,
        rb"aka[abc]-[a-z0-9]{16}-[a-z0-9]{16}",
        "akab- akaa- akac-",
        has_digit,
    ),
    token(
        "aws-session-token",
        "AWS session tokens",
        "AWS STS",
        rb"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9+/%]{80,999}={0,3}",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz",
    ),
    token(
        "azure-key",
        "Azure keys that identify themselves",
        "Microsoft, security-utilities; CredSweeper",
        A
        + rb"{52}JQQJ9[9DH]"
        + A
        + rb"{26}(?:[A-Za-z0-9=]{4})?|"
        + A
        + rb"{76}AZDO[A-Za-z0-9]{4}|"
        + B64
        + rb"{76}(?:\+ASt|ACDb|\+ABa|\+AMC|AzFu)"
        + B64
        + rb"{5,6}==|"
        + B64
        + rb"{33}(?:\+ASb|\+AEh|\+ARm|AIoT|AzCa|AzEG)"
        + B64
        + rb"{5}=|"
        + A
        + rb"{42}AzSe[A-D]"
        + A
        + rb"{5}|"
        + B64
        + rb"{42}\+ACR[A-D]"
        + B64
        + rb"{5}",
        "JQQJ9 AZDO +ASt ACDb +ABa +AMC AzFu +ASb +AEh +ARm AIoT AzCa AzEG AzSe +ACR",
        is_mixed,
        hint=rb"JQQJ9[9DH]|AZDO[A-Za-z0-9]{4}\b|(?:\+(?:ASt|ABa|AMC|ASb|AEh|ARm)|ACDb|AzFu|AIoT|AzCa|AzEG)"
        + B64
        + rb"{5,6}=|AzSe[A-D]|\+ACR[A-D]",
    ),
    token(
        "azure-sas",
        "signatures of Azure's shared access",
        "Microsoft, service SAS: sv and sig",
        rb"[?&;](?:sig|amp;sig)=([A-Za-z0-9%+/]{42,80}(?:%3[dD]|=))",
        "sig=",
        is_mixed,
        hint=rb"sig=[A-Za-z0-9%+/]{42}",
    ),
    token("buildkite-token", "Buildkite tokens", TRUFFLEHOG, rb"bkua_[A-Za-z0-9]{40,64}", "bkua_"),
    token(
        "cargo-token",
        "crates.io tokens",
        ISSUER,
        rb"\bcio" + A + rb"{32}\b",
        "",
        is_mixed,
        hint=rb"\bcio" + A + rb"{32}\b",
    ),
    token(
        "circleci-token",
        "CircleCI tokens",
        TRUFFLEHOG,
        rb"CCI(?:PAT|PRJ)_" + A + rb"{20,24}_" + H + rb"{40}",
        "CCIPAT_ CCIPRJ_",
    ),
    token(
        "confluent-key",
        "Confluent keys",
        ISSUER,
        rb"cflt[A-Za-z0-9+/]{60}",
        "",
        is_mixed,
        hint=rb"cflt[A-Za-z0-9+/]{60}",
    ),
    token(
        "dbt-token", "dbt Cloud tokens", ISSUER, rb"dbt[ucs]_[A-Za-z0-9_=+/-]{32,64}", "dbtu_ dbtc_ dbts_", has_digit
    ),
    token(
        "deno-token",
        "Deno Deploy tokens",
        TRUFFLEHOG,
        rb"dd[opw]_" + A + rb"{36,40}",
        "ddo_ ddp_ ddw_",
        hint=rb"dd[opw]_" + A + rb"{36}",
    ),
    token("elastic-key", "Elastic Cloud keys", ISSUER, rb"essu_" + W + rb"{40,}={0,2}", "essu_"),
    token("endor-key", "Endor Labs keys", TRUFFLEHOG, rb"endr\+" + W + rb"{16}", "endr+", has_digit),
    token(
        "figma-token",
        "Figma tokens",
        TRUFFLEHOG,
        rb"fig(?:[dp]|[uo][rh]?)_" + W + rb"{40,54}",
        "figd_ figp_ figu_ figo_ figur_ figuh_ figor_ figoh_",
    ),
    token(
        "firebase-key", "Firebase messaging keys", ISSUER, rb"AAAA" + W + rb"{7}:APA91b" + W + rb"{120,160}", ":APA91b"
    ),
    token(
        "flyio-macaroon",
        "Fly.io tokens with their scheme",
        TRUFFLEHOG,
        rb"FlyV1 (fm[0-9]+[ar]?_[A-Za-z0-9+/=,_-]{100,})",
        "FlyV1",
    ),
    token("gemini-key", "Google AI Studio keys of 2025", ISSUER, rb"AQ\.Ab8" + W + rb"{40,64}", "AQ.Ab8"),
    token("google-oauth-code", "Google authorization codes", ISSUER, rb"\b4/0A" + W + rb"{40,120}", "4/0A"),
    token(
        "infisical-token",
        "Infisical tokens",
        ISSUER,
        rb"st\." + H + rb"{24}\." + H + rb"{32}\." + H + rb"{32}",
        "st.",
        hint=rb"st\." + H + rb"{24}\.",
    ),
    token(
        "kubernetes-token",
        "bootstrap tokens of Kubernetes, tokens of Rancher",
        "Kubernetes documentation, kubeadm; Rancher",
        rb"--(?:token|discovery-token)[ =]([a-z0-9]{6}\.[a-z0-9]{16})\b|\btoken-[a-z0-9]{5}:[a-z0-9]{54}\b",
        "--token --discovery-token token-",
        has_digit,
        hint=rb"token[ =][a-z0-9]{6}\.[a-z0-9]{16}|\btoken-[a-z0-9]{5}:[a-z0-9]{54}",
    ),
    token(
        "launchdarkly-key",
        "LaunchDarkly keys",
        TRUFFLEHOG,
        rb"(?:api|sdk|mob)-" + HEX_UUID,
        "",
        hint=rb"(?:api|sdk|mob)-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-",
    ),
    token("mongodb-secret", "MongoDB Atlas secrets", ISSUER, rb"mdb_sa_sk_" + W + rb"{36,48}", "mdb_sa_sk_"),
    token("neon-key", "Neon keys", ISSUER, rb"napi_[a-z0-9]{60,68}", "napi_"),
    token(
        "ngrok-token",
        "ngrok tokens",
        TRUFFLEHOG,
        rb"\b[23][A-Za-z0-9]{26}_[0-9]?[A-Za-z0-9]{20}\b",
        "",
        is_mixed,
        hint=rb"\b[23][A-Za-z0-9]{26}_[A-Za-z0-9]{20}",
    ),
    token("packagist-token", "Packagist tokens", ISSUER, rb"packagist_[a-z]{3}_" + H + rb"{60,76}", "packagist_"),
    token(
        "portainer-token",
        "Portainer tokens",
        ISSUER,
        rb"ptr_[A-Za-z0-9+/]{43}=",
        "ptr_",
        is_mixed,
        hint=rb"ptr_[A-Za-z0-9+/]{43}=",
    ),
    token("render-key", "Render keys", ISSUER, rb"rnd_" + A + rb"{24,40}", "", is_mixed, hint=rb"rnd_" + A + rb"{24}"),
    token("rootly-key", "Rootly keys", TRUFFLEHOG, rb"rootly_" + H + rb"{64}", "rootly_"),
    token(
        "scaleway-key",
        "Scaleway access keys",
        ISSUER,
        rb"\bSCW[A-Z0-9]{17}\b",
        "",
        has_digit,
        hint=rb"\bSCW[A-Z0-9]{17}\b",
    ),
    token("sonarcloud-token", "SonarQube Cloud tokens", TRUFFLEHOG, rb"sqco_" + A + rb"{59}", "sqco_"),
    token(
        "tailscale-key",
        "Tailscale keys",
        TRUFFLEHOG,
        rb"tskey-[a-z]{3,12}-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{16,64}",
        "tskey-",
    ),
    token("tencent-id", "Tencent Cloud secret ids", ISSUER, rb"AKID" + A + rb"{28,40}\b", "AKID", is_mixed),
    token("volcengine-key", "Volcengine access keys", ISSUER, rb"AKLT" + W + rb"{36,64}", "AKLT", is_mixed),
    token("wundergraph-key", "WunderGraph keys", CREDSWEEPER, rb"cosmo_" + H + rb"{32}", "cosmo_"),
    token("xata-key", "Xata keys", ISSUER, rb"xau_" + A + rb"{36,48}", "xau_"),
)
