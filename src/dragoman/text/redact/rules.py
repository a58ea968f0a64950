"""Rules as tables: credentials with a format of their own, and programs that take passwords.

One row each, with its source. A row is ours, written after the public documentation of the issuer.
Where that shows no length, the
row takes the shortest that examples have, and anything longer.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from dragoman.text.linear_regex import LinearRegex, escape_regex
from dragoman.text.redact.likelihood import is_phrase

# --- formats ----------------------------------------------------------------------------------

_RARE: Final = 4
"""Shortest prefix that hardly ever stands in ordinary text by chance."""

_COUNT: Final = re.compile(rb"\{(\d{2,})(?:,\d*)?\}")

_ENDLESS: Final = re.compile(rb"\{\d{2,},\}\\\..*", re.DOTALL)
"""Unbounded part before a dot: searching for the dot at every position would take too long."""

_ENOUGH: Final = 10
"""Length of a row's pattern that is rare enough."""


class Rule(Struct, frozen=True):
    """Format of one kind of credential."""

    kind: str
    prefixes: tuple[bytes, ...]
    """Prefixes of such a credential; none: it is recognized by an inner part."""
    suffix_pattern: bytes
    """Regular expression behind the prefix."""
    source: str
    """Page that describes it."""
    keeps_prefix: bool = False
    """True if the prefix is a name or an address that may stay."""

    @property
    def prefix_pattern(self) -> bytes:
        """Regular expression of the prefix."""
        return b"(?:" + b"|".join(map(escape_regex, self.prefixes)) + b")"

    @property
    def pattern(self) -> bytes:
        """Regular expression of the whole."""
        return self.prefix_pattern + self.suffix_pattern

    @property
    def search_pattern(self) -> bytes:
        """Regular expression that is searched first: the prefix, or as much more as makes it
        rare."""
        if self.prefixes and all(len(start) >= _RARE for start in self.prefixes):
            return self.prefix_pattern
        pattern = _ENDLESS.sub(b"{%d}" % _ENOUGH, self.pattern)
        return _COUNT.sub(lambda found: b"{%d,}" % min(int(found[1]), _ENOUGH), pattern)


def _make_rule(
    kind: str, prefixes: str, suffix_pattern: str, source: str, *, keeps_prefix: bool = False
) -> Rule:
    return Rule(
        kind, tuple(prefixes.encode().split()), suffix_pattern.encode(), source, keeps_prefix
    )


