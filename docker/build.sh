#!/usr/bin/env bash
# Build, push and scan the images of workers and launcher, in the folder of the Dockerfile.
#
#   docker/build.sh REGION-docker.pkg.dev/PROJECT/refinery TAG
#
# Bases: by digest, from docker/bases.txt. Where a base is missing there, the digest that its registry names today is added:
# keep the file, and the next build has the same bases; delete it to take newer ones.
# Bill of materials and scan: Google's, of the pushed images; a vulnerability of severity CRITICAL that has a fix ends this
# with 1. The images are there then, under a tag that you should not launch. Needs docker with buildx, and gcloud.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: docker/build.sh REGION-docker.pkg.dev/PROJECT/refinery TAG" >&2
    exit 2
fi
registry=$1 tag=$2
cd "$(dirname "$0")/.."
bases=docker/bases.txt
touch "$bases"

arguments=()
while IFS='=' read -r name image; do
    pinned=$(grep -E "^${image//./\\.}@sha256:[0-9a-f]{64}$" "$bases" || true)
    if [ -z "$pinned" ]; then
        digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
        if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
            echo "docker/build.sh: no digest of $image, but: $digest" >&2
            exit 1
        fi
        pinned="$image@$digest"
        echo "$pinned" >> "$bases"
    fi
    arguments+=(--build-arg "$name=$pinned")
    echo "base $pinned"
done < <(sed -n 's/^ARG //p' Dockerfile)

# Dataflow's machines pull an image, not a list of images and attestations: hence no provenance.
for kind in worker launcher; do
    docker buildx build --platform linux/amd64 --provenance=false --target "$kind" "${arguments[@]}" --push --tag "$registry/$kind:$tag" .
done

status=0
for kind in worker launcher; do
    image="$registry/$kind:$tag"
    gcloud artifacts sbom export --uri="$image"
    scan=$(gcloud artifacts docker images scan "$image" --remote --format='value(response.scan)')
    found=$(gcloud artifacts docker images list-vulnerabilities "$scan" \
        --format='csv[no-heading](vulnerability.effectiveSeverity,vulnerability.fixAvailable,vulnerability.shortDescription)')
    echo "$image: $(grep -c . <<< "$found" || true) known vulnerabilities"
    if grep -iE '^CRITICAL,True' <<< "$found" >&2; then
        echo "docker/build.sh: $image has critical vulnerabilities that are fixed upstream: delete docker/bases.txt for newer bases, raise what setup.py pins, and build another tag" >&2
        status=1
    fi
done
exit $status
