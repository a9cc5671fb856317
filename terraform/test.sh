#!/usr/bin/env bash
# `terraform validate` and `terraform test` in a copy of this folder. It needs no credentials and creates nothing, since the
# tests mock the provider; but the provider has to be installed, for its schema.
set -euo pipefail

skip() {
    echo "terraform-test: SKIPPED: $1" >&2
    exit 0
}

[ -n "$(command -v terraform)" ] || skip "there is no terraform on this machine; 1.11 or newer is needed"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$(dirname "$0")/." "$copy"
# Your own variables and state would affect the tests.
rm -rf "$copy/.terraform" "$copy"/*.tfvars "$copy"/*.tfstate*

if ! terraform -chdir="$copy" init -backend=false -input=false -no-color > "$copy/init.log" 2>&1; then
    cat "$copy/init.log" >&2
    if grep -qE 'Failed to (query available provider packages|install provider)' "$copy/init.log"; then
        skip "provider hashicorp/google 7.x cannot be had here; it comes from Terraform's registry or a mirror of it"
    fi
    exit 1
fi
terraform -chdir="$copy" validate
terraform -chdir="$copy" test