# Two lines a row, so that the table can be read as one.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    # --- our own
    _make_rule("dragoman_token", "drg_",
          "[A-Za-z0-9][A-Za-z0-9._@-]{0,256}_[0-9a-f]{12}_[A-Za-z0-9_-]{43}",
          "docs/identity.md"),
    _make_rule("dragoman_attempt_token", "drga_", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
          "docs/identity.md"),
    _make_rule("dragoman_owner_token", "drgo_", "[A-Za-z0-9_-]{43}",
          "docs/identity.md"),
    # --- code hosts, packages, builds
    _make_rule("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{36,}",
          "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github"),
    _make_rule("github_fine_grained_token", "github_pat_", "[A-Za-z0-9_]{60,}",
          "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/managing-your-personal-access-tokens"),
    _make_rule("gitlab_token",
          "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- "
          "glimt- glagent- glsoat- glffct- gloas- glwt- glntfy-",
          "[A-Za-z0-9_.-]{20,}",
          "https://docs.gitlab.com/security/tokens/"),
    _make_rule("npm_token", "npm_", "[A-Za-z0-9]{36,}",
          "https://github.blog/security/supply-chain-security/npm-automation-tokens-new-format/"),
    _make_rule("pypi_token", "pypi-AgE", "[A-Za-z0-9_-]{50,}",
          "https://pypi.org/help/#apitoken"),
    _make_rule("rubygems_key", "rubygems_", "[0-9a-f]{48}",
          "https://guides.rubygems.org/api-key-scopes/"),
    _make_rule("crates_token", "cio", r"[A-Za-z0-9]{32}\b",
          "https://doc.rust-lang.org/cargo/reference/publishing.html"),
    _make_rule("docker_token", "dckr_pat_ dckr_oat_", "[A-Za-z0-9_-]{27,}",
          "https://docs.docker.com/security/access-tokens/"),
    _make_rule("github_actions_mask", "::add-mask::", r"[^\s\"'\\]{8,}",
          "https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands",
          keeps_prefix=True),
    _make_rule("buildkite_token", "bkua_ bkat_ bkpt_", "[A-Za-z0-9]{30,}",
          "https://buildkite.com/docs/platform/security/tokens"),
    _make_rule("circleci_token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9_]{40,}",
          "https://circleci.com/docs/managing-api-tokens/"),
    _make_rule("atlassian_token", "ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=.-]{24,}",
          "https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/"),
    _make_rule("sonar_token", "squ_ sqp_ sqa_", "[0-9a-f]{40}",
          "https://docs.sonarsource.com/sonarqube-server/user-guide/managing-tokens/"),
    _make_rule("postman_key", "PMAK- PMAT-", "[0-9A-Za-z-]{24,}",
          "https://learning.postman.com/docs/developer/postman-api/authentication/"),
    _make_rule("linear_key", "lin_api_ lin_oauth_", "[A-Za-z0-9]{32,}",
          "https://linear.app/developers/graphql"),
    _make_rule("sourcegraph_token", "sgp_ sgd_", "[0-9A-Za-z_]{40,}",
          "https://sourcegraph.com/docs/cli/how-tos/creating_an_access_token"),
    # --- clouds
    _make_rule("aws_access_key_id", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}\b",
          "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html"),
    _make_rule("aws_bedrock_key", "ABSK", "[A-Za-z0-9+/]{109,}={0,2}",
          "https://www.wiz.io/blog/a-new-type-of-long-lived-key-on-aws-bedrock-api-keys"),
    _make_rule("aws_signature", "X-Amz-Signature= Signature=", "[0-9a-f]{64}",
          "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html",
          keeps_prefix=True),
    _make_rule("google_signature", "X-Goog-Signature=", "[0-9a-f]{128,}",
          "https://cloud.google.com/storage/docs/authentication/signatures",
          keeps_prefix=True),
    _make_rule("google_api_key", "AIza", "[A-Za-z0-9_-]{35}",
          "https://cloud.google.com/docs/authentication/api-keys"),
    _make_rule("google_auth_key", "AQ.Ab", "[A-Za-z0-9_-]{40,}",
          "https://ai.google.dev/gemini-api/docs/api-key"),
    _make_rule("google_oauth_token", "ya29.", "[A-Za-z0-9_.-]{20,}",
          "https://developers.google.com/identity/protocols/oauth2"),
    _make_rule("google_hmac_key_id", "GOOG", r"[A-Z0-9]{20}(?:[A-Z0-9]{37})?\b",
          "https://cloud.google.com/storage/docs/authentication/hmackeys"),
    _make_rule("google_client_secret", "GOCSPX-", "[A-Za-z0-9_-]{24,}",
          "https://developers.google.com/identity/protocols/oauth2/web-server"),
    _make_rule("azure_storage_key", "AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,}={0,2}",
          "https://learn.microsoft.com/en-us/azure/storage/common/storage-configure-connection-string",
          keeps_prefix=True),
    _make_rule("azure_sas", "?sig= &sig= u0026sig= ;sig=", "[A-Za-z0-9%+/_-]{40,}={0,2}",
          "https://learn.microsoft.com/en-us/azure/storage/common/storage-sas-overview",
          keeps_prefix=True),
    _make_rule("azure_client_secret", "", "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
          "https://learn.microsoft.com/en-us/entra/identity-platform/quickstart-register-app"),
    _make_rule("cloudflare_token", "cfut_ cfat_ cfk_", "[A-Za-z0-9_-]{40,}",
          "https://developers.cloudflare.com/fundamentals/api/get-started/token-formats"),
    _make_rule("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}",
          "https://docs.digitalocean.com/reference/api/create-personal-access-token/"),
    _make_rule("alibaba_access_key_id", "LTAI", r"[A-Za-z0-9]{16,}\b",
          "https://www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair"),
    _make_rule("heroku_key", "HRKU-", "[A-Za-z0-9_-]{36,}",
          "https://devcenter.heroku.com/articles/platform-api-quickstart"),
    _make_rule("fly_token", "fm1_ fm2_ fm1r_ fm1a_ fo1_", "[A-Za-z0-9+/=_-]{40,}",
          "https://fly.io/docs/security/tokens/"),
    _make_rule("netlify_token", "nfp_ nfc_ nfo_ nfu_ nfb_", "[A-Za-z0-9]{36,}",
          "https://docs.netlify.com/api/get-started/"),
    _make_rule("vercel_token", "vcp_ vci_ vca_ vcr_ vck_", "[A-Za-z0-9]{24,}",
          "https://vercel.com/changelog/new-token-formats-and-secret-scanning"),
    _make_rule("neon_key", "napi_", "[A-Za-z0-9]{40,}",
          "https://neon.com/docs/manage/api-keys"),
    _make_rule("e2b_key", "e2b_", "[0-9a-f]{40,}",
          "https://e2b.dev/docs/api-key"),
    _make_rule("supabase_key", "sbp_ sb_secret_", "[A-Za-z0-9_-]{20,}",
          "https://supabase.com/docs/guides/api/api-keys"),
    _make_rule("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "[A-Za-z0-9_=.-]{32,}",
          "https://planetscale.com/docs/concepts/planetscale-api-oauth-applications"),
    _make_rule("databricks_token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?\b",
          "https://docs.databricks.com/aws/en/dev-tools/auth/pat"),
    _make_rule("tailscale_key", "tskey-", "[a-z]{2,10}-[A-Za-z0-9]{10,}-[A-Za-z0-9]{20,}",
          "https://tailscale.com/kb/1085/auth-keys"),
    # --- keepers of secrets
    _make_rule("vault_token", "hvs. hvb. hvr.", "[A-Za-z0-9_-]{24,}",
          "https://developer.hashicorp.com/vault/docs/concepts/tokens"),
    _make_rule("terraform_token", "", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
          "https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens"),
    _make_rule("doppler_token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
          "[A-Za-z0-9_.-]{40,}",
          "https://docs.doppler.com/reference/auth-token-formats"),
    _make_rule("onepassword_token", "ops_eyJ", "[A-Za-z0-9+/_-]{200,}={0,3}",
          "https://developer.1password.com/docs/service-accounts/get-started/"),
    _make_rule("pulumi_token", "pul-", "[0-9a-f]{40}",
          "https://www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens/"),
    _make_rule("age_secret_key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}",
          "https://age-encryption.org/v1"),
    # --- models
    _make_rule("anthropic_key", "sk-ant-", "[A-Za-z0-9_-]{24,}",
          "https://docs.claude.com/en/api/overview"),
    _make_rule("openrouter_key", "sk-or-v1-", "[0-9a-f]{64}",
          "https://openrouter.ai/docs/api-reference/authentication"),
    _make_rule("langfuse_key", "sk-lf-", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
          "https://langfuse.com/faq/all/lost-secret-key"),
    _make_rule("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-",
          r"(?:[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20,}\b)",
          "https://platform.openai.com/docs/api-reference/authentication"),
    _make_rule("huggingface_token", "hf_ api_org_", r"[A-Za-z0-9]{34,40}\b",
          "https://huggingface.co/docs/hub/security-tokens"),
    _make_rule("replicate_token", "r8_", r"[A-Za-z0-9]{37}\b",
          "https://replicate.com/docs/topics/security/api-tokens"),
    _make_rule("groq_key", "gsk_", "[A-Za-z0-9]{48,}",
          "https://console.groq.com/docs/quickstart"),
    _make_rule("xai_key", "xai-", "[A-Za-z0-9]{70,}",
          "https://docs.x.ai/docs/tutorial"),
    _make_rule("perplexity_key", "pplx-", "[A-Za-z0-9]{40,}",
          "https://docs.perplexity.ai/getting-started/quickstart"),
    _make_rule("langsmith_key", "lsv2_pt_ lsv2_sk_", "[0-9a-f_]{32,}",
          "https://docs.smith.langchain.com/administration/how_to_guides/organization_management/create_account_api_key"),
    _make_rule("nvidia_key", "nvapi-", "[A-Za-z0-9_-]{40,}",
          "https://nvidia.github.io/NeMo-Retriever/extraction/api-keys/"),
    _make_rule("tavily_key", "tvly-", "(?:dev-|prod-)?[A-Za-z0-9]{24,}",
          "https://docs.tavily.com/guides/quickstart"),
    _make_rule("wandb_key", "wandb_v1_", "[A-Za-z0-9_]{60,}",
          "https://docs.wandb.ai/support/models/articles/why-does-my-api-key-fail-with-must-be-40-characters"),
    _make_rule("pinecone_key", "pcsk_", "[A-Za-z0-9_]{40,}",
          "https://docs.pinecone.io/guides/projects/manage-api-keys"),
    # --- messages
    _make_rule("slack_token",
          "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe. xoxc- xoxd- xapp- xwfp-",
          "[A-Za-z0-9.%/+=-]{10,}",
          "https://docs.slack.dev/authentication/tokens"),
    _make_rule("slack_webhook",
          "hooks.slack.com/services/ "
          "hooks.slack.com/workflows/ hooks.slack.com/triggers/",
          "[A-Za-z0-9/_-]{20,}",
          "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
          keeps_prefix=True),
    _make_rule("discord_webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
          "[0-9]{15,22}/[A-Za-z0-9_-]{40,}",
          "https://discord.com/developers/docs/resources/webhook",
          keeps_prefix=True),
    _make_rule("discord_bot_token", "",
          r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
          "https://discord.com/developers/docs/reference"),
    _make_rule("telegram_bot_token", "", "[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
          "https://core.telegram.org/bots/api"),
    _make_rule("telegram_bot_address", "bot", "[0-9]{8,10}(?::|%3[Aa])AA[A-Za-z0-9_-]{33}",
          "https://core.telegram.org/bots/api",
          keeps_prefix=True),
    _make_rule("teams_webhook", "",
          r"[a-z0-9-]{1,}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,}",
          "https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook"),
    _make_rule("twilio_key", "SK", r"[0-9a-f]{32}\b",
          "https://www.twilio.com/docs/iam/api-keys"),
    _make_rule("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}",
          "https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys"),
    _make_rule("brevo_key", "xkeysib- xsmtpsib-", "[0-9a-f]{64}-[A-Za-z0-9]{16}",
          "https://developers.brevo.com/docs/getting-started"),
    _make_rule("mailchimp_key", "", r"[0-9a-f]{32}-us[0-9]{1,2}\b",
          "https://mailchimp.com/developer/marketing/guides/quick-start/"),
    _make_rule("mailgun_key", "key-", r"[0-9a-f]{32}\b",
          "https://documentation.mailgun.com/docs/mailgun/user-manual/api-key-mgmt/rbac-mgmt"),
    _make_rule("resend_key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,30}\b",
          "https://resend.com/docs/api-reference/introduction"),
    # --- money and shops
    _make_rule("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", "[A-Za-z0-9]{16,}",
          "https://docs.stripe.com/keys"),
    _make_rule("webhook_secret", "whsec_", "[A-Za-z0-9+/_-]{24,}={0,2}",
          "https://docs.stripe.com/webhooks"),
    _make_rule("square_token", "sq0atp- sq0csp- EAAAE EAAAl", "[A-Za-z0-9_-]{22,}",
          "https://developer.squareup.com/docs/build-basics/access-tokens"),
    _make_rule("shopify_token", "shpat_ shpca_ shppa_ shpss_ shpua_", "[0-9A-Fa-f]{32}",
          "https://shopify.dev/docs/apps/build/authentication-authorization/access-tokens"),
    _make_rule("flutterwave_key", "FLWSECK-", "[0-9A-Za-z]{12,}-X",
          "https://developer.flutterwave.com/docs/authentication"),
    _make_rule("shippo_token", "shippo_live_ shippo_test_", "[0-9a-f]{40}",
          "https://docs.goshippo.com/docs/guides_general/authentication/"),
    # --- watching and data
    _make_rule("grafana_token", "glsa_ glc_", "[A-Za-z0-9+/=_]{32,}",
          "https://grafana.com/docs/grafana/latest/administration/service-accounts/"),
    _make_rule("newrelic_key", "NRAK- NRJS- NRII- NRAA-", "[A-Za-z0-9_-]{19,}",
          "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/"),
    _make_rule("sentry_token", "sntrys_ sntryu_ sntrya_ sntryi_", "[A-Za-z0-9+/=_-]{40,}",
          "https://docs.sentry.io/account/auth-tokens/"),
    _make_rule("dynatrace_token", "dt0c01. dt0s01. dt0s02. dt0s16.", r"[A-Z0-9]{8,}\.[A-Z0-9]{64}",
          "https://docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication"),
    _make_rule("posthog_key", "phx_", "[A-Za-z0-9]{40,}",
          "https://posthog.com/docs/api/personal-api-keys"),
    _make_rule("airtable_token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}",
          "https://airtable.com/developers/web/guides/personal-access-tokens"),
    _make_rule("notion_token", "ntn_ secret_", r"[A-Za-z0-9]{43,}\b",
          "https://developers.notion.com/reference/authentication"),
    _make_rule("figma_token", "figd_ figdh_", "[A-Za-z0-9_-]{40,}",
          "https://developers.figma.com/docs/rest-api/authentication/"),
    _make_rule("dropbox_token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{120,}",
          "https://developers.dropbox.com/oauth-guide"),
    _make_rule("contentful_token", "CFPAT-", "[A-Za-z0-9_-]{43}",
          "https://www.contentful.com/developers/docs/references/authentication/"),
    _make_rule("mapbox_secret_token", "sk.eyJ", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}",
          "https://docs.mapbox.com/accounts/guides/tokens/"),
    _make_rule("typeform_token", "tfp_", "[A-Za-z0-9_.=-]{40,}",
          "https://www.typeform.com/developers/get-started/personal-access-token/"),
    _make_rule("artifactory_token", "AKCp", "[A-Za-z0-9]{60,}",
          "https://jfrog.com/help/r/jfrog-platform-administration-documentation/api-key"),
    # --- standards
    _make_rule("digest_response", 'response=" response=\\"', "[0-9a-f]{32}(?:[0-9a-f]{32})?",
          "https://www.rfc-editor.org/rfc/rfc7616", keeps_prefix=True),
    _make_rule("laravel_key", "APP_KEY=base64:", "[A-Za-z0-9+/]{43}=",
          "https://laravel.com/docs/12.x/encryption", keeps_prefix=True),
    _make_rule("bcrypt_hash", "$2a$ $2b$ $2x$ $2y$", r"[0-9]{2}\$[./A-Za-z0-9]{53}",
          "https://httpd.apache.org/docs/2.4/misc/password_encryptions.html"),
    _make_rule("jwe", "eyJ", r"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{10,}"
          r"\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{16,}",
          "https://www.rfc-editor.org/rfc/rfc7516"),
    _make_rule("jwt", "eyJ",
          r"[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{10,}|\.)",
          "https://www.rfc-editor.org/rfc/rfc7519"),
)
"""Earlier rows go before later ones where both fit."""
# fmt: on


