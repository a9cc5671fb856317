#!/usr/bin/env bash
# Build, scan and push the images of workers and launcher, in the folder of the Dockerfile.
#
#   docker/build.sh REGION-docker.pkg.dev/PROJECT/refinery TAG
#
# Bases: by digest, from docker/bases.txt. Where a base is missing there, the digest that its registry names today is added:
# keep the file, and the next build has the same bases; delete it to take newer ones.
# Scan: Google's, of the images on this machine; a vulnerability of severity CRITICAL that has a fix ends this with 1, and
# nothing is pushed: a pushed tag is immutable. Bill of materials: Google's, of the pushed images. Needs docker with buildx,
# and gcloud with its component local-extract.
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
    docker buildx build --platform linux/amd64 --provenance=false --target "$kind" "${arguments[@]}" --load --tag "$registry/$kind:$tag" .
done

status=0
for kind in worker launcher; do
    image="$registry/$kind:$tag"
    scan=$(gcloud artifacts docker images scan "$image" --format='value(response.scan)')
    found=$(gcloud artifacts docker images list-vulnerabilities "$scan" \
        --format='csv[no-heading](vulnerability.effectiveSeverity,vulnerability.fixAvailable,vulnerability.shortDescription)')
    echo "$image: $(grep -c . <<< "$found" || true) known vulnerabilities"
    if grep -iE '^CRITICAL,True' <<< "$found" >&2; then
        echo "docker/build.sh: $image has critical vulnerabilities that are fixed upstream; nothing was pushed: delete docker/bases.txt for newer bases, raise what setup.py pins, and build again" >&2
        status=1
    fi
done
[ "$status" -eq 0 ] || exit "$status"

# Both or none: a run needs the two of one tag.
for kind in worker launcher; do
    docker push "$registry/$kind:$tag"
    gcloud artifacts sbom export --uri="$registry/$kind:$tag"
done
