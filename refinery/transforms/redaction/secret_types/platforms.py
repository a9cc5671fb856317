"""Credentials of clouds, code hosts, package registries and of standards: tokens that say themselves what they are.

See secret_types/rules.py for where these grammars come from.
"""

from refinery.transforms.redaction.secret_types.rules import (
    B64,
    CREDSWEEPER,
    DETECT,
    GITLEAKS,
    HEX_UUID,
    A,
    W,
    is_base36_mixed,
    is_jwk,
    is_jwt,
    is_old_vault,
    token,
)

PLATFORMS = (
    token(
        "aws-access-key",
        "AWS access key ids",
        "AWS IAM identifiers; gitleaks",
        rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        "A3T AKIA ASIA ABIA ACCA",
        hint=rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8}",
    ),
    token(
        "aws-bedrock-key",
        "Amazon Bedrock API keys",
        GITLEAKS,
        rb"ABSK"
        + B64
        + rb"{109,269}={0,2}|bedrock-api-key-(?:YmVkcm9jay5hbWF6b25hd3MuY29t|"
        + A
        + rb"{32})[A-Za-z0-9+/=]*",
        "ABSK bedrock-api-key-",
    ),
    token("aws-appsync-key", "AWS AppSync API keys", CREDSWEEPER, rb"da2-[a-z0-9]{26}", "da2-"),
    token("aws-mws-key", "Amazon MWS keys", CREDSWEEPER, rb"amzn\.mws\." + HEX_UUID, "amzn.mws."),
    token(
        "age-key",
        "keys of age",
        GITLEAKS,
        rb"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
        "AGE-SECRET-KEY-1",
    ),
    token("alibaba-key", "Alibaba Cloud access keys", GITLEAKS, rb"LTAI[A-Za-z0-9]{12,24}", "LTAI"),
    token(
        "artifactory-token",
        "JFrog API keys and reference tokens",
        GITLEAKS,
        rb"AKCp" + A + rb"{69}|cmVmd" + A + rb"{59}|(?:^|[\s=:\"'])(AKC" + A + rb"{10,}|AP[0-9A-F]" + A + rb"{8,})",
        "AKC cmVmd AP0 AP1 AP2 AP3 AP4 AP5 AP6 AP7 AP8 AP9 APA APB APC APD APE APF",
        is_base36_mixed,
        hint=rb"AKC[A-Za-z0-9]{10}|cmVmd[A-Za-z0-9]{20}|[\s=:\"\x27]AP[0-9A-F][A-Za-z0-9]{8}|\AAP[0-9A-F]",
    ),
    token(
        "azure-ad-secret",
        "Microsoft Entra client secrets",
        GITLEAKS,
        rb"(?:^|[^\w~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
        "Q~",
        hint=rb"[0-9]Q~",
    ),
    token(
        "azure-storage-key",
        "Azure keys of 64 bytes",
        DETECT,
        rb"(?i:(?:account|shared_?access|access)_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(" + B64 + rb"{86}==)",
        "==",
        hint=rb"(?i)(?:account|access)_?key[\"\x27]?\s{0,3}[=:]",
    ),
    token(
        "clickhouse-key",
        "ClickHouse Cloud keys",
        GITLEAKS,
        rb"4b1d[A-Za-z0-9]{38}",
        "4b1d",
        hint=rb"4b1d[A-Za-z0-9]{24}",
    ),
    token("clojars-token", "Clojars tokens", GITLEAKS, rb"CLOJARS_[A-Za-z0-9]{60}", "CLOJARS_"),
    token(
        "cloudflare-token",
        "Cloudflare keys and tokens",
        "gitleaks; CredSweeper",
        rb"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}|cf(?:[au]t|k)_[A-Za-z0-9]{48}",
        "v1.0- cfat_ cfut_ cfk_",
    ),
    token(
        "cloudant-url",
        "IBM Cloudant addresses with a password",
        DETECT,
        rb"://[\w-]{1,64}:([0-9a-z]{64})@[\w.-]{1,64}\.cloudant\.com",
        ".cloudant.com",
    ),
    token(
        "databricks-token",
        "Databricks tokens",
        GITLEAKS,
        rb"dapi[a-f0-9]{32}(?:-[0-9])?",
        "dapi",
        hint=rb"dapi[a-f0-9]{8}",
    ),
    token(
        "digitalocean-token", "DigitalOcean tokens", GITLEAKS, rb"do[opr]_v1_[a-f0-9]{64}", "doo_v1_ dop_v1_ dor_v1_"
    ),
    token(
        "docker-token",
        "Docker tokens",
        CREDSWEEPER,
        rb"dckr_[op]at_" + W + rb"{24,40}|SWMTKN-1-[a-z0-9]{40,60}-[a-z0-9]{20,30}|SWMKEY-1-[A-Za-z0-9+/]{40,50}",
        "dckr_ SWMTKN-1- SWMKEY-1-",
    ),
    token(
        "doppler-token",
        "Doppler tokens",
        GITLEAKS,
        rb"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
    ),
    token(
        "dropbox-token",
        "Dropbox tokens",
        "gitleaks; CredSweeper",
        rb"sl\.(?:u\.)?[A-Za-z0-9_=-]{77,999}|[A-Za-z0-9]{10,12}A{10,12}[A-Za-z0-9_=-]{40,44}",
        "sl. AAAAAAAAAA",
        hint=rb"sl\.(?:u\.)?[A-Za-z0-9_=-]{60}|AAAAAAAAAA",
    ),
    token(
        "dynatrace-token",
        "Dynatrace tokens",
        GITLEAKS,
        rb"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
        "dt0",
        hint=rb"dt0[a-z][0-9]{2}\.",
    ),
    token(
        "flyio-token",
        "Fly.io tokens",
        GITLEAKS,
        rb"fo1_" + W + rb"{43}|fm1[ar]_" + B64 + rb"{100,}={0,3}|fm2_" + B64 + rb"{100,}={0,3}",
        "fo1_ fm1a_ fm1r_ fm2_",
    ),
    token(
        "gcp-key",
        "Google API keys and OAuth secrets",
        "gitleaks; CredSweeper",
        rb"AIza" + W + rb"{35}|GOCSPX-" + W + rb"{28}|ya29\." + W + rb"{22,}|1//0" + W + rb"{80,120}",
        "AIza GOCSPX- ya29. 1//0",
        hint=rb"AIza|GOCSPX-|ya29\.|1//0[A-Za-z0-9_-]{20}",
    ),
    token(
        "github-token",
        "GitHub tokens",
        "GitHub's token formats (2021); CredSweeper",
        rb"gh[opsru]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{80,90}"
        rb"|ghs_[0-9]{1,20}_eyJ[A-Za-z0-9_-]{15,}(?:\.[A-Za-z0-9_-]*){1,8}",
        "ghp_ gho_ ghs_ ghr_ ghu_ github_pat_",
    ),
    token(
        "gitlab-token",
        "GitLab tokens",
        "GitLab's list of token prefixes; detect-secrets",
        rb"gl(?:pat|dt|ft|rt|imt|soat|cbt|ffct|wt|rtr)-" + W + rb"{20,300}(?:\.[0-9a-z]{2}\.?[0-9A-Za-z]{7,9})?"
        rb"|glptt-[a-f0-9]{40}|gloas-"
        + W
        + rb"{64}|glagent-"
        + W
        + rb"{50,1000}|GR1348941"
        + W
        + rb"{20}|_gitlab_session=([0-9a-z]{32})",
        "glpat- gldt- glft- glrt- glimt- glsoat- glcbt- glffct- glwt- glrtr- glptt- gloas- glagent- GR1348941"
        " _gitlab_session=",
    ),
    token(
        "grafana-token",
        "Grafana tokens",
        "gitleaks; CredSweeper",
        rb"glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9+/]{60,400}={0,3}",
        "glc_ glsa_ eyJrIjoi",
        hint=rb"gl(?:c|sa)_[A-Za-z0-9+/]{8}|eyJrIjoi",
    ),
    token(
        "harness-key",
        "Harness keys",
        GITLEAKS,
        rb"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        "pat. sat.",
        hint=rb"[ps]at\.[A-Za-z0-9_-]{22}",
    ),
    token("heroku-key", "Heroku keys", GITLEAKS, rb"HRKU-(?:AA" + W + rb"{58}|" + HEX_UUID + rb")", "HRKU-"),
    token("infracost-key", "Infracost keys", GITLEAKS, rb"ico-[A-Za-z0-9]{32}", "ico-", hint=rb"ico-[A-Za-z0-9]{32}"),
    token(
        "jwt",
        "JSON Web Tokens",
        "RFC 7519; the header is decoded",
        rb"eyJ[A-Za-z0-9_=-]{10,}\.(?:eyJ|ew)[A-Za-z0-9_=-]{4,}(?:\.[A-Za-z0-9_.+/=-]*)?",
        "eyJ",
        is_jwt,
        hint=rb"eyJ[A-Za-z0-9_=-]{10}",
    ),
    token(
        "jwk",
        "private parts of JSON Web Keys, also in base64",
        "RFC 7517; RFC 7518 6",
        rb"(?:e[wyA3]|W[3w0yA])[A-Za-z0-9+/_-]*(?:Imt0eSI|JrdHki|ia3R5I)[A-Za-z0-9+/_-]{20,}={0,2}",
        "Imt0eSI JrdHki ia3R5I",
        is_jwk,
    ),
    token(
        "netlify-token",
        "Netlify tokens",
        CREDSWEEPER,
        rb"nf[pcuob]_[A-Za-z0-9]{36}",
        "nfp_ nfc_ nfu_ nfo_ nfb_",
        hint=rb"nf[pcuob]_[A-Za-z0-9]{20}",
    ),
    token(
        "newrelic-key",
        "New Relic keys",
        GITLEAKS,
        rb"NR(?:AK|II|IQ|BR|JS|RA|AA)-[A-Za-z0-9_-]{19,40}|\b(?:eu01x)?[0-9a-f]{30,36}NRAL",
        "NRAK- NRII- NRIQ- NRBR- NRJS- NRRA- NRAA- NRAL",
        hint=rb"NR(?:AK|II|IQ|BR|JS|RA|AA)-|NRAL\b",
    ),
    token(
        "nkey-seed", "seeds of NATS nkeys", CREDSWEEPER, rb"S[ACOUNX][A-Z2-7]{56}", "", hint=rb"\bS[ACOUNX][A-Z2-7]{20}"
    ),
    token(
        "npm-token",
        "npm tokens",
        DETECT,
        rb"npm_[A-Za-z0-9]{36}|:_(?:authToken|password|auth)[ \t]{0,3}=[ \t]{0,3}[\"']?(npm_[A-Za-z0-9]{10,}|"
        + HEX_UUID
        + rb"|[A-Za-z0-9+/=_-]{20,})",
        "npm_ :_auth :_password",
        hint=rb"npm_[A-Za-z0-9]{10}|:_(?:auth|password)",
    ),
    token(
        "ntlm-message",
        "NTLM messages that authenticate",
        "[MS-NLMP] 2.2.1.3",
        rb"TlRMTVNTUAAD[A-Za-z0-9+/]{40,}={0,2}",
        "TlRMTVNTUAAD",
    ),
    token("nuget-key", "NuGet keys", CREDSWEEPER, rb"oy2[a-z0-9]{43}", "oy2", hint=rb"oy2[a-z0-9]{20}"),
    token("octopus-key", "Octopus Deploy keys", GITLEAKS, rb"API-[A-Z0-9]{26,32}", "API-", hint=rb"API-[A-Z0-9]{20}"),
    token("openshift-token", "OpenShift tokens", GITLEAKS, rb"sha256~" + W + rb"{43}", "sha256~"),
    token(
        "planetscale-token", "PlanetScale tokens", GITLEAKS, rb"pscale_(?:pw|tkn|oauth|otkn)_[\w=.-]{32,64}", "pscale_"
    ),
    token("prefect-key", "Prefect keys", GITLEAKS, rb"pn[ub]_[A-Za-z0-9]{36}", "pnu_ pnb_"),
    token("pulumi-token", "Pulumi tokens", GITLEAKS, rb"\bpul-[a-f0-9]{40}", "pul-", hint=rb"\bpul-[a-f0-9]{8}"),
    token(
        "pypi-token",
        "PyPI tokens",
        DETECT,
        rb"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)" + W + rb"{70,}",
        "pypi-AgE",
    ),
    token("rubygems-key", "RubyGems keys", GITLEAKS, rb"rubygems_[a-f0-9]{48}", "rubygems_"),
    token("scalingo-token", "Scalingo tokens", GITLEAKS, rb"tk-us-" + W + rb"{48}", "tk-us-"),
    token(
        "softlayer-url",
        "SoftLayer addresses with a key",
        DETECT,
        rb"(?i:api\.softlayer\.com/soap/v3(?:\.1)?/)([A-Za-z0-9]{64})",
        hint=rb"(?i)softlayer\.com/soap",
    ),
    token(
        "sonar-token",
        "SonarQube tokens",
        GITLEAKS,
        rb"\bsq[upa]_[A-Za-z0-9]{40}|(?i:sonar[._-]?(?:login|token)[\"']?\s{0,3}(?:[:?]{0,3}=|:)\s{0,3}[\"']?)([A-Za-z0-9=_-]{40,44})",
        hint=rb"sq[upa]_|(?i:sonar[._-]?(?:login|token))",
    ),
    token(
        "sourcegraph-token",
        "Sourcegraph tokens",
        GITLEAKS,
        rb"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}|slk_[a-f0-9]{64}",
        "sgp_ slk_",
    ),
    token(
        "supabase-token",
        "Supabase tokens",
        CREDSWEEPER,
        rb"sbp_(?:v0_)?[a-f0-9]{40}|sb_secret_" + W + rb"{22,40}",
        "sbp_ sb_secret_",
    ),
    token(
        "terraform-token",
        "HCP Terraform tokens",
        GITLEAKS,
        rb"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{60,70}",
        ".atlasv1.",
    ),
    token(
        "vault-token",
        "HashiCorp Vault tokens",
        GITLEAKS,
        rb"hv[br]\.[\w-]{100,300}|hvs\.[\w-]{80,160}|\bs\.[A-Za-z0-9]{24}\b",
        "hvb. hvr. hvs. s.",
        is_old_vault,
        hint=rb"hv[brs]\.|\bs\.[A-Za-z0-9]{24}",
    ),
    token(
        "vercel-token", "Vercel tokens", CREDSWEEPER, rb"vc[pkrica]_[A-Za-z0-9]{56}", "vcp_ vck_ vcr_ vci_ vca_ vcc_"
    ),
    token(
        "yandex-key",
        "Yandex Cloud keys",
        GITLEAKS,
        rb"AQVN" + W + rb"{35,38}|\bt1\.[A-Za-z0-9_-]{20,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}",
        "AQVN t1.",
        hint=rb"AQVN|\bt1\.[A-Za-z0-9_-]{20}",
    ),
)