# --- programs ---------------------------------------------------------------------------------

NEXT_ARGUMENT: Final = rb"""\\{0,3}["'],(?:[ \t\r\n]|\\{1,3}[nrt]){0,40}"""
"""Between two words of a list of arguments."""

_APART: Final = rb"(?:[ \t]{1,4}|" + NEXT_ARGUMENT + rb")"


class ProgramRule(Struct, frozen=True):
    """Option of a program that takes a password."""

    names: tuple[str, ...]
    option_text: str
    """Spelling in the documentation."""
    option: bytes
    """Regular expression of the option, with what stands between it and the password."""
    source: str
    has_user: bool = False
    """True if a user and a colon stand before the password."""


PROGRAMS: Final = (
    ProgramRule(
        ("curl",),
        "-u user:…, --user, -U, --proxy-user",
        rb"(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)(?:=|" + _APART + rb")?",
        "https://curl.se/docs/manpage.html#-u",
        has_user=True,
    ),
    ProgramRule(
        ("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "mariadb-admin"),
        "-p…",
        rb"-p",
        "https://dev.mysql.com/doc/refman/8.4/en/password-security-user.html",
    ),
    ProgramRule(
        ("sshpass",),
        "-p …",
        rb"-p" + _APART + rb"?",
        "https://manpages.ubuntu.com/manpages/oracular/man1/sshpass.1.html",
    ),
    ProgramRule(
        ("docker", "podman"),
        "login -p …",
        rb"login" + _APART + rb"(?:[^\r\n]{0,80}[ \t\"'])?-p" + _APART + rb"?",
        "https://docs.docker.com/reference/cli/docker/login/",
    ),
    ProgramRule(
        ("az",),
        "login -p …",
        rb"login" + _APART + rb"(?:[^\r\n]{0,160}[ \t\"'])?-p" + _APART,
        "https://learn.microsoft.com/en-us/cli/azure/reference-index#az-login",
    ),
    ProgramRule(
        ("mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "cqlsh", "twine"),
        "-p …",
        rb"-p" + _APART,
        "https://www.mongodb.com/docs/mongodb-shell/reference/options/",
    ),
    ProgramRule(
        ("sqlcmd",),
        "-P …",
        rb"-P" + _APART + rb"?",
        "https://learn.microsoft.com/en-us/sql/tools/sqlcmd/sqlcmd-utility",
    ),
    ProgramRule(
        ("redis-cli", "valkey-cli"),
        "-a …",
        rb"-a" + _APART + rb"?",
        "https://redis.io/docs/latest/develop/tools/cli/",
    ),
    ProgramRule(
        ("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd"),
        "-w …",
        rb"-w" + _APART + rb"?",
        "https://www.openldap.org/software/man.cgi?query=ldapsearch",
    ),
)


# --- finding ----------------------------------------------------------------------------------


def _any_of(rules: Iterable[Rule]) -> bytes:
    return b"|".join(rule.search_pattern for rule in rules)


_BORDER: Final = (
    rb"(?:\A|[^A-Za-z0-9]|\\[nrtbfav0]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"
    rb"|\\[0-7]{3})"
)
"""Allowed before a credential: nothing of a word, unless it is the end of an escape."""

ANY_RULE: Final = (
    _BORDER
    + rb"(?:"
    + _any_of(rule for rule in RULES if not rule.keeps_prefix)
    + rb")|"
    + _any_of(rule for rule in RULES if rule.keeps_prefix)
)
"""Every credential of a rule needs a match of this.

Not the rules themselves: all together they have so many states that every new text is slow.
"""

_BEGINS: Final = LinearRegex(
    _BORDER
    + rb"(?:"
    + _any_of(rule for rule in RULES if rule.prefixes and not rule.keeps_prefix)
    + rb")|"
    + _any_of(rule for rule in RULES if rule.keeps_prefix),
    captures=False,
)

_SHOWS: Final = LinearRegex(
    _BORDER + rb"(?:" + _any_of(rule for rule in RULES if not rule.prefixes) + rb")", captures=False
)

_WINDOW: Final = 2_048
"""Distance in which a start is searched at once: a search may scan all of it in vain."""

_OVERLAP: Final = 256
"""Longest possible start."""

_AHEAD: Final = 2_048
"""Distance in which a rule must match; the whole match has no such bound."""

_BY_LOOKS: Final = tuple(
    (r, LinearRegex(r.pattern, captures=False)) for r in RULES if not r.prefixes
)

_BY_START: Final = defaultdict[int, list[tuple[Rule, LinearRegex]]](list)
for _row in filter(lambda rule: rule.prefixes, RULES):
    for _first in sorted({start[0] for start in _row.prefixes}):
        _BY_START[_first].append((_row, LinearRegex(_row.pattern, captures=False)))

_KindSpan = tuple[int, int, str]

_Matcher = Callable[[bytes, Sequence[int]], _KindSpan | None]


def find_prefixed(data: bytes) -> Iterator[_KindSpan]:
    """Find credentials by their format: start, end and kind."""
    yield from _find_each(data, _BEGINS, _match_prefixed)
    yield from _find_each(data, _SHOWS, _match_unprefixed)


def _find_each(data: bytes, detect: LinearRegex, match: _Matcher) -> Iterator[_KindSpan]:
    at = 0
    while at < len(data):
        border = at + _WINDOW
        found = detect.search(data, at, min(border, len(data)))
        if found is None:
            at = border - _OVERLAP if border < len(data) else len(data)
            continue
        start, end = found.span()
        found_span = match(data, _start_positions(data, start))
        if found_span is None:
            at = max(end - 1, start + 1)
        else:
            yield found_span
            at = found_span[1]


def _start_positions(data: bytes, start: int) -> Sequence[int]:
    """Possible starts of a credential that was found together with the character before it."""
    if data[start] in _ESCAPING:
        return range(start, min(start + _LONGEST_ESCAPE + 1, len(data)))
    return (
        (start,) if data[start : start + 1].isalnum() else range(start, min(start + 2, len(data)))
    )


_ESCAPING: Final = b"\\%"

_LONGEST_ESCAPE: Final = 6


def _match_prefixed(data: bytes, places: Sequence[int]) -> _KindSpan | None:
    for start in places:
        for rule, pattern in _BY_START.get(data[start], ()):
            if not data.startswith(rule.prefixes, start):
                continue
            shown = max(len(s) for s in rule.prefixes if data.startswith(s, start))
            if end := _match_end(pattern, data, start, shown):
                return start + shown * rule.keeps_prefix, end, rule.kind
    return None


def _match_unprefixed(data: bytes, places: Sequence[int]) -> _KindSpan | None:
    for start in places:
        for rule, pattern in _BY_LOOKS:
            if end := _match_end(pattern, data, start):
                return start, end, rule.kind
    return None


def _match_end(pattern: LinearRegex, data: bytes, start: int, kept_prefix: int = 0) -> int:
    """End of a credential that begins here, behind its fixed prefix; 0: none does, or it is a name
    that only begins like one.
    """
    border = min(start + _AHEAD, len(data))
    found = pattern.match(data, start, border)
    if found is None or is_phrase(data[start + kept_prefix : found.end()].decode(errors="replace")):
        return 0
    whole = pattern.match(data, start) if found.end() == border < len(data) else found
    return whole.end() if whole else 0
