"""The table of tokens: by provider, what a credential looks like that says itself what it is.

See secrets_rules.py for where the grammars come from.
"""

from collections.abc import Callable

from refinery.transforms.filter.secrets_rules import Token, is_base36_mixed, is_discord, is_jwt

GITLEAKS, DETECT, CREDSWEEPER = "gitleaks", "detect-secrets", "CredSweeper"


def _token(
    name: str,
    what: str,
    source: str,
    pattern: bytes,
    anchors: str = "",
    check: Callable[[bytes], bool] | None = None,
    hint: bytes = b"",
) -> Token:
    return Token(name, what, source, pattern, tuple(anchors.encode().split()), check, hint)


HEX_UUID = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
W = rb"[A-Za-z0-9_-]"
A = rb"[A-Za-z0-9]"
B64 = rb"[A-Za-z0-9+/]"

TOKENS = (
    _token(
        "aws-access-key", "AWS access key ids", "AWS IAM identifiers; gitleaks",
        rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "A3T AKIA ASIA ABIA ACCA", hint=rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8}"),
    _token(
        "aws-bedrock-key", "Amazon Bedrock API keys", GITLEAKS,
        rb"ABSK" + B64 + rb"{109,269}={0,2}|bedrock-api-key-(?:YmVkcm9jay5hbWF6b25hd3MuY29t|" + A + rb"{32})[A-Za-z0-9+/=]*",
        "ABSK bedrock-api-key-",
    ),
    _token("aws-appsync-key", "AWS AppSync API keys", CREDSWEEPER, rb"da2-[a-z0-9]{26}", "da2-"),
    _token("aws-mws-key", "Amazon MWS keys", CREDSWEEPER, rb"amzn\.mws\." + HEX_UUID, "amzn.mws."),
    _token("age-key", "keys of age", GITLEAKS, rb"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", "AGE-SECRET-KEY-1"),
    _token("adobe-secret", "Adobe client secrets", GITLEAKS, rb"p8e-[A-Za-z0-9]{32}", "p8e-"),
    _token("alibaba-key", "Alibaba Cloud access keys", GITLEAKS, rb"LTAI[A-Za-z0-9]{12,24}", "LTAI"),
    _token("anthropic-key", "Anthropic keys", GITLEAKS, rb"sk-ant-(?:api|admin|oat|ort|sid)[0-9]{2}-(?:" + W + rb"{91}AA|" + W + rb"{86})", "sk-ant-"),
    _token(
        "artifactory-token", "JFrog API keys and reference tokens", GITLEAKS,
        rb"AKCp" + A + rb"{69}|cmVmd" + A + rb"{59}|(?:^|[\s=:\"'])(AKC" + A + rb"{10,}|AP[0-9A-F]" + A + rb"{8,})",
        "AKC cmVmd AP0 AP1 AP2 AP3 AP4 AP5 AP6 AP7 AP8 AP9 APA APB APC APD APE APF", is_base36_mixed, hint=rb"AKC[A-Za-z0-9]{10}|cmVmd[A-Za-z0-9]{20}|[\s=:\"\x27]AP[0-9A-F][A-Za-z0-9]{8}|\AAP[0-9A-F]"),
    _token(
        "atlassian-token", "Atlassian and Bitbucket tokens", "gitleaks; CredSweeper",
        rb"ATATT3[A-Za-z0-9_=-]{60,200}|ATCTT3" + W + rb"{60,200}=[A-F0-9]{8}|ATBB[A-Za-z0-9]{24}[A-F0-9]{8}|BBDC-[NMO][ADgjQTwz]" + B64 + rb"{42}",
        "ATATT3 ATCTT3 ATBB BBDC-",
    ),
    _token(
        "authress-key", "Authress access keys", GITLEAKS,
        rb"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}", ".acc",
    ),
    _token("azure-ad-secret", "Microsoft Entra client secrets", GITLEAKS, rb"(?:^|[^\w~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})", "Q~", hint=rb"[0-9]Q~"),
    _token("azure-storage-key", "Azure keys of 64 bytes", DETECT, rb"(?i:(?:account|shared_?access|access)_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(" + B64 + rb"{86}==)", "==", hint=rb"(?i)(?:account|access)_?key[\"\x27]?\s{0,3}[=:]"),
    _token("clickhouse-key", "ClickHouse Cloud keys", GITLEAKS, rb"4b1d[A-Za-z0-9]{38}", "4b1d"),
    _token("clojars-token", "Clojars tokens", GITLEAKS, rb"CLOJARS_[A-Za-z0-9]{60}", "CLOJARS_"),
    _token(
        "cloudflare-token", "Cloudflare keys and tokens", "gitleaks; CredSweeper",
        rb"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}|cf(?:[au]t|k)_[A-Za-z0-9]{48}", "v1.0- cfat_ cfut_ cfk_",
    ),
    _token("cloudant-url", "IBM Cloudant addresses with a password", DETECT, rb"://[\w-]{1,64}:([0-9a-z]{64})@[\w.-]{1,64}\.cloudant\.com", ".cloudant.com"),
    _token("databricks-token", "Databricks tokens", GITLEAKS, rb"dapi[a-f0-9]{32}(?:-[0-9])?", "dapi"),
    _token("defined-key", "Defined Networking keys", GITLEAKS, rb"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", "dnkey-"),
    _token("digitalocean-token", "DigitalOcean tokens", GITLEAKS, rb"do[opr]_v1_[a-f0-9]{64}", "doo_v1_ dop_v1_ dor_v1_"),
    _token(
        "discord-token", "Discord bot tokens and webhooks", DETECT,
        rb"\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}|discord(?:app)?\.com/api/webhooks(/[0-9]{17,20}/" + W + rb"{60,80})",
        check=is_discord, hint=rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}|api/webhooks"),
    _token("docker-token", "Docker tokens", CREDSWEEPER, rb"dckr_[op]at_" + W + rb"{24,40}|SWMTKN-1-[a-z0-9]{40,60}-[a-z0-9]{20,30}|SWMKEY-1-[A-Za-z0-9+/]{40,50}", "dckr_ SWMTKN-1- SWMKEY-1-"),
    _token("doppler-token", "Doppler tokens", GITLEAKS, rb"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit."),
    _token("dropbox-token", "Dropbox tokens", "gitleaks; CredSweeper", rb"sl\.[A-Za-z0-9_=-]{130,152}|[A-Za-z0-9]{10,12}A{10,12}[A-Za-z0-9_=-]{40,44}", "sl. AAAAAAAAAA", hint=rb"sl\.[A-Za-z0-9_=-]{20}|AAAAAAAAAA"),
    _token("duffel-token", "Duffel tokens", GITLEAKS, rb"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}", "duffel_"),
    _token("dynatrace-token", "Dynatrace tokens", GITLEAKS, rb"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}", "dt0", hint=rb"dt0[a-z][0-9]{2}\."),
    _token("easypost-key", "EasyPost keys", GITLEAKS, rb"EZ[AT]K[A-Za-z0-9]{54}", "EZAK EZTK"),
    _token("facebook-token", "Facebook tokens", GITLEAKS, rb"\b[0-9]{15,16}(?:\||%)[A-Za-z0-9_-]{27,40}|EAA[MC][A-Za-z0-9]{100,}|IGQV[A-Za-z0-9_-]{100,}", "EAAM EAAC IGQV | %", hint=rb"[0-9]{15}[|%]|EAA[MC]|IGQV"),
    _token("flutterwave-key", "Flutterwave keys", GITLEAKS, rb"FLWSECK(?:_TEST)?-(?:[A-Ha-h0-9]{32}-X|[A-Ha-h0-9]{12})", "FLWSECK"),
    _token("flyio-token", "Fly.io tokens", GITLEAKS, rb"fo1_" + W + rb"{43}|fm1[ar]_" + B64 + rb"{100,}={0,3}|fm2_" + B64 + rb"{100,}={0,3}", "fo1_ fm1a_ fm1r_ fm2_"),
    _token("frameio-token", "Frame.io tokens", GITLEAKS, rb"fio-u-[A-Za-z0-9_=-]{64}", "fio-u-"),
    _token("gcp-key", "Google API keys and OAuth secrets", "gitleaks; CredSweeper", rb"AIza" + W + rb"{35}|GOCSPX-" + W + rb"{28}|ya29\." + W + rb"{22,}|1//0" + W + rb"{80,120}", "AIza GOCSPX- ya29. 1//0", hint=rb"AIza|GOCSPX-|ya29\.|1//0[A-Za-z0-9_-]{20}"),
    _token("github-token", "GitHub tokens", "GitHub's token formats (2021)", rb"gh[opsru]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{80,90}", "ghp_ gho_ ghs_ ghr_ ghu_ github_pat_"),
    _token(
        "gitlab-token", "GitLab tokens", "GitLab's list of token prefixes; detect-secrets",
        rb"gl(?:pat|dt|ft|rt|imt|soat|cbt|ffct|wt|rtr)-" + W + rb"{20,64}(?:\.[0-9a-z]{2}\.[0-9A-Za-z]{9})?"
        rb"|glptt-[a-f0-9]{40}|gloas-" + W + rb"{64}|glagent-" + W + rb"{50,1000}|GR1348941" + W + rb"{20}|_gitlab_session=([0-9a-z]{32})",
        "glpat- gldt- glft- glrt- glimt- glsoat- glcbt- glffct- glwt- glrtr- glptt- gloas- glagent- GR1348941 _gitlab_session=",
    ),
    _token("grafana-token", "Grafana tokens", "gitleaks; CredSweeper", rb"glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9+/]{60,400}={0,3}", "glc_ glsa_ eyJrIjoi", hint=rb"gl(?:c|sa)_[A-Za-z0-9]{8}|eyJrIjoi"),
    _token("groq-key", "Groq keys", CREDSWEEPER, rb"gsk_[A-Za-z0-9]{52}", "gsk_"),
    _token("harness-key", "Harness keys", GITLEAKS, rb"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", "pat. sat.", hint=rb"[ps]at\.[A-Za-z0-9_-]{22}"),
    _token("heroku-key", "Heroku keys", GITLEAKS, rb"HRKU-AA" + W + rb"{58}", "HRKU-AA"),
    _token("huggingface-token", "Hugging Face tokens", GITLEAKS, rb"\bhf_[A-Za-z]{34}|\bapi_org_[A-Za-z]{34}", "hf_ api_org_", hint=rb"\b(?:hf|api_org)_[A-Za-z]{8}"),
    _token("infracost-key", "Infracost keys", GITLEAKS, rb"ico-[A-Za-z0-9]{32}", "ico-", hint=rb"ico-[A-Za-z0-9]{32}"),
    _token("intra42-secret", "42 client secrets", GITLEAKS, rb"s-s4t2(?:ud|af)-[a-f0-9]{64}", "s-s4t2", hint=rb"s-s4t2"),
    _token("jwt", "JSON Web Tokens", "RFC 7519; the header is decoded", rb"eyJ[A-Za-z0-9_=-]{10,}\.(?:eyJ|ew)[A-Za-z0-9_=-]{4,}(?:\.[A-Za-z0-9_.+/=-]*)?", "eyJ", is_jwt, hint=rb"eyJ[A-Za-z0-9_=-]{10}"),
    _token("jwk", "private parts of JSON Web Keys", "RFC 7517; RFC 7518 6", rb"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,})\"|((?:eyJrdHki|eyAia3R5I|W3sia3R5I)[A-Za-z0-9+/_-]{60,}={0,2})", "kty eyJrdHki eyAia3R5I W3sia3R5I", hint=rb"\"kty\"|eyJrdHki|eyAia3R5I|W3sia3R5I"),
    _token("linear-key", "Linear keys", GITLEAKS, rb"lin_api_[A-Za-z0-9]{40}", "lin_api_"),
    _token("llama-key", "LlamaCloud keys", CREDSWEEPER, rb"llx-" + W + rb"{48}", "llx-"),
    _token("mailchimp-key", "Mailchimp keys", DETECT, rb"\b[0-9a-f]{32}-us[0-9]{1,2}", "-us", hint=rb"[0-9a-f]-us[0-9]"),
    _token("mailgun-key", "Mailgun keys", GITLEAKS, rb"\bkey-[0-9a-f]{32}|\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}", "key- -", hint=rb"key-[0-9a-f]{8}|[0-9a-f]-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    _token("maxmind-key", "MaxMind licence keys", GITLEAKS, rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", "_mmk"),
    _token("netlify-token", "Netlify tokens", CREDSWEEPER, rb"nf[pcuob]_[A-Za-z0-9]{36}", "nfp_ nfc_ nfu_ nfo_ nfb_"),
    _token("newrelic-key", "New Relic keys", GITLEAKS, rb"NR(?:AK|II|BR|JS|RA|AA)-[A-Za-z0-9_-]{19,40}|\b(?:eu01x)?[0-9a-f]{30,36}NRAL", "NRAK- NRII- NRBR- NRJS- NRRA- NRAA- NRAL", hint=rb"NR(?:AK|II|BR|JS|RA|AA)-|NRAL\b"),
    _token("nkey-seed", "seeds of NATS nkeys", CREDSWEEPER, rb"S[ACOUNX][A-Z2-7]{56}", "", hint=rb"\bS[ACOUNX][A-Z2-7]{20}"),
    _token("notion-token", "Notion tokens", GITLEAKS, rb"ntn_[0-9]{9,11}[A-Za-z0-9]{35,37}|secret_[A-Za-z0-9]{43}", "ntn_ secret_", hint=rb"ntn_[0-9]|secret_[A-Za-z0-9]{20}"),
    _token("npm-token", "npm tokens", DETECT, rb"npm_[A-Za-z0-9]{36}|:_(?:authToken|password|auth)[ \t]{0,3}=[ \t]{0,3}[\"']?(npm_[A-Za-z0-9]{10,}|" + HEX_UUID + rb"|[A-Za-z0-9+/=_-]{20,})", "npm_ :_auth :_password", hint=rb"npm_[A-Za-z0-9]{10}|:_(?:auth|password)"),
    _token("ntlm-message", "NTLM messages that authenticate", "[MS-NLMP] 2.2.1.3", rb"TlRMTVNTUAAD[A-Za-z0-9+/]{40,}={0,2}", "TlRMTVNTUAAD"),
    _token("nuget-key", "NuGet keys", CREDSWEEPER, rb"oy2[a-z0-9]{43}", "oy2", hint=rb"oy2[a-z0-9]{20}"),
    _token("octopus-key", "Octopus Deploy keys", GITLEAKS, rb"API-[A-Z0-9]{26,32}", "API-", hint=rb"API-[A-Z0-9]{20}"),
    _token("openai-key", "OpenAI keys", GITLEAKS, rb"sk-" + W + rb"{20,90}T3BlbkFJ" + W + rb"{20,90}", "T3BlbkFJ"),
    _token("sk-key", "keys that begin with sk-", "DeepSeek, OpenRouter, Stability: their documentation", rb"\bsk-(?:or-v1-[0-9a-f]{64}|[0-9a-f]{32}|[A-Za-z0-9]{48})", "sk-", hint=rb"\bsk-[A-Za-z0-9-]{16}"),
    _token("openshift-token", "OpenShift tokens", GITLEAKS, rb"sha256~" + W + rb"{43}", "sha256~"),
    _token("onepassword-token", "1Password keys and tokens", GITLEAKS, rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}|ops_eyJ[A-Za-z0-9+/_-]{200,}={0,3}", "A3- ops_eyJ", hint=rb"A3-[A-Z0-9]{6}|ops_eyJ"),
    _token("paypal-token", "Braintree tokens", CREDSWEEPER, rb"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-z]{32}", "access_token$"),
    _token("perplexity-key", "Perplexity keys", GITLEAKS, rb"pplx-[A-Za-z0-9]{48}", "pplx-", hint=rb"pplx-[A-Za-z0-9]{8}"),
    _token("plaid-token", "Plaid tokens", GITLEAKS, rb"access-(?:sandbox|development|production)-" + HEX_UUID, "access-", hint=rb"access-(?:sandbox|development|production)-"),
    _token("planetscale-token", "PlanetScale tokens", GITLEAKS, rb"pscale_(?:pw|tkn|oauth|otkn)_[\w=.-]{32,64}", "pscale_"),
    _token("posthog-key", "PostHog keys", CREDSWEEPER, rb"ph[acrsx]_[A-Za-z0-9]{40,64}", "phc_ pha_ phr_ phs_ phx_"),
    _token("postman-key", "Postman keys", GITLEAKS, rb"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}|PMAT-[0-9A-Z]{26}", "PMAK- PMAT-"),
    _token("prefect-key", "Prefect keys", GITLEAKS, rb"pn[ub]_[A-Za-z0-9]{36}", "pnu_ pnb_"),
    _token("pulumi-token", "Pulumi tokens", GITLEAKS, rb"\bpul-[a-f0-9]{40}", "pul-", hint=rb"\bpul-[a-f0-9]{8}"),
    _token("pypi-token", "PyPI tokens", DETECT, rb"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)" + W + rb"{70,}", "pypi-AgE"),
    _token("readme-key", "ReadMe keys", GITLEAKS, rb"rdme_[a-z0-9]{70}", "rdme_"),
    _token("rubygems-key", "RubyGems keys", GITLEAKS, rb"rubygems_[a-f0-9]{48}", "rubygems_"),
    _token("salesforce-token", "Salesforce session ids and client ids", CREDSWEEPER, rb"\b00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{60,140}|\b3MVG[A-Za-z0-9_.]{80,90}", "00D 3MVG", hint=rb"00D[A-Za-z0-9]{12,15}!|3MVG[A-Za-z0-9_.]{20}"),
    _token("scalingo-token", "Scalingo tokens", GITLEAKS, rb"tk-us-" + W + rb"{48}", "tk-us-"),
    _token("sendgrid-key", "SendGrid keys", "gitleaks; detect-secrets", rb"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "SG.", hint=rb"SG\.[A-Za-z0-9_-]{16}"),
    _token("sendinblue-key", "Brevo keys", GITLEAKS, rb"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}", "xkeysib-"),
    _token("sentry-token", "Sentry tokens", GITLEAKS, rb"sntrys_eyJ[A-Za-z0-9+/]{20,400}={0,2}_[A-Za-z0-9+/]{43}|sntryu_[a-f0-9]{64}", "sntrys_eyJ sntryu_"),
    _token("settlemint-token", "SettleMint tokens", GITLEAKS, rb"sm_[aps]at_[A-Za-z0-9]{16}", "sm_aat_ sm_pat_ sm_sat_"),
    _token("shippo-token", "Shippo tokens", GITLEAKS, rb"shippo_(?:live|test)_[a-fA-F0-9]{40}", "shippo_"),
    _token("shopify-token", "Shopify tokens", GITLEAKS, rb"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shpat_ shpca_ shppa_ shpss_"),
    _token("sidekiq-secret", "Sidekiq passwords", GITLEAKS, rb"(?i:CONTRIBSYS__COM[\"']?\s{0,3}[=:]\s{0,3}[\"']?)([a-fA-F0-9]{8}:[a-fA-F0-9]{8})|://([a-f0-9]{8}:[a-f0-9]{8})@(?:gems|enterprise)\.contribsys\.com", "CONTRIBSYS contribsys"),
    _token(
        "slack-token", "Slack tokens", "gitleaks; detect-secrets",
        rb"xox[abeoprs]-(?:[0-9]+-)+[A-Za-z0-9]{16,}|xox[ar]-(?:[0-9]-)?[0-9A-Za-z]{10,48}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{32,}|xoxe(?:\.xox[bp])?-[0-9]-[A-Za-z0-9]{100,}",
        "xox xapp-", hint=rb"xox[abeoprs][-.]|xapp-"),
    _token("slack-webhook", "Slack webhooks", GITLEAKS, rb"hooks\.slack\.com(/(?:services|workflows|triggers)/[A-Za-z0-9+/]{36,80})", "hooks.slack.com/"),
    _token("softlayer-url", "SoftLayer addresses with a key", DETECT, rb"(?i:api\.softlayer\.com/soap/v3(?:\.1)?/)([A-Za-z0-9]{64})", "softlayer.com/"),
    _token("sonar-token", "SonarQube tokens", GITLEAKS, rb"\bsq[upa]_[A-Za-z0-9]{40}|(?i:sonar[._-]?(?:login|token)[\"']?\s{0,3}(?:[:?]{0,3}=|:)\s{0,3}[\"']?)([A-Za-z0-9=_-]{40})", "squ_ sqp_ sqa_ sonar SONAR Sonar", hint=rb"sq[upa]_|(?i:sonar[._-]?(?:login|token))"),
    _token("sourcegraph-token", "Sourcegraph tokens", GITLEAKS, rb"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}|slk_[a-f0-9]{64}", "sgp_ slk_"),
    _token("square-token", "Square tokens", GITLEAKS, rb"EAAA" + W + rb"{60}|sq0[a-z]{3}-" + W + rb"{22,60}", "EAAA sq0", hint=rb"EAAA|sq0[a-z]{3}-"),
    _token("stripe-key", "Stripe keys", GITLEAKS, rb"\b[rs]k_(?:test|live|prod)_[A-Za-z0-9]{10,110}|\bwhsec_[A-Za-z0-9+/]{32,64}", "sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_ whsec_"),
    _token("sumologic-id", "Sumo Logic access ids", GITLEAKS, rb"(?i:sumo(?:logic)?[._-]?access_?id[\"']?\s{0,3}[=:]\s{0,3}[\"']?)(su[A-Za-z0-9]{12})", "umo UMO", hint=rb"(?i)sumo(?:logic)?[._-]?access_?id"),
    _token("supabase-token", "Supabase tokens", CREDSWEEPER, rb"sbp_(?:v0_)?[a-f0-9]{40}|sb_secret_" + W + rb"{22,40}", "sbp_ sb_secret_"),
    _token("tavily-key", "Tavily keys", CREDSWEEPER, rb"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}", "tvly-"),
    _token("teams-webhook", "Microsoft Teams webhooks", GITLEAKS, rb"webhook\.office\.com/webhookb2(/" + HEX_UUID + rb"@" + HEX_UUID + rb"/IncomingWebhook/[a-zA-Z0-9]{32}/" + HEX_UUID + rb")", "webhook.office.com/"),
    _token("telegram-token", "Telegram bot tokens", DETECT, rb"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", ":AA", hint=rb"[0-9]:AA[A-Za-z0-9_-]"),
    _token("terraform-token", "HCP Terraform tokens", GITLEAKS, rb"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{60,70}", ".atlasv1."),
    _token("together-key", "Together AI keys", CREDSWEEPER, rb"tgp_v1_" + W + rb"{43}", "tgp_v1_"),
    _token("twilio-key", "Twilio keys and account ids", "gitleaks; detect-secrets", rb"\b(?:SK|AC)[0-9a-f]{32}\b", hint=rb"\b(?:SK|AC)[0-9a-f]{12}"),
    _token("typeform-token", "Typeform tokens", GITLEAKS, rb"tfp_[A-Za-z0-9_.=-]{59}", "tfp_"),
    _token("vault-token", "HashiCorp Vault tokens", GITLEAKS, rb"hvb\.[\w-]{100,300}|hvs\.[\w-]{90,120}|\bs\.[A-Za-z0-9]{24}\b", "hvb. hvs. s.", hint=rb"hv[bs]\.|\bs\.[A-Za-z0-9]{24}"),
    _token("vercel-token", "Vercel tokens", CREDSWEEPER, rb"vc[pkrica]_[A-Za-z0-9]{56}", "vcp_ vck_ vcr_ vci_ vca_ vcc_"),
    _token("wechat-id", "WeChat app ids", CREDSWEEPER, rb"\bwx[0-9a-f]{16}\b", hint=rb"\bwx[0-9a-f]{16}"),
    _token("xai-key", "xAI keys", CREDSWEEPER, rb"xai-[A-Za-z0-9]{80}", "xai-"),
    _token("yandex-key", "Yandex Cloud keys", GITLEAKS, rb"AQVN" + W + rb"{35,38}|\bt1\.[A-Za-z0-9_-]{20,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}", "AQVN t1.", hint=rb"AQVN|\bt1\.[A-Za-z0-9_-]{20}"),
)  # fmt: skip
